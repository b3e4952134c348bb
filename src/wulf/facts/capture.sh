# Read-only look at one node. POSIX sh; run as: sh -s -- [INTERFACE] <capture.sh
# Prints "#name", then the content with a space before each line; or "!name reason" when it cannot be had.
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"

section() { # name, text
	printf '#%s\n' "$1"
	printf '%s\n' "$2" | sed 's/^/ /'
}
run() { # name, command...
	name=$1
	shift
	if ! command -v "$1" >/dev/null 2>&1; then
		printf '!%s %s is not installed\n' "$name" "$1"
	elif out=$("$@" 2>&1); then
		section "$name" "$out"
	else
		printf '!%s %s failed: %s\n' "$name" "$1" "$(printf '%s' "$out" | tail -n 1)"
	fi
}
file() { # name, path
	if [ ! -e "$2" ]; then
		printf '!%s there is no %s\n' "$1" "$2"
	elif out=$(cat "$2" 2>&1); then
		section "$1" "$out"
	else
		printf '!%s %s\n' "$1" "$out"
	fi
}

run hostname uname -n
run kernel uname -r
run arch uname -m
file os /etc/os-release
run lscpu lscpu
file cpu_status /proc/self/status
file smt /sys/devices/system/cpu/smt/control
governors=$(cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u)
if [ -n "$governors" ]; then
	section governor "$governors"
else
	echo '!governor the kernel offers no cpufreq'
fi
file clock_source /sys/devices/system/clocksource/clocksource0/current_clocksource
file meminfo /proc/meminfo
file uptime /proc/uptime
file loadavg /proc/loadavg
run libc getconf GNU_LIBC_VERSION

if [ -r /run/systemd/container ]; then
	file container /run/systemd/container
elif [ -e /.dockerenv ]; then
	section container docker
elif [ -r /proc/1/environ ]; then
	section container "$(tr '\0' '\n' </proc/1/environ | sed -n 's/^container=//p')"
else
	echo '!container only root can see it'
fi

run addresses ip -o addr show
if [ -n "$1" ]; then
	net=/sys/class/net/$1
	if [ -e "$net" ]; then
		section nic "$1"
		file nic_mtu "$net/mtu"
		file nic_state "$net/operstate"
		file nic_speed "$net/speed"
		file nic_duplex "$net/duplex"
		if [ -e "$net/device" ]; then
			section nic_device "$(basename "$(readlink -f "$net/device")")"
		else
			echo '!nic_device it is a virtual interface'
		fi
		run ethtool ethtool -i "$1"
	else
		printf '!nic there is no interface %s\n' "$1"
	fi
fi

run openmpi ompi_info --version
run mpich mpichversion
