# --- the watcher -------------------------------------------------------------------------------------------
#
# Two processes. `watch` undoes what nobody confirmed in time; `keep` does nothing but start `watch` again, and
# `watch` starts `keep`. Each ROLE holds $RUN/ROLE.lock for as long as it lives, with its number in it, has that number
# in $RUN/watcher or $RUN/keeper until it retires, promises in $RUN/ROLE.until when it will have shown itself again, and removes $RUN/ROLE.asked when it
# is asked: a number alone says nothing of a process that is stopped, or of another's that has it by now.
#
# As long as nothing is to be done they start no process but their `sleep`: somebody measures on this node meanwhile,
# perhaps without them for comparison, and the slowest hundredth of what he measures is soon theirs.

number_file() { case $1 in watch) echo "$RUN/watcher" ;; keep) echo "$RUN/keeper" ;; esac; }
process_of() { process_in "$(number_file "$1")" "$1"; } # ROLE: sets role_pid; 0 when there is such a process
process_in() { # FILE ROLE
	role_pid=
	{ read -r role_pid <"$1"; } 2>/dev/null
	[ -n "$role_pid" ] || return
	case $({ tr '\0' ' ' <"/proc/$role_pid/cmdline"; } 2>/dev/null) in *"guard $2" | *"guard $2 ") return 0 ;; *) return 1 ;; esac
}
wake() { # make it look at the deadlines again
	process_of watch && kill -USR1 "$role_pid" 2>/dev/null
}
answers() { ask "$1" && has_answered "$1"; } # ROLE: it is there, and at work
ask() { # ROLE
	process_of "$1" && ! is_stopped "$role_pid" && { true >"$RUN/$1.asked"; } 2>/dev/null && kill -USR1 "$role_pid" 2>/dev/null
}
has_answered() { # ROLE
	answers_tries=0
	while [ -e "$RUN/$1.asked" ]; do
		answers_tries=$((answers_tries + 1))
		[ "$answers_tries" -le 300 ] || return 1
		sleep 0.02
		[ ! -e "$RUN/$1.asked" ] || { process_of "$1" && kill -USR1 "$role_pid" 2>/dev/null; } || return 1
	done
}
watched() { # start what is not there; both are asked before either is waited for
	watched_asked=
	for watched_role in watch keep; do
		! ask "$watched_role" || watched_asked="$watched_asked $watched_role"
	done
	for watched_role in watch keep; do
		case $watched_asked in *" $watched_role"*) ! has_answered "$watched_role" || continue ;; esac
		start_role "$watched_role" || return 1
	done
}
start_role() { # ROLE
	end_role "$1"
	for way in watch_by_systemd watch_by_setsid watch_by_nohup; do
		"$way" "$1" </dev/null >/dev/null 2>&1 8>&- 9>&- || continue
		tries=0
		until process_of "$1" && answers "$1"; do
			tries=$((tries + 1))
			[ "$tries" -lt 100 ] || continue 2
			sleep 0.05
		done
		return 0
	done
	return 1
}
end_role() { # ROLE: one that is stopped or hangs, also one that was stopped while it retired
	for role_file in "$(number_file "$1")" "$RUN/$1.lock"; do
		! process_in "$role_file" "$1" || kill -9 "$role_pid" 2>/dev/null
	done
	rm -f "$(number_file "$1")"
}
let_end() { # ROLE that has retired: one that was stopped just then goes on, and ends
	let_end_tries=50
	until flock -n "$RUN/$1.lock" true || succeeded "$1" || [ "$let_end_tries" -eq 0 ]; do
		let_end_tries=$((let_end_tries - 1))
		! process_in "$RUN/$1.lock" "$1" || kill -CONT "$role_pid" 2>/dev/null
		sleep 0.1
	done
}
succeeded() { # ROLE: it has its lock by right again; who begins a change just now waits for us, too
	process_of "$1" || return 1
	succeeded_pid=$role_pid
	process_in "$RUN/$1.lock" "$1" && [ "$role_pid" = "$succeeded_pid" ]
}
# A service outlives the connection, and systemd starts it again should somebody end it.
watch_by_systemd() {
	[ -d /run/systemd/system ] && systemd-run --quiet --collect --unit="wulf-guard-$1-$$-$(now)" -p Restart=on-failure \
		-p RestartSec=100ms -p StartLimitIntervalSec=0 /bin/sh "$STATE/guard" "$1"
}
watch_by_setsid() { command -v setsid && { setsid /bin/sh "$STATE/guard" "$1" & }; }
watch_by_nohup() { nohup /bin/sh "$STATE/guard" "$1" & }

take_role() { # ROLE; the lock of one that was ended just now is free in a moment
	exec 8<>"$RUN/$1.lock"
	flock -w 5 8 || exit 0
	{ echo $$ >&8; } 2>/dev/null || :
	role=$1
	role_file=$(number_file "$role")
	# To systemd an end by these would be one as wanted.
	trap 'exit 1' HUP INT TERM PIPE
	trap woken=1 USR1
	promise 30 || exit 1
	keep_in_run "$(basename "$role_file")" $$ || exit 1
}
promise() { # seconds; what is there is written over, which needs no space
	[ -n "${role:-}" ] || return 0
	read_uptime
	{ printf '%012d\n' $((uptime_s + $1)) 1<>"$RUN/$role.until"; } 2>/dev/null
}
show() { # seconds: there, and for so long to come; the end when its role was given to another or is over
	if ! { read -r shown_pid <"$role_file" && [ "$shown_pid" = $$ ]; }; then
		[ "$role" = watch ] || let_end watch
		exit 0
	fi
	promise "$1"
	[ ! -e "$RUN/$role.asked" ] || rm -f "$RUN/$role.asked"
} 2>/dev/null
mind() { # ROLE FILE: start it again when it is gone, stopped, or has not kept its promise
	minded_pid=
	{ read -r minded_pid <"$2"; } 2>/dev/null
	if [ -n "$minded_pid" ] && keeps_promise "$1" && ! is_stopped "$minded_pid"; then
		# The process that was looked at closely before is told by its number and its begin.
		[ "$minded_pid $stat_begin" != "${minded:-}" ] || return 0
		minded="$minded_pid $stat_begin"
		! process_of "$1" || return 0
	fi
	minded=
	[ -e "$role_file" ] || return 0 # both have just retired
	note "the guard's process '$1' does not answer: it is started again"
	start_role "$1"
}
keeps_promise() { # ROLE
	promised_s=
	{ read -r promised_s <"$RUN/$1.until"; } 2>/dev/null
	promised_s=${promised_s#"${promised_s%%[!0]*}"} # or it would be octal
	read_uptime
	[ "$uptime_s" -lt "${promised_s:-0}" ]
}
is_stopped() { # PID; sets stat_begin, when it began
	stat=
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null
	stat=${stat##*) }
	set -- $stat
	stat_begin=${20:-}
	case ${1:-} in T | t) return 0 ;; *) return 1 ;; esac
}
pause() { # a signal ends the wait, not the sleep, whose number is nobody else's as long as it was not waited for
	sleep "$1" 8>&- &
	wait $! || { kill $! 2>/dev/null && wait $! 2>/dev/null; }
}

keep() {
	take_role keep
	while :; do
		show 60
		mind watch "$RUN/watcher"
		pause "$KEEP_S"
	done
}
watch() {
	take_role watch
	minds_from=$(($(now) + SETTLE_S))
	while :; do
		show 60
		glance
		glanced=$glance
		looks_again=$((uptime_s + 30)) # at all, whatever a glance says
		woken=
		wait_s=$WATCH_S # a signal that comes just before the wait is not seen
		for left in $(open_changes); do
			left_s=$(($(due_at "$left") - $(now)))
			if [ "$left_s" -le 0 ]; then
				overdue
				left_s=1
			fi
			[ "$left_s" -ge "$wait_s" ] || wait_s=$left_s
		done
		if [ -z "$(open_changes)" ]; then
			retire
			wait_s=1
		fi
		while :; do
			[ "$uptime_s" -lt "$minds_from" ] || mind keep "$RUN/keeper"
			[ -n "$woken" ] || pause "$wait_s"
			show 60
			glance
			[ -z "$woken" ] && [ "$glance" = "$glanced" ] && [ "$uptime_s" -lt "$looks_again" ] &&
				[ $((earliest_s - uptime_s)) -gt 0 ] || break
			wait_s=$WATCH_S
			[ $((earliest_s - uptime_s)) -ge "$wait_s" ] || wait_s=$((earliest_s - uptime_s))
		done
	done
}
glance() { # how the changes stand that have a deadline; sets earliest_s, the earliest one
	glance=
	earliest_s=
	for glance_file in "$RUN"/deadline.* "$RUN"/retry.*; do
		glance_tx=${glance_file##*/}
		glance_s=
		glance_state=
		{ read -r glance_s _ <"$glance_file"; } 2>/dev/null
		{ read -r glance_state <"$STATE/tx/${glance_tx#*.}/state"; } 2>/dev/null
		glance="$glance $glance_tx=$glance_s:$glance_state"
		case $glance_s in '' | *[!0-9]*) continue ;; esac
		[ -n "$earliest_s" ] && [ "$earliest_s" -le "$glance_s" ] || earliest_s=$glance_s
	done
	earliest_s=${earliest_s:-0}
	read_uptime
}
overdue() { # in a shell of its own: the lock must go when it is done
	if is_stuck "$left"; then # while somebody is at work on something else it can wait
		flock -n "$RUN/mutex" true || return
	elif ! flock -w 5 "$RUN/mutex" true; then
		is_overdue "$left" || return # it came to its end meanwhile
		note "the guard at work hangs: it is ended"
		end_looks
		hanging=$(cat "$RUN/holder" 2>/dev/null) && [ -n "$hanging" ] && end_guard "$hanging"
	fi
	(
		exclusively
		rotate
		is_overdue "$left" && give_up "$left"
	) 8>&-
}
is_overdue() { # TX
	read_state "$1"
	! is_over "$state_word" && is_late "$1"
}
retire() { # nothing is open; decided under the lock, so that no `begin` counts on this watcher
	(
		flock -n 9 || exit 1 # who is at work may begin something, and waits for us to answer
		tidy || exit 1
		! process_of keep || { kill -USR1 "$role_pid" && kill -CONT "$role_pid"; } # also one that somebody has stopped
		rm -f "$RUN/keeper" "$RUN/watcher" # in this order: a keeper that misses its watcher starts another one
	) 8>&- 9>"$RUN/mutex" && exit 0
}
