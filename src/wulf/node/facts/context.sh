# Counters of one node, cheap enough to read around every launch. POSIX sh; run as: cat energy.sh context.sh | sh -s -- [INTERFACE [ROOT]]
# Prints "#name", then the content with a space before each line; or "!name reason" when it cannot be had.
# What the shell can read itself starts no process.
export LC_ALL=C
line() { # name, what its line begins with, path
	while read -r text; do
		case $text in "$2"*)
			printf '#%s\n %s\n' "$1" "$text"
			return 0
			;;
		esac
	done 2>/dev/null <"$3"
	return 1
}
get() { # name, beginning, path
	if [ -r "$3" ]; then
		line "$@"
	else
		printf '!%s there is no %s\n' "$1" "$3"
	fi
}
lines() { # name, pattern, path
	if [ -r "$3" ]; then
		printf '#%s\n' "$1"
		sed -nE "s/$2/ &/p" "$3"
	else
		printf '!%s there is no %s\n' "$1" "$3"
	fi
}
values() { # name, paths: the first line of each
	name=$1
	shift
	if [ ! -r "$1" ]; then
		printf '!%s there is no %s\n' "$name" "$1"
		return
	fi
	printf '#%s\n' "$name"
	for path; do
		text=
		{ read -r text <"$path"; } 2>/dev/null
		[ -z "$text" ] || printf ' %s:%s\n' "$path" "$text"
	done
}
get uptime '' /proc/uptime
lines stat '^(cpu[0-9]|ctxt)' /proc/stat
waited=no
[ -r /proc/pressure/cpu ] && line pressure some /proc/pressure/cpu && waited=yes
# The kernel may keep no pressure information, or be told at boot not to.
if [ "$waited" = no ]; then
	echo '!pressure there is no /proc/pressure/cpu'
	lines schedstat '^cpu' /proc/schedstat
fi
get loadavg '' /proc/loadavg
get allowed Cpus_allowed_list /proc/self/status
values frequency /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq
energy "$2"
if [ -n "$1" ]; then
	values nic /sys/class/net/"$1"/statistics/*errors /sys/class/net/"$1"/statistics/*dropped
fi
