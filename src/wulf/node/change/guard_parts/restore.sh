# --- what a change has changed, and when that is put back ---------------------------------------------------

renew() { # what somebody has changed since `begin` is what has to come back
	renewed=
	for number in $(step_numbers "$tx"); do
		step "$tx" "$number"
		saved=$STATE/tx/$tx/saved.$number
		said=$({ "${kind}_save" "$interface" "$target" 9>&- >"$saved.now"; } 2>&1)
		if [ ! -s "$saved.now" ] || [ -n "$said" ]; then
			put_back_for "$knob: ${said:-its state cannot be read any more}"
		fi
		if ! cmp -s "$saved.now" "$saved"; then
			renewed=1
			store "$saved" <"$saved.now" || not_begun "cannot write to $STATE: is the disk full?"
		fi
		rm -f "$saved.now"
	done
	[ -z "$renewed" ] || seal "$tx" || not_begun "cannot write to $STATE: is the disk full?"
}
save_after() { # without it all that was saved is put back
	for number in $(step_numbers "$tx"); do
		step "$tx" "$number"
		"${kind}_save" "$interface" "$target" 2>/dev/null 9>&- | store "$STATE/tx/$tx/after.$number" 2>/dev/null ||
			rm -f "$STATE/tx/$tx/after.$number"
	done
}
changed_by() { # TX/saved.N...: of the current step, to `ours`
	words=$1
	set -- "$kind"
	for word in $words; do
		set -- "$@" "$STATE/tx/$word" "$STATE/tx/${word%/*}/after.${word##*.}"
	done
	saved=$2
	after=$3
	changed "$@"
}
undo_order() { # TX: numbers of its steps, those that make others anew first; otherwise the last one first
	[ "$(steps "$1")" != 1 ] || { echo 1; return; }
	undo_number=0
	while IFS=$TAB read -r undo_knob undo_kind _; do
		undo_number=$((undo_number + 1))
		printf '%s\t%s\n' "$(rank_of "$undo_knob" "$undo_kind")" "$undo_number"
	done <"$STATE/tx/$1/plan" | sort -k 1,1n -k 2,2nr | cut -f 2
}
rank_of() { # KNOB, KIND; what only another version knows comes last
	rank "$1" || rank "$2" || echo 9999
}
say_left() { # what somebody else has changed since is theirs; once for each step
	case " ${left_said:-} " in *" $number "*) return 0 ;; esac
	left_said="${left_said:-} $number"
	left_items=$(left "$kind" "$saved" "$after" | cut -c 1-200 | paste -s -d ';' - | tr '\t' ' ')
	[ -n "$left_items" ] || return 0
	note "left as somebody else has set it: $knob: $left_items"
	printf 'left\t%s\t%s\n' "$knob" "$left_items"
}
