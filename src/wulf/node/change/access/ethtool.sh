# What ethtool sets: TARGET is GROUP.PARAMETER, or several of one group, or a group alone.
ethtool_save() {
	ethtool_group=${2%%[. ]*}
	case $ethtool_group in
	coalesce) limit ethtool -c "$1" | ethtool_coalesce ;;
	ring) limit ethtool -g "$1" | ethtool_current ;;
	channels) limit ethtool -l "$1" | ethtool_current ;;
	feature) limit ethtool -k "$1" | ethtool_features ;;
	pause) limit ethtool -a "$1" | awk -F ':[ \t]*' '$2 == "on" || $2 == "off" { sub("Autonegotiate", "autoneg", $1)
		name = tolower($1); if (name ~ /^(autoneg|rx|tx)$/) print name "\t" $2 }' ;;
	eee) limit ethtool --show-eee "$1" | sed -n 's/^[ \t]*EEE status: *disabled.*/eee\toff/p; s/^[ \t]*EEE status: *enabled.*/eee\ton/p' ;;
	esac | grep . || { echo "$1 has no $ethtool_group that ethtool shows" >&2; return 1; }
}
ethtool_coalesce() {
	awk '/^(Adaptive|CQE mode)/ { kind = /^Adaptive/ ? "adaptive" : "cqe-mode"
			for (i = 1; i < NF; i++) if ($i ~ /^[RT]X:$/ && $(i + 1) ~ /^o(n|ff)$/) print kind "-" tolower(substr($i, 1, 2)) "\t" $(i + 1)
			next }
		/^[a-z-]+:[ \t]*[0-9]+$/ { sub(":", ""); print $1 "\t" $2 }'
}
ethtool_current() { # the numbers after "Current hardware settings"
	awk -F ':[ \t]*' '/^Current/ { now = 1; next } now && $2 ~ /^[0-9]+$/ { name = tolower($1); gsub(" ", "-", name)
		if (name ~ /^(rx|tx|rx-mini|rx-jumbo|other|combined)$/) print name "\t" $2 }'
}
ethtool_features() { # by the names that `ethtool -K` takes
	awk -F ':[ ]*' 'BEGIN {
			n = split("rx-checksumming rx tx-checksumming tx scatter-gather sg tcp-segmentation-offload tso " \
				"udp-fragmentation-offload ufo generic-segmentation-offload gso generic-receive-offload gro " \
				"large-receive-offload lro rx-vlan-offload rxvlan tx-vlan-offload txvlan ntuple-filters ntuple " \
				"receive-hashing rxhash", word, " ")
			for (i = 1; i < n; i += 2) short[word[i]] = word[i + 1] }
		$2 ~ /^o(n|ff)/ && $2 !~ /\[fixed\]/ { name = $1; sub(/^[ \t]+/, "", name); split($2, state, " ")
			print (name in short ? short[name] : name) "\t" state[1] }'
}
ethtool_short() { # the name of a feature for `ethtool -K`
	printf '%s: on\n' "$1" | ethtool_features | cut -f1
}
ethtool_flag() {
	case $1 in coalesce) echo -C ;; ring) echo -G ;; channels) echo -L ;; feature) echo -K ;; pause) echo -A ;; eee) echo --set-eee ;; esac
}
ethtool_put() {
	ethtool_group=${2%%[. ]*}
	ethtool_change=
	case $ethtool_group in
	eee) ethtool_change="eee $3" ;;
	channels) ethtool_change=$3 ;;
	*)
		ethtool_values=$3
		for ethtool_name in $2; do
			ethtool_name=${ethtool_name#"$ethtool_group".}
			ethtool_value=${ethtool_values%% *}
			ethtool_values=${ethtool_values#* }
			[ "$ethtool_group" = feature ] && ethtool_name=$(ethtool_short "$ethtool_name")
			[ "$ethtool_value" = max ] && ethtool_value=$(limit ethtool -g "$1" | sed -n "/^Current/q; s/^$(printf %s "$ethtool_name" | tr rtx- 'RTX '):[ \t]*//p")
			ethtool_change="$ethtool_change $ethtool_name $ethtool_value"
		done
		;;
	esac
	case $2 in
	coalesce.[rt]x-*) ethtool_fixed "$1" "${2#coalesce.}" || return 1 ;;
	pause.*) ethtool_save "$1" pause | grep -q '^autoneg	on' && ethtool_change="autoneg off $ethtool_change" ;;
	esac
	ethtool_run "$1" "$ethtool_change"
}
ethtool_fixed() { # an adaptive driver takes no notice of a fixed delay
	ethtool_way=${2%%-*}
	! ethtool_save "$1" coalesce | grep -q "^adaptive-$ethtool_way	on" || limit ethtool -C "$1" "adaptive-$ethtool_way" off
}
ethtool_run() { # interface, changes; a value that is there already is an error for some versions
	# shellcheck disable=SC2086 # names and values
	ethtool_said=$(limit ethtool "$(ethtool_flag "$ethtool_group")" "$1" $2 2>&1) && return
	case $ethtool_said in
	*unmodified* | *"no "*" parameters changed"* | *"no change"*) return 0 ;;
	*) printf '%s\n' "$ethtool_said" >&2; return 1 ;;
	esac
}
ethtool_restore() {
	ethtool_group=${2%%[. ]*}
	ethtool_before=$(cat)
	# More than once: a group of features changes its members, and adaptive moderation the fixed delays.
	for ethtool_round in 1 2 3; do
		ethtool_change=$(ethtool_differing "$1" "$2")
		[ -n "$ethtool_change" ] || return 0
		# As long as it is adaptive it may take no fixed delay.
		ethtool_set "$1" "$(printf '%s\n' "$ethtool_change" | grep '^adaptive.* off$')"
		ethtool_set "$1" "$(printf '%s\n' "$ethtool_change" | grep -v '^adaptive')"
		ethtool_set "$1" "$(printf '%s\n' "$ethtool_change" | grep '^adaptive.* on$')"
	done
}
ethtool_also() { # SAVED; what a change has changed on stdin: an adaptive driver moves the delays later on, too
	ethtool_ours=$(cat)
	{
		printf '%s\n' "$ethtool_ours"
		for ethtool_way in rx tx; do
			! printf '%s\n' "$ethtool_ours" | grep -q "^adaptive-$ethtool_way	" || grep "^$ethtool_way-" "$1"
		done
	} | sort -u | grep . || :
}
ethtool_differing() { # interface, target: what is not as before, with the values before
	{
		ethtool_save "$1" "$2"
		echo
		printf '%s\n' "$ethtool_before"
	} | awk -F '\t' '/^$/ { before = 1; next } !before { now[$1] = $2; next } !($1 in now) || now[$1] != $2 { print $1, $2 }'
}
ethtool_set() { # interface, lines: at once, or what is possible of it
	[ -n "$2" ] || return 0
	ethtool_run "$1" "$(printf '%s\n' "$2" | tr '\n' ' ')" 2>/dev/null ||
		printf '%s\n' "$2" | while read -r ethtool_pair; do
			ethtool_run "$1" "$ethtool_pair" || :
		done
}
ethtool_get() {
	ethtool_group=${2%%[. ]*}
	ethtool_state=$(ethtool_save "$1" "$2") || return
	case $ethtool_group in
	channels) printf '%s\n' "$ethtool_state" | awk '$2 != 0 { print $1, $2 }' | paste -s -d ' ' - ;;
	eee) printf '%s\n' "$ethtool_state" | cut -f2 ;;
	*)
		for ethtool_name in $2; do
			ethtool_name=${ethtool_name#"$ethtool_group".}
			[ "$ethtool_group" = feature ] && ethtool_name=$(ethtool_short "$ethtool_name")
			printf '%s\n' "$ethtool_state" | sed -n "s/^$ethtool_name	//p"
		done | paste -s -d ' ' -
		;;
	esac
}
