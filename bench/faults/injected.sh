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
watch_by_systemd() { [ ! -e /run/wulf-fault/bare ] && watched_by_systemd "$@"; }
pm_qos_by_systemd() { [ ! -e /run/wulf-fault/bare ] && held_by_systemd "$@"; }
# Control of sibling threads, whose files come and go with them, in a tree that an order has made.
planted_smt_save() { file_save "$1" "$2"; }
planted_smt_put() {
	echo "$3" >"$2"
	case $3 in
	off) rm -rf "${2%/*}/cpu1" ;;
	on) [ -d "${2%/*}/cpu1" ] || { mkdir "${2%/*}/cpu1" && echo kernel >"${2%/*}/cpu1/governor"; } ;;
	esac
}
planted_smt_restore() { IFS=$TAB read -r _ smt_before && planted_smt_put "$1" "$2" "$smt_before"; }
planted_smt_get() { file_get "$1" "$2"; }
