# The guard: makes changes on this node and undoes them unless they are confirmed in time.
#
#   guard lock OWNER LEASE_S             take (or renew) the node for one controller
#   guard unlock OWNER
#   guard begin TX OWNER DEADLINE_S      plan on stdin; journals the old state, changes nothing
#   guard apply TX                       makes the changes and prints what the kernel or driver made of them
#   guard swap OLD TX OWNER DEADLINE_S   undo OLD (- for none), begin TX (plan on stdin) and apply it, in one go
#   guard part TX STEPS                  makes these steps of it, and puts what the others have changed back
#   guard alternate TX A B               lets the probe have either of two parts of it made, again and again
#   guard extend TX DEADLINE_S           still there: so many seconds from now
#   guard confirm TX                     keeps them; over a new connection
#   guard undo TX [WHY]                  puts back what it has changed
#   guard rollback TX OWNER DEADLINE_S original|ID
#                                        begins a change back to the state before that one
#   guard recover                        ends what was left open; also runs before any of the above, and at boot
#   guard watch                          undoes what nobody confirmed in time; started by `begin`
#   guard keep                           starts `watch` again, should somebody end it; started with it
#   guard status                         what is set, by whom, since when, and what differs from the original;
#                                        changes nothing, and ends nothing
#   guard leaves TX                      what a change that is stuck has left; changes nothing
#   guard abandon TX                     leaves it so for good
#   guard where                          where the files of a plan (stdin) are, and who else may have them
#
# Called by way of sudo it does only what `guard_parts/grant.sh` grants.
#
# A plan has one step per line, with tabs between: KNOB KIND INTERFACE TARGET VALUE. Every KIND is a file of
# `access/`, whose functions come before this text:
#
#   KIND_save INTERFACE TARGET           prints the exact state
#   KIND_put INTERFACE TARGET VALUE      sets
#   KIND_restore INTERFACE TARGET        puts back what `save` printed, or some of its lines (stdin)
#   KIND_get INTERFACE TARGET            prints the value as the catalogue writes it
#
# The journal is one directory per change, $STATE/tx/TX: `plan`, `about`, `saved.N` (the state before step N),
# `after.N` (the state when all was set), `sums` (digests), `state` and `values` (as read back). Each is flushed to disk
# before what it speaks of begins; a change whose `state` is `confirmed` is kept, every other one is put back: what
# differs between `saved.N` and `after.N`, and all of `saved.N` where no `after.N` was written. What is there already is
# not touched again, so that undoing is idempotent. What somebody else has changed since is left, and said. What is
# not known to be put back is `stuck`.
#
# The parts by subject are in `guard_parts/`: alternation (two settings within one launch), grant (what sudo lets others do), history, journal, mutex, place, recover,
# restore, watcher.
#
# Exit codes: 0 done; 1 an error, nothing changed; 10 somebody else has the node; 11 a step failed and all is put
# back; 12 too late: it was undone before; 13 not everything could be put back (`status` says what).
umask 077
STATE=/var/lib/wulf
KEPT_LOG_BYTES=262144
KEPT_ARCHIVE_BYTES=4194304
KEPT_CHANGES=50         # one by one; a few more until they are worth the work
RETRY_S=60              # what could not be put back is tried again so much later, then after twice as long
LONGEST_RETRY_S=3600
WAIT_S=30               # another guard may be at work for so long
WATCH_S=5               # the watcher looks so often at the least
KEEP_S=2                # its keeper looks so often
SETTLE_S=10             # who has just started the watcher starts the keeper next
UNIT=wulf-recover.service

fail() { # code, words...
	code=$1
	shift
	words=$(printf %s "$*" | tr '\n\t' '  ')
	printf 'error\t%s\n' "$words"
	note "error: $words"
	exit "$code"
}
now() { # seconds since boot: no clock that somebody sets
	read_uptime
	echo "$uptime_s"
}
read_uptime() { # the same as `uptime_s`
	read -r uptime_s _ </proc/uptime
	uptime_s=${uptime_s%.*}
}
boot() {
	read -r boot_id </proc/sys/kernel/random/boot_id
	echo "$boot_id"
}
note() { # the log is for people; the journal is what counts, so a log that cannot be written stops nothing
	[ -z "${looks:-}" ] || return 0
	read_uptime
	[ "$uptime_s" = "${noted_s:-}" ] || noted_at=$(date -u +%Y-%m-%dT%H:%M:%SZ) noted_s=$uptime_s
	{ printf '%s %s %s\n' "$noted_at" "${tx:--}" "$*" >>"$STATE/log"; } 2>/dev/null || :
}

# --- a change ----------------------------------------------------------------------------------------------

step() { # TX, N: sets knob kind interface target value
	IFS=$TAB read -r knob kind interface target value <<-END
		$(sed -n "$2p" "$STATE/tx/$1/plan")
	END
}
steps() { # TX: how many
	read_about "$1"
	if [ -n "$about_steps" ]; then echo "$about_steps"; else { wc -l <"$STATE/tx/$1/plan"; } 2>/dev/null || echo 0; fi
}
step_numbers() { # TX
	step_last=$(steps "$1")
	step_number=0
	while [ "$step_number" -lt "$step_last" ]; do
		step_number=$((step_number + 1))
		echo "$step_number"
	done
}
require_names() { # TX...: they become paths, and part of a pattern
	for named; do
		case $named in '' | .* | *[!A-Za-z0-9._-]*) fail 1 "'$named' is not the name of a change" ;; esac
	done
}
begin() { # TX, OWNER, DEADLINE_S; plan on stdin
	case $1 in - | history | original) fail 1 "no change can be called $1" ;; esac
	tx=$1
	require_owner "$2"
	forget
	[ -z "$(open_changes unfinished)" ] || fail 10 "a change is open: $(open_changes unfinished)"
	{ [ -d "$STATE/tx" ] || mkdir "$STATE/tx"; } && reserve || fail 1 "cannot write to $STATE: $(df -Pk "$STATE" | awk 'NR == 2 { print $4 }') KiB are free"
	mkdir "$STATE/tx/$tx" || fail 1 "there is a change $tx"
	{
		# Nothing speaks of the first two before there is a state.
		cat >"$STATE/tx/$tx/plan" && tell_about "$2" >"$STATE/tx/$tx/about" && [ -s "$STATE/tx/$tx/about" ] &&
			flush "$STATE/guard" "$STATE/tx/$tx/plan" "$STATE/tx/$tx/about" &&
			store_text "$STATE/tx/$tx/state" preparing && flush "$STATE/tx"
	} 2>/dev/null || not_begun "cannot write to $STATE: is the disk full?"
	note "begin: $(steps "$tx") steps for $2"
	keep_off_stuck
	deadline "$tx" $(($3 + 60)) || not_begun "cannot write to $RUN: is it full?"
	watched || not_begun "the watcher does not start, or cannot write to $RUN"
	for number in $(step_numbers "$tx"); do
		step "$tx" "$number"
		command -v "${kind}_save" >/dev/null 2>&1 || not_begun "$knob: this guard knows no access kind $kind"
		note "save $number: $knob"
		# On the disk it is with the digests.
		said=$({ "${kind}_save" "$interface" "$target" 9>&- | cat >"$STATE/tx/$tx/saved.$number"; } 2>&1)
		[ -s "$STATE/tx/$tx/saved.$number" ] && [ -z "$said" ] ||
			not_begun "$knob: ${said:-its state cannot be read, so it could not be put back}"
		is_kept_over_boot "$kind" && recover_at_boot
	done
	deadline "$tx" "$3" || not_begun "cannot write to $RUN: is it full?"
	seal "$tx" 2>/dev/null && become "$tx" prepared || not_begun "cannot write to $STATE: is the disk full?"
}
tell_about() { # OWNER
	printf 'format\t2\nnumber\t%s\nowner\t%s\nboot\t%s\nat\t%s\nsteps\t%s\n' "$(($(last_number) + 1))" "$1" \
		"$(boot)" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(wc -l <"$STATE/tx/$tx/plan" | tr -d ' ')"
}
keep_off_stuck() { # the new change must not be of what a stuck one could not put back, or nobody would know any more
	for left in $(open_changes stuck); do
		same_thing=$(what_of "$left" | awk -F '\t' '
			of == "stuck" { known = 1; knob[$1]; thing[$2 FS $3 FS $4]; kind[$2]; next }
			!known { print "what is not known any more"; exit }
			$1 in knob || ($2 FS $3 FS $4) in thing || $2 == "mpi_parameter" && $2 in kind { print $1; exit }' \
			of=stuck - of=new "$STATE/tx/$tx/plan")
		[ -z "$same_thing" ] || not_begun "$left is stuck, and it is of $same_thing, too: mend what keeps it from being put \
back and run 'wulf rollback', or leave its values as they are with 'wulf rollback --abandon $left'"
	done
}
not_begun() { # why: nothing has been changed yet
	rm -f "$STATE/open.$tx" "$RUN/deadline.$tx"
	discard "$tx"
	close_change
	fail 11 "$*"
}
deadline() { # TX, seconds
	keep_in_run "deadline.$1" $(($(now) + $2))
}
require_open() { # TX, state...
	require_tx=$1
	read -r open_word open_why <<-END
		$(state_of "$require_tx")
	END
	shift
	case " $* " in *" $open_word "*) ;; *) fail 12 "$require_tx is $open_word${open_why:+: $open_why}" ;; esac
	is_late "$require_tx" || return 0
	undo "$require_tx" "not confirmed in time" || exit 13
	fail 12 "$require_tx came too late and was undone"
}
apply() { # TX
	tx=$1
	require_open "$tx" prepared
	broken=$(damaged "$tx")
	[ -z "$broken" ] || not_begun "its journal was damaged before anything was changed: $broken"
	renew
	become "$tx" applying || put_back_for "cannot write to $STATE: is the disk full?"
	left_said=
	for number in $(step_numbers "$tx"); do
		step "$tx" "$number"
		note "put $number: $knob=$(printf %.60s "$value")"
		if ! said=$(put 2>&1 9>&-); then
			# The steps are gone through anew by undoing them.
			refused="$knob=$(printf %.60s "$value"): $(printf %s "${said:-it was refused}" | tr '\n\t' '  ')"
			put_back_for "$refused" "step $number, $refused"
		fi
		case $value in @*) changed_by "${value#@}" && is_back "$kind" "$interface" "$target" 9>&- && say_left ;; esac
	done
	settle
	save_after
	values=$(read_back)
	printf '%s\n' "$values"
	# What is not known any more of that is no reason to put everything back.
	printf '%s\n' "$values" | cut -f2,4 | store "$STATE/tx/$tx/values" 2>/dev/null || rm -f "$STATE/tx/$tx/values.new"
	become "$tx" applied || put_back_for "cannot write to $STATE: is the disk full?"
}
read_back() { # what the kernel or driver has made of the values, all of them being set
	for number in $(step_numbers "$tx"); do
		step "$tx" "$number"
		printf 'step\t%s\t%s\t%s\n' "$number" "$knob" "$(value_now)"
	done
}
put_back_for() { # why [, why as the journal says it]: the change cannot go on
	undo "$tx" "${2:-$1}" || exit 13
	fail 11 "$1"
}
swap() { # OLD, TX, OWNER, DEADLINE_S; plan on stdin
	if [ "$1" != - ]; then
		swaps=1 # its watcher has the next one to watch at once: one that wanted to retire would wait for our lock
		undo "$1" "the next trial" || exit 13
		swaps=
	fi
	begin "$2" "$3" "$4"
	apply "$2"
}
put() { # the current step; a value @TX/saved.N... is what these changes have changed, as it was before the first
	case $value in
	@*)
		changed_by "${value#@}"
		is_back "$kind" "$interface" "$target" && return
		put_back "$kind" "$interface" "$target" "$saved" "$after"
		is_back "$kind" "$interface" "$target" || { echo "$knob is not as before"; return 1; }
		;;
	*) "${kind}_put" "$interface" "$target" "$value" ;;
	esac
}
settle() { # once for all steps
	units=$(awk -F "$TAB" 'index($4, "/etc/systemd/system/") == 1 { print $4 }' "$STATE/tx/$tx/plan")
	[ -n "$units" ] || return 0
	limit systemctl daemon-reload 2>/dev/null 9>&-
	for unit in $units; do # what one without its file failed with would keep the system degraded
		[ -e "$unit" ] || limit systemctl reset-failed "${unit##*/}" 2>/dev/null 9>&-
	done
	return 0
}
extend() { # TX, DEADLINE_S
	tx=$1
	require_open "$tx" prepared applied
	require_watcher
	deadline "$tx" "$2" || put_back_for "cannot write to $RUN: is it full?"
}
require_watcher() { # while one is started the deadline of $tx must not pass: it came in time
	deadline "$tx" 60 && watched || put_back_for "the watcher does not start, or cannot write to $RUN"
}
confirm() { # TX
	tx=$1
	case $(state_of "$tx") in confirmed*) return 0 ;; esac
	require_open "$tx" applied
	broken=$(damaged "$tx")
	[ -z "$broken" ] || put_back_for "its journal is damaged: $broken"
	require_watcher
	become "$tx" confirmed || put_back_for "cannot write to $STATE: is the disk full?"
	close_change
	condense
}
close_change() {
	end_alternation "$tx"
	tidy
	reserve 2>/dev/null
	[ -n "${swaps:-}" ] || wake
	return 0
}
undo() { # TX, why
	tx=$1
	stuck=
	read_state "$tx"
	case $state_word in
	undone | abandoned | none) return 0 ;;
	confirmed) fail 12 "$tx is confirmed: roll it back" ;;
	preparing | prepared) ;; # nothing was changed yet
	*) put_all_back "${2:-asked to}" ;;
	esac
	[ -n "$stuck" ] || become "$tx" undone "${2:-asked to}" || stuck=" cannot write to $STATE;"
	if [ -n "$stuck" ]; then
		stay_stuck
		return 13
	fi
	close_change
}
put_all_back() { # why: all steps of $tx; sets `stuck` to what could not be
	broken=$(damaged "$tx")
	stuck=$(untrusted "$broken")
	# One whose state was lost is not known to be open but by its mark; what was put down as stuck is tried again.
	[ -z "$state_lost" ] || stuck=${stuck:-$state_why}
	[ -z "$stuck" ] || return 0
	become "$tx" undoing "$1" || :
	left_said=
	# Again as long as that changes something: what was put back later may have moved what was put back before.
	for undo_round in 1 2 3; do
		stuck_before=$stuck
		stuck=
		moved=
		for number in $(undo_order "$tx"); do
			step "$tx" "$number"
			undo_step
		done
		[ -n "$moved" ] || break
		[ -z "$stuck" ] || [ "$stuck" != "$stuck_before" ] || break
		if [ -z "$stuck" ] && [ "$(steps "$tx")" = 1 ]; then # nothing else was there to move it
			say_left
			break
		fi
	done
	settle
}
stay_stuck() { # says so, and when it is tried again
	# What has neither a mark nor a state may be confirmed: only a person can tell.
	if [ -z "$state_lost" ] || [ -e "$STATE/open.$tx" ] || [ -e "$RUN/deadline.$tx" ]; then
		[ ! -d "$STATE/tx/$tx" ] || become "$tx" stuck "$stuck"
	fi
	retry_later "$tx"
	printf 'error\tnot put back: %s\n' "$stuck"
}
undo_step() {
	saved=$STATE/tx/$tx/saved.$number
	promise 600
	earlier_boot=
	[ "$(boot)" = "$(about "$tx" boot)" ] || earlier_boot=1
	[ -z "$earlier_boot" ] || is_kept_over_boot "$kind" || return 0
	case " $broken " in *" saved.$number "*)
		stuck="$stuck $knob (what was before it is damaged in the journal);"
		return 0
		;;
	esac
	changed_by "$tx/saved.$number"
	if is_back "$kind" "$interface" "$target" 9>&-; then
		say_left
		return 0
	fi
	moved=1
	note "restore $number: $knob"
	said=$(put_back "$kind" "$interface" "$target" "$saved" "$after" 2>&1 9>&-)
	is_back "$kind" "$interface" "$target" 9>&- ||
		stuck="$stuck $knob ($(printf %s "${said:-it is not as before}" | tr '\n\t' '  '));"
	# What starts at this boot was settled before the unit was put back.
	[ "$kind:$earlier_boot" != unit:1 ] || unit_follow "$target" 9>&-
}

rotate() {
	[ "$({ wc -c <"$STATE/log" || echo 0; } 2>/dev/null)" -le "$KEPT_LOG_BYTES" ] || mv -f "$STATE/log" "$STATE/log.1"
}

main() {
	looks=
	case ${1:-} in status | leaves) looks=1 ;; esac
	marked "$@"
	[ "$(id -u)" = 0 ] || fail 1 "changing settings takes root"
	by_sudo=${SUDO_UID:-0}
	unset SUDO_UID # what the guard starts itself, such as its watcher, is its own
	[ -n "${looks:-}" ] || { [ -d "$STATE" ] && [ -d "$RUN" ]; } || mkdir -p "$STATE" "$RUN" || fail 1 "cannot write to $STATE"
	if is_by_sudo; then
		[ -n "${looks:-}" ] || rotate
		require_granted "$@"
	fi
	verb=$1
	shift
	case $verb in
	begin | apply | part | alternate | extend | confirm | undo | leaves | abandon) require_names "${1-}" ;;
	swap) require_names "${1-}" "${2-}" ;;
	rollback) require_names "${1-}" "${4-}" ;;
	esac
	if [ -n "${looks:-}" ]; then
		looking
		"$verb" "$@"
		exit
	fi
	case $verb in watch | keep | alternating) "$verb" "$@" ;; esac
	exclusively
	rotate
	if is_by_sudo; then
		case $verb in begin | swap | where)
			granted_plan
			exec <"$RUN/granted"
			;;
		esac
	fi
	case $verb in
	recover) recover stuck ;;
	undo)
		undo "$@"
		code=$?
		recover
		exit "$code"
		;;
	lock | unlock | begin | apply | part | alternate | swap | extend | confirm | rollback | abandon | where)
		recover
		"$verb" "$@"
		;;
	*) fail 1 "there is no verb $verb" ;;
	esac
}
main "$@"
