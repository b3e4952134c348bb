# --- two settings in turn ----------------------------------------------------------------------------------
#
# While a change is open, a part of it can be made alone (`part`), from one trial to the next. The probe has either of
# two parts made, again and again within one launch (`alternate`): it writes the part's letter to TX.ask and reads `ok`,
# or what went wrong, from TX.answer. What is not of that part has its original value. The journal holds the state before
# all of it and the deadline goes on, so whatever ends this, everything is put back as after any change. The lock is held
# for each request, not between them.

ALTERNATION=/run/wulf-alternation # who measures may not look into $RUN
ALTERNATION_IDLE_S=30             # a launch that asks for nothing for so long is over

part() { # TX STEPS: numbers of steps, with commas; 0 for none. Makes these, and puts the others back
	tx=$1
	require_steps "$2"
	made= # which part is made; not known after `apply`, an alternation or one that failed
	{ read -r made <"$RUN/part.$tx"; } 2>/dev/null
	end_alternation "$tx"
	make_part ",$2," "$made"
	keep_in_run "part.$tx" ",$2," || :
}
alternate() { # TX A B: numbers as of `part`. Starts what answers, and says where
	tx=$1
	require_steps "$2,$3"
	end_alternation "$tx"
	(umask 022 && mkdir -p "$ALTERNATION") && mkfifo -m 600 "$ALTERNATION/$tx.ask" "$ALTERNATION/$tx.answer" &&
		chown "$by_sudo" "$ALTERNATION/$tx.ask" "$ALTERNATION/$tx.answer" || fail 1 "cannot write to $ALTERNATION"
	( # it outlives the connection
		trap '' HUP
		exec /bin/sh "$STATE/guard" alternating "$@"
	) </dev/null >/dev/null 2>&1 8>&- 9>&- &
	printf 'place\t%s\n' "$ALTERNATION/$tx"
}
require_steps() { # numbers of steps of $tx, with commas
	require_open "$tx" applied
	for step_number in $(printf %s "$1" | tr , ' '); do
		[ "$step_number" -le "$(steps "$tx")" ] 2>/dev/null || fail 1 "$tx has no step $step_number"
	done
}
end_alternation() { # TX
	rm -f "$RUN/part.$1"
	[ -p "$ALTERNATION/$1.ask" ] || return 0
	timeout 3 sh -c 'echo end >"$0"' "$ALTERNATION/$1.ask" 2>/dev/null
	rm -f "$ALTERNATION/$1.ask" "$ALTERNATION/$1.answer"
	rmdir "$ALTERNATION" 2>/dev/null || :
}
alternating() { # TX A B: until it is told to end, or nobody asks any more
	tx=$1
	alternation_is= # not known: an earlier launch may have ended under either
	while alternation_asked=$(timeout "$ALTERNATION_IDLE_S" sh -c 'read -r line <"$0" && echo "$line"' "$ALTERNATION/$tx.ask"); do
		case $alternation_asked in
		a) alternation_part=$2 ;;
		b) alternation_part=$3 ;;
		*) exit 0 ;;
		esac
		if alternation_said=$(
			exclusively
			# Whoever has another part made meanwhile has taken it away.
			[ -p "$ALTERNATION/$tx.ask" ] || fail 12 "another part of $tx is made"
			require_open "$tx" applied
			make_part ",$alternation_part," "$alternation_is"
		); then
			alternation_is=,$alternation_part,
			alternation_said=ok
		fi
		# Who asked has it open; one that has gone must not keep an undo waiting.
		timeout 2 sh -c 'printf "%s\n" "$1" >"$0"' "$ALTERNATION/$tx.answer" \
			"$(printf %s "${alternation_said:-it failed}" | tr '\n\t' '  ' | cut -c 1-200)"
	done
	rm -f "$ALTERNATION/$tx.ask" "$ALTERNATION/$tx.answer"
	exit 0
}
make_part() { # steps that are to be set, and those that are, as ",1,2,"; empty where that is not known
	for number in $(undo_order "$tx"); do
		is_in "${2:-",$number,"}" && ! is_in "$1" || continue
		step "$tx" "$number"
		changed_by "$tx/saved.$number"
		! is_back "$kind" "$interface" "$target" || continue
		said=$(put_back "$kind" "$interface" "$target" "$saved" "$after" 2>&1)
		is_back "$kind" "$interface" "$target" || fail 11 "$knob: ${said:-it is not as before}"
	done
	for number in $(step_numbers "$tx"); do
		is_in "$1" && ! is_in "$2" || continue
		step "$tx" "$number"
		said=$(put 2>&1) || fail 11 "$knob=$(printf %.60s "$value"): ${said:-it was refused}"
	done
}
is_in() { # steps, as of `make_part`: whether $number is among them
	case $1 in *",$number,"*) return 0 ;; *) return 1 ;; esac
}
