# The packet filter, for the cluster's interface alone: accept early, and do not track connections.
# Own rules carry the comment "wulf"; nothing of anybody else is removed or changed.
firewall_rules() { limit nft -nn list ruleset; }
firewall_contents() { # a rule set: a line for each table, without what changes by itself
	awk '/^table / { key = $1 " " $2 " " $3; text = ""; next }
		/^}/ { print key "\t" text; next }
		/^\t(set|map) / { dynamic = 0 }
		/^\t\tflags .*dynamic/ { dynamic = 1 }
		/^\t\telements = \{/ { open = 1; elements = "" }
		open { elements = elements $0
			line = $0; gsub(/"[^"]*"/, "", line)
			if (line !~ /}[ \t]*$/) next
			open = 0; if (dynamic) next
			if (($0 = lasting(elements)) == "") next }
		{ text = text " " steady($0) }
		function steady(line) {
			gsub(/ packets [0-9]+ bytes [0-9]+/, "", line); gsub(/packets [0-9]+ bytes [0-9]+/, "", line)
			gsub(/ used [0-9]+ [a-z]*bytes/, "", line); gsub(/ last (never|used [0-9a-z]+)/, " last", line)
			gsub(/[ \t]+/, " ", line); return line }
		'"$(firewall_elements)"'
		function lasting(line,    n, i, out) {
			n = split_elements(line, one)
			for (i = 1; i <= n; i++) if (one[i] !~ / expires /) out = out "," one[i]
			return out }'
}
firewall_elements() { # of awk: the elements of a set, apart; commas within quotes are none between them
	cat <<-'END'
		function split_elements(line, one,    n, i, part) {
			sub(/^[ \t]*elements = \{/, "", line); sub(/}[ \t]*$/, "", line)
			n = split(line, part, "\""); line = ""
			for (i = 1; i <= n; i++) { if (i % 2 == 0) gsub(",", "\001", part[i]); line = line (i > 1 ? "\"" : "") part[i] }
			n = split(line, one, ",")
			for (i = 1; i <= n; i++) { gsub("\001", ",", one[i]); gsub(/[ \t]+/, " ", one[i]); gsub(/^ | $/, "", one[i]) }
			return n }
	END
}
firewall_aged() { # seconds; a rule set on stdin: its elements have so much less time left, and some none
	awk -v age="$1" '/^\t\telements = \{/ { open = 1; elements = "" }
		open { elements = elements $0; line = $0; gsub(/"[^"]*"/, "", line) }
		open && line ~ /}[ \t]*$/ { open = 0; n = split_elements(elements, one); out = ""
			for (i = 1; i <= n; i++) if (keep(one[i])) out = out (out == "" ? "" : ",") older
			if (out != "") print "\t\telements = {" out " }"; next }
		!open
		function keep(element,    before, after, left) {
			older = " " element
			if (!match(element, / expires [0-9a-z]+/)) return 1
			before = substr(element, 1, RSTART); after = substr(element, RSTART + RLENGTH)
			left = seconds(substr(element, RSTART + 9, RLENGTH - 9)) - age
			older = " " before "expires " left "s" after
			return left > 0 }
		function seconds(word,    sum) {
			while (match(word, /^[0-9]+(ms|[wdhms])/)) {
				unit = substr(word, 1, RLENGTH); word = substr(word, RLENGTH + 1)
				sum += unit ~ /ms$/ ? 0 : (unit + 0) * (unit ~ /w$/ ? 604800 : unit ~ /d$/ ? 86400 : unit ~ /h$/ ? 3600 : unit ~ /m$/ ? 60 : 1) }
			return sum }
		'"$(firewall_elements)"
}
firewall_tables() { # yes|no, file of items; a rule set on stdin: its tables that are (or are not) among these items
	awk -v among="$1" -F '\t' 'FILENAME != "-" { known[$1]; next }
		/^table / { split($0, word, " "); key = word[1] " " word[2] " " word[3]; show = (key in known) == (among == "yes") }
		show' "$2" -
}
firewall_legacy() { # which of the old tables there are
	for firewall_family in ip ip6; do
		! grep -q . "/proc/net/${firewall_family}_tables_names" 2>/dev/null || echo "${firewall_family}tables-legacy"
	done
}
firewall_save() { # the own rules alone: those of others may change at any time, and are not touched
	command -v nft >/dev/null 2>&1 || [ -n "$(firewall_legacy)" ] || { echo "nft is not installed" >&2; return 1; }
	firewall_get "$1" "$2"
}
firewall_chains() { # FAMILY TABLE CHAIN DIRECTION of every base chain that filters what comes in or goes out
	limit nft -nn list ruleset | awk '/^table / { family = $2; table = $3 } /^\tchain / { chain = $2 }
		/type filter hook (input|output|prerouting|postrouting)/ && family ~ /^(ip|ip6|inet)$/ && table != "wulf" {
			print family, table, chain, (/hook (input|prerouting)/ ? "iifname" : "oifname") }'
}
firewall_clear() { # interface
	limit nft delete table inet wulf 2>/dev/null
	limit nft -a list ruleset 2>/dev/null | awk '/^table / { family = $2; table = $3 } /^\tchain / { chain = $2 }
		/comment "wulf"/ && $(NF - 1) == "handle" { print "delete rule", family, table, chain, "handle", $NF }' | limit nft -f -
	for firewall_tool in $(firewall_legacy); do
		"$firewall_tool-save" | awk '/^\*/ { table = substr($1, 2) }
			/^-A .*--comment "?wulf"?( |$)/ { sub(/^-A/, "-D"); print "-t", table, $0 }' | tr -d '"' | while read -r firewall_rule; do
			# shellcheck disable=SC2086 # the words of a rule
			"$firewall_tool" -w $firewall_rule
		done
	done
	firewall_guards "wulf_$(printf '%s' "$1" | tr '.:@-' '____')"
}
firewall_line='
'
firewall_guards() { # the guard's table, which it makes at boot where there is one; rules of others in it stay
	command -v nft >/dev/null 2>&1 || return 0
	firewall_left=$(limit nft list tables) || { echo "nft does not list its tables" >&2; return 1; }
	case "$firewall_left$firewall_line" in *"table inet $1$firewall_line"*) ;; *) return 0 ;; esac
	firewall_left=$(limit nft list table inet "$1") || { echo "nft does not list its table $1" >&2; return 1; }
	! printf '%s\n' "$firewall_left" | grep -qvE '^(table .*|	chain .*|		type .*|	*}|)$' || return 0
	limit nft delete table inet "$1"
}
firewall_put() {
	case $3 in
	tracked) firewall_clear "$1" ;;
	exempt | notrack) firewall_clear "$1" && firewall_exempt "$1" "$3" ;;
	*) echo "the packet filter for $1 is tracked, exempt or notrack, not '$3'" >&2; return 1 ;;
	esac
}
firewall_exempt() { # interface, exempt|notrack
	if command -v nft >/dev/null 2>&1; then
		{
			firewall_chains | while read -r firewall_family firewall_table firewall_chain firewall_way; do
				printf 'insert rule %s %s %s %s "%s" accept comment "wulf"\n' \
					"$firewall_family" "$firewall_table" "$firewall_chain" "$firewall_way" "$1"
			done
			[ "$2" != notrack ] || firewall_untracked "$1"
		} | limit nft -f - || return 1
	fi
	for firewall_tool in $(firewall_legacy); do
		"$firewall_tool" -w -I INPUT -i "$1" -m comment --comment wulf -j ACCEPT &&
			"$firewall_tool" -w -I OUTPUT -o "$1" -m comment --comment wulf -j ACCEPT || return 1
		[ "$2" != notrack ] || { "$firewall_tool" -w -t raw -I PREROUTING -i "$1" -m comment --comment wulf -j CT --notrack &&
			"$firewall_tool" -w -t raw -I OUTPUT -o "$1" -m comment --comment wulf -j CT --notrack; } || return 1
	done
}
firewall_untracked() { # interface: after the accepts, as untracked packets would fail `ct state` rules
	cat <<-END
		table inet wulf {
			chain prerouting { type filter hook prerouting priority raw; policy accept; iifname "$1" notrack comment "wulf"; }
			chain output { type filter hook output priority raw; policy accept; oifname "$1" notrack comment "wulf"; }
		}
	END
}
firewall_restore() {
	read -r firewall_before
	firewall_put "$1" "$2" "$firewall_before"
}
firewall_get() {
	case $(limit nft list ruleset 2>/dev/null; for firewall_tool in $(firewall_legacy); do "$firewall_tool-save"; done) in
	*'notrack comment "wulf"'* | *--comment*wulf*notrack*) echo notrack ;;
	*'accept comment "wulf"'* | *--comment*wulf*) echo exempt ;;
	*) echo tracked ;;
	esac
}
