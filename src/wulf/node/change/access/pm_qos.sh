# The longest wake-up the CPUs may need [us]: it holds while a process keeps /dev/cpu_dma_latency open.
pm_qos_holder() { # prints the process and its limit
	[ -s "$RUN/pm_qos" ] && read -r pm_qos_pid pm_qos_us <"$RUN/pm_qos" &&
		grep -q cpu_dma_latency "/proc/$pm_qos_pid/environ" 2>/dev/null && echo "$pm_qos_pid $pm_qos_us"
}
pm_qos_save() {
	[ -w "$2" ] || { echo "there is no $2 that can be written" >&2; return 1; }
	pm_qos_get "$1" "$2"
}
pm_qos_put() {
	pm_qos_old=$(pm_qos_holder)
	if [ "$3" = unlimited ]; then
		rm -f "$RUN/pm_qos"
	else
		pm_qos_hold "$2" "$3" || { echo "$2 does not take $3" >&2; return 1; }
	fi
	[ -z "$pm_qos_old" ] || kill "${pm_qos_old% *}"
}
pm_qos_hold() { # device, limit
	rm -f "$RUN/pm_qos" "$RUN/pm_qos.refused"
	pm_qos_program >"$RUN/pm_qos.hold" || return 1
	for pm_qos_way in pm_qos_by_systemd pm_qos_by_setsid pm_qos_by_nohup; do
		"$pm_qos_way" env WULF_GUARD= holds=cpu_dma_latency sh "$RUN/pm_qos.hold" "$1" "$2" "$RUN/pm_qos" \
			</dev/null >/dev/null 2>&1 && pm_qos_held && return
		[ ! -e "$RUN/pm_qos.refused" ] || break
	done
	[ -z "$pm_qos_old" ] || printf '%s\n' "$pm_qos_old" >"$RUN/pm_qos"
	return 1
}
pm_qos_program() { # the process that sleeps is the one that holds it; the kernel takes ten characters of hexadecimal text
	cat <<-'END'
		trap 'echo >"$3.refused"' EXIT
		exec 3>"$1" && printf "0x%08x" "$2" >&3 && echo "$$ $2" >"$3.new" && mv "$3.new" "$3" && exec sleep 2147483647
	END
}
# A holder outlives the unit or the connection of whoever starts it; in a service that keeps settings it is a part of that.
pm_qos_by_systemd() {
	[ -d /run/systemd/system ] && [ -z "${keeps_in_service:-}" ] &&
		systemd-run --quiet --collect --unit="wulf-latency-$$-$(date +%s%N)" "$@"
}
pm_qos_by_setsid() { command -v setsid && { setsid "$@" & }; }
pm_qos_by_nohup() { nohup "$@" & }
pm_qos_held() {
	pm_qos_tries=0
	until [ -n "$(pm_qos_holder)" ]; do
		pm_qos_tries=$((pm_qos_tries + 1))
		[ "$pm_qos_tries" -lt 200 ] && [ ! -e "$RUN/pm_qos.refused" ] || return 1
		sleep 0.05
	done
}
pm_qos_restore() {
	read -r pm_qos_before
	pm_qos_put "$1" "$2" "$pm_qos_before"
}
pm_qos_get() {
	pm_qos_now=$(pm_qos_holder)
	[ -n "$pm_qos_now" ] && echo "${pm_qos_now#* }" || echo unlimited
}
