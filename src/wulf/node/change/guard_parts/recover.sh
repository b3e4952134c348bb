# --- what was left open ------------------------------------------------------------------------------------

recover() { # [stuck]: what an earlier boot, a dead controller or a dead guard left; at once what is stuck, too
	for left in $(open_changes); do
		if is_stuck "$left"; then
			[ -z "${1:-}" ] && ! is_late "$left" || give_up "$left"
		elif [ "$(boot)" != "$(about "$left" boot)" ]; then
			undo "$left" "the node was started anew"
		elif is_late "$left"; then
			give_up "$left"
		else
			case $(state_of "$left") in preparing* | applying* | undoing*) undo "$left" "its guard was ended" ;; esac
		fi
	done
	for left in "$STATE"/tx/*/; do # a `begin` that never came to its journal
		left=${left%/}
		left=${left##*/}
		read_state "$left" # no process for each: there are many
		[ ! -d "$STATE/tx/$left" ] || [ "$state_word" != none ] || discard "$left"
	done
	clear_away "$STATE"/gone.*
	tidy
	tx=
}
tidy() { # 0 when no change is open; nothing of one that is over may be left, whatever ended a guard after its last word
	for tidy_file in "$STATE"/open.* "$RUN"/deadline.* "$RUN"/retry.* "$RUN"/part.*; do
		[ -e "$tidy_file" ] || continue
		tidy_tx=${tidy_file##*/}
		read_state "${tidy_tx#*.}"
		! is_over "$state_word" || rm -f "$tidy_file"
	done
	[ -z "$(open_changes)" ] && no_recover_at_boot
}
is_stuck() { # TX
	read_state "$1"
	[ "$state_word" = stuck ]
}
due_at() { # TX: when something is to be done about it, in seconds since boot
	if is_stuck "$1"; then
		due_file=$RUN/retry.$1
	else
		due_file=$RUN/deadline.$1
	fi
	due_s=
	{ read -r due_s _ <"$due_file"; } 2>/dev/null
	case $due_s in '' | *[!0-9]*) echo 0 ;; *) echo "$due_s" ;; esac
}
is_late() { # TX
	[ "$(now)" -ge "$(due_at "$1")" ]
}
retry_later() { # TX: twice as much later each time
	retry_s=
	{ read -r _ retry_s <"$RUN/retry.$1"; } 2>/dev/null
	case $retry_s in '' | *[!0-9]*) retry_s=$RETRY_S ;; *) retry_s=$((retry_s * 2)) ;; esac
	[ "$retry_s" -le "$LONGEST_RETRY_S" ] || retry_s=$LONGEST_RETRY_S
	keep_in_run "retry.$1" "$(($(now) + retry_s)) $retry_s"
}
give_up() { # TX: nobody has come in time, so whoever has the node is gone
	if is_stuck "$1"; then
		undo "$1" "at a later attempt"
	else
		undo "$1" "not confirmed in time" && unlock "$(about "$1" owner)"
	fi
}

# --- released by a person ----------------------------------------------------------------------------------

leaves() { # TX: what is not known to be as it was before: knob, kind, interface, target, value now, state before
	if [ "$1" = history ]; then
		left_by_history
		return
	fi
	left_broken=$(damaged "$1")
	what_of "$1" | {
		number=0
		while IFS=$TAB read -r knob kind interface target; do
			number=$((number + 1))
			left_step "$1"
		done
		[ "$number" -gt 0 ] || printf 'leaves\t-\t-\t-\t-\tnot known\tnot known\n'
	}
}
left_by_history() { # what is condensed, as far as it can be read
	[ ! -s "$STATE/history" ] || sed -n "s/^what$TAB//p" "$STATE/history" | while IFS=$TAB read -r _ kind interface target _ _ knob _; do
		before="not known"
		left_row
	done
}
left_row() { # of the current step
	printf 'leaves\t%s\t%s\t%s\t%s\t%s\t%s\n' "$knob" "$kind" "$interface" "$target" "$(value_now)" "$before"
}
left_step() { # TX
	saved=$STATE/tx/$1/saved.$number
	before="not known"
	case " $left_broken " in *" saved.$number "* | *' sums '* | *' everything '*) ;; *)
		changed_by "$1/saved.$number"
		! is_back "$kind" "$interface" "$target" 9>&- || return 0
		before=$(tr '\n\t' '  ' <"$saved" | cut -c1-300)
		;;
	esac
	left_row
}
value_now() { # of the current step
	if command -v "${kind}_get" >/dev/null 2>&1; then
		"${kind}_get" "$interface" "$target" 2>&1 9>&- | tr '\n\t' '  '
	else
		echo "not known"
	fi
}
abandon() { # TX: leaves everything as it is, and says what that is
	tx=$1
	if [ "$tx" = history ]; then
		abandon_history
		return
	fi
	read_state "$tx"
	case $state_word in
	none) fail 1 "there is no change $tx here" ;;
	undone | abandoned) return 0 ;;
	confirmed) [ -n "$(damaged "$tx")" ] || fail 1 "$tx is confirmed, and can be rolled back" ;;
	stuck) ;;
	*) fail 1 "$tx is open, and is put back by itself when nobody confirms it" ;;
	esac
	leaves "$tx"
	mkdir -p "$STATE/tx/$tx"
	if [ ! -s "$STATE/tx/$tx/about" ] && [ -s "$STATE/open.$tx" ]; then
		grep -v "^what$TAB" "$STATE/open.$tx" | store "$STATE/tx/$tx/about"
	fi
	become "$tx" abandoned "its values were left as they were" || fail 1 "cannot write to $STATE: is the disk full?"
	close_change
}

abandon_history() { # what is kept one by one can still be rolled back
	[ -n "$(damaged_history)" ] || return 0
	leaves history
	note "abandoned: the condensed history was damaged"
	printf 'through\t0\n' | sealed_history | store "$STATE/history" || fail 1 "cannot write to $STATE: is the disk full?"
	rm -rf "$STATE/first"
}

# --- at boot -----------------------------------------------------------------------------------------------

# What it starts is in the unit itself: the guard and its journal are on a file system that may come late, or not at
# all. It waits for those that there are, needs none of them, and does not keep the node from booting.
recover_at_boot() (
	[ ! -e "/etc/systemd/system/$UNIT" ] && [ -d /etc/systemd/system ] || return 0
	umask 022
	recover_mounts='var.mount var-lib.mount var-lib-wulf.mount'
	printf '%s\n' '[Unit]' 'Description=Undo changes of wulf that nobody confirmed' 'DefaultDependencies=no' \
		"Wants=$recover_mounts" "After=$recover_mounts local-fs.target" \
		'Before=sysinit.target systemd-sysctl.service systemd-modules-load.service network-pre.target' '' \
		'[Service]' 'Type=oneshot' 'TimeoutStartSec=300' \
		"ExecStart=/bin/sh -c 'if [ -r $STATE/guard ]; then exec /bin/sh $STATE/guard recover; fi; \
echo \"$STATE/guard is not there: what nobody confirmed is undone when wulf next reaches this node\" >&2'" |
		store "/etc/systemd/system/$UNIT" &&
		mkdir -p /etc/systemd/system/sysinit.target.wants &&
		ln -sf "../$UNIT" "/etc/systemd/system/sysinit.target.wants/$UNIT" &&
		flush /etc/systemd/system/sysinit.target.wants
)
no_recover_at_boot() { # a power cut may have left one of the two alone
	[ -e "/etc/systemd/system/$UNIT" ] || [ -L "/etc/systemd/system/sysinit.target.wants/$UNIT" ] || return 0
	rm -f "/etc/systemd/system/sysinit.target.wants/$UNIT" "/etc/systemd/system/$UNIT"
	rmdir /etc/systemd/system/sysinit.target.wants 2>/dev/null || :
}
