# --- one guard at a time -----------------------------------------------------------------------------------

exclusively() { # the lock goes with the process, however that ends
	command -v flock >/dev/null 2>&1 || fail 1 "flock (util-linux) is not installed"
	[ -e "$RUN/mutex" ] || { true >>"$RUN/mutex"; } 2>/dev/null || fail 1 "cannot write to $RUN"
	exec 9>"$RUN/mutex"
	flock -w "$WAIT_S" 9 || { end_looks && flock -w 5 9; } ||
		fail 10 "another guard is at work for more than $WAIT_S s: $(cat "$RUN/holder" 2>/dev/null)"
	# A guard that was killed may have left tools at work, which would go on setting things behind our back.
	[ ! -s "$RUN/holder" ] || end_guard "$(cat "$RUN/holder")"
	keep_in_run holder "$MARK" || case $verb in
	watch | undo | recover) WORK_PLACE=$STATE ;; # what only puts back does so without it
	*) fail 1 "cannot write to $RUN: is it full?" ;;
	esac
	clear_away "$RUN"/work.* "$STATE"/work.*
	trap 'rm -rf "$RUN/holder" "$RUN/work.$$" "$STATE/work.$$"' EXIT
	mkdir "${WORK_PLACE:-$RUN}/work.$$" 2>/dev/null || :
}
looking() { # beside others that look, and not while a guard is at work; leaves nothing behind
	WORK_PLACE=$(mktemp -d) || fail 1 "cannot make a temporary directory"
	trap 'rm -rf "$WORK_PLACE"' EXIT
	[ -e "$RUN/mutex" ] && command -v flock >/dev/null 2>&1 || return 0
	exec 9<"$RUN/mutex"
	flock -s -w "$WAIT_S" 9 || fail 10 "another guard is at work for more than $WAIT_S s: $(cat "$RUN/holder" 2>/dev/null)"
}
marked() { # every process of this guard has its mark in the environment, so that none is mistaken for another's
	MARK=${WULF_GUARD:-}
	# sudo may run it by a file descriptor, which is not there for another shell.
	case $0 in /dev/fd/* | /proc/*) marked_self=$STATE/guard ;; *) marked_self=$0 ;; esac
	marked_as=${looks:+$(looks_mark)}$$.
	case $MARK in "$marked_as"*.) ;; *) WULF_GUARD=$marked_as$(now). exec /bin/sh "$marked_self" "$@" ;; esac
}
end_guard() { # mark
	[ "$1" != "$MARK" ] || return 0
	for marked_environ in $(grep -lsF "WULF_GUARD=$1" /proc/[0-9]*/environ); do
		marked_pid=${marked_environ%/environ}
		kill -9 "${marked_pid#/proc/}" 2>/dev/null
	done
}
looks_mark() { printf 'looks.%s.' "$(stat -c %d.%i "$RUN/mutex" 2>/dev/null)"; } # who waits for this very lock
end_looks() { # those whose reader has stopped reading, say: nothing is lost with them, and no undo may wait for them
	end_guard "$(looks_mark)"
}
require_owner() { # OWNER
	[ -s "$RUN/lock" ] || fail 10 "nobody has taken this node: lock it first"
	read_lock
	[ "$lock_owner" = "$1" ] || fail 10 "$lock_owner has this node since $(($(now) - lock_since)) s"
}
read_lock() {
	IFS=$TAB read -r lock_owner lock_since lock_until <"$RUN/lock"
}
lock() { # OWNER, LEASE_S
	since=$(now)
	if [ -s "$RUN/lock" ]; then
		read_lock
		if [ "$lock_owner" = "$1" ]; then
			since=$lock_since
		elif [ "$(now)" -lt "$lock_until" ]; then
			fail 10 "$lock_owner has this node since $(($(now) - lock_since)) s, for $((lock_until - $(now))) s more at most"
		else
			note "the lease of $lock_owner is over: $1 takes the node"
			for left in $(open_changes unfinished); do
				undo "$left" "its owner is gone"
			done
		fi
	fi
	keep_in_run lock "$1$TAB$since$TAB$(($(now) + $2))" || fail 1 "cannot write to $RUN: is it full?"
}
unlock() { # OWNER
	[ -s "$RUN/lock" ] || return 0
	read_lock
	[ "$lock_owner" != "$1" ] || rm -f "$RUN/lock"
}
