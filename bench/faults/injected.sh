# Comes before the guard's last line. `note` is called at every step of a guard; `verb` is what it was started for.
note() {
	noted "$@"
	[ ! -e /run/wulf-fault/record ] || printf '%s: %s\n' "$verb" "$*" >>/run/wulf-fault/record
	[ -e /run/wulf-fault/at ] || return 0
	IFS= read -r fault_at </run/wulf-fault/at
	# shellcheck disable=SC2254 # a pattern
	case "$verb: $*" in $fault_at) ;; *) return 0 ;; esac
	mv /run/wulf-fault/at /run/wulf-fault/hit 2>/dev/null || return 0
	"fault_$(cat /run/wulf-fault/do)"
}
fault_guard() { kill -9 $$; }
fault_watcher() { kill -9 "$(cat "$RUN/watcher")"; }
fault_both() {
	kill -9 "$(cat "$RUN/watcher")"
	kill -9 $$
}
fault_sshd() { # the session that this guard was started by
	fault_pid=$$
	until [ "$fault_pid" -le 1 ]; do
		fault_pid=$(awk '/^PPid/ { print $2 }' "/proc/$fault_pid/status")
		case $(cat "/proc/$fault_pid/comm") in sshd*) kill -9 "$fault_pid" && return ;; esac
	done
}
fault_hang() { # a guard is ended by the watcher; a tool of the watcher itself, by its own limit
	if [ "$verb" = watch ]; then sleep 12 9>&-; else sleep 60 9>&-; fi
}
fault_full() { cat /dev/zero >"$STATE/fill" 2>/dev/null; }
fault_second() { sh "$STATE/guard" lock second 1 >/dev/null 2>&1 9>&- & }
fault_pause() { # somebody outside does it meanwhile
	fault_tries=0
	until [ -e /run/wulf-fault/go ] || [ "$fault_tries" -ge 600 ]; do
		fault_tries=$((fault_tries + 1))
		sleep 0.05 9>&-
	done
}
