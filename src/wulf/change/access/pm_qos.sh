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
pm_qos_hold() { # device, limit; the process that sleeps is the one that holds it
	rm -f "$RUN/pm_qos"
	# The kernel takes ten characters of hexadecimal text.
	env WULF_GUARD= holds=cpu_dma_latency sh -c 'exec 3>"$1" && printf "0x%08x" "$2" >&3 &&
		echo "$$ $2" >"$3.new" && mv "$3.new" "$3" && exec sleep 2147483647' \
		hold "$1" "$2" "$RUN/pm_qos" </dev/null >/dev/null 2>&1 &
	pm_qos_tries=0
	until [ -n "$(pm_qos_holder)" ]; do
		pm_qos_tries=$((pm_qos_tries + 1))
		if [ "$pm_qos_tries" -ge 40 ]; then
			[ -z "$pm_qos_old" ] || printf '%s\n' "$pm_qos_old" >"$RUN/pm_qos"
			return 1
		fi
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
