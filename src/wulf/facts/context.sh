# Counters of one node, cheap enough to read around every launch. POSIX sh; run as: sh -s -- [INTERFACE] <context.sh
# Prints "#name", then the content with a space before each line; or "!name reason" when it cannot be had.
export LC_ALL=C
get() { # name, pattern, path...
	name=$1
	pattern=$2
	shift 2
	if [ -r "$1" ]; then
		printf '#%s\n' "$name"
		grep -E "$pattern" "$@" 2>&1 | sed 's/^/ /'
	else
		printf '!%s there is no %s\n' "$name" "$1"
	fi
}
get uptime . /proc/uptime
get stat '^(cpu[0-9]|ctxt)' /proc/stat
get pressure '^some' /proc/pressure/cpu
get schedstat '^cpu' /proc/schedstat
get loadavg . /proc/loadavg
get allowed '^Cpus_allowed_list' /proc/self/status
get frequency . /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq /dev/null
if [ -n "$1" ]; then
	get nic . /sys/class/net/"$1"/statistics/*errors /sys/class/net/"$1"/statistics/*dropped
fi
