# Read-only look at one node: what it is, how it is set, what its counters do within a second.
#
#   sh -s -- [INTERFACE [WORD...]] <capture.sh
#
# INTERFACE carries the cluster's traffic. A WORD that begins with / is a file (or a pattern of files) to read
# beside those named here; another is the name of an Open MPI parameter.
#
# Needs no root, except for: packet filter rules, iptables' tables, some drivers' registers. Writes nothing.
#
# Prints a tree, line by line:
#   /path:text       one line of a file
#   #name code       output of a command that ended with `code`; its lines follow, each after a space
#   !name reason     why the file or output `name` cannot be had
#   -                another batch of files begins; a file that comes again is passed over
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin" SYSTEMD_COLORS=0 SYSTEMD_PAGER=
exec 4>&1
interface=${1:-}
[ $# -gt 0 ] && shift
# Nothing may hang the look: a dead file server, a service that does not answer.
limit=
command -v timeout >/dev/null 2>&1 && limit='timeout -k 1 3'

show() { # name, code; text on stdin
	printf '#%s %s\n' "$1" "$2"
	awk -v name="$1" 'NR <= 4000 { print " " substr($0, 1, 1000) }
		END { if (NR > 4000) print "!" name " is longer than 4000 lines" }'
}
run() { # name, command...
	name=$1
	shift
	if ! command -v "$1" >/dev/null 2>&1; then
		printf '!%s %s is not installed\n' "$name" "$1"
		return
	fi
	out=$($limit "$@" 2>&1 </dev/null)
	code=$?
	printf '%s\n' "$out" | show "$name" "$code"
}
reasons() { # what grep said on stderr
	[ -z "$1" ] || printf '%s\n' "$1" | sed -n 's/^grep: \(\/.*\): \([^:]*\)$/!\1 \2/p'
}
files() { # paths...
	echo -
	reasons "$({ $limit grep '' /dev/null "$@" >&4; } 2>&1)"
}
settings() { # paths of configuration files: without comments, blank lines, and what may be a secret
	echo -
	reasons "$({ $limit grep -Evi '^[[:space:]]*([#;]|$)|passw|passphrase|secret|psk|wpa|private|preshared|_?key' \
		/dev/null "$@" >&4; } 2>&1)"
}

counters() { # 1 or 2: which look
	run "time.$1" cat /proc/uptime
	grep -E '^(cpu |ctxt |btime )' /proc/stat | show "stat.$1" 0
	awk 'NR == 1 { for (i = 1; i <= NF; i++) cpu[i + 1] = substr($i, 4); n = NF + 1; next }
		{ total = 0; most = 0; busiest = "-"; name = ""
		  for (i = 2; i <= n && $i ~ /^[0-9]+$/; i++) {
			total += $i
			if ($i > most) { most = $i; busiest = cpu[i] }
		  }
		  for (; i <= NF; i++) name = name " " $i
		  print $1, total, busiest, most name }' /proc/interrupts 2>/dev/null | show "interrupts.$1" 0
	cat /proc/net/softnet_stat 2>/dev/null | show "softnet.$1" 0
	grep -E '^(Tcp|Udp|Ip|TcpExt):' /proc/net/snmp /proc/net/netstat 2>/dev/null | show "protocols.$1" 0
	for nic in $chosen; do
		grep '' /dev/null "/sys/class/net/$nic/statistics"/* 2>/dev/null | show "statistics.$nic.$1" 0
		if command -v ethtool >/dev/null 2>&1; then
			ethtool -S "$nic" 2>/dev/null |
				grep -iE 'err|drop|discard|crc|miss|fifo|timeout|overrun|buf|lost|coll|interrupt' |
				show "ethtool-S.$nic.$1" 0
		fi
	done
}

# Interfaces: the physical ones, the cluster's, and what that one is made of.
chosen=
links=
for path in /sys/class/net/*; do
	nic=${path##*/}
	device=-
	driver=-
	if [ -e "$path/device" ]; then
		device=$(readlink -f "$path/device")
		device=${device##*/}
		driver=$(readlink "$path/device/driver")
		driver=${driver##*/}
	fi
	master=-
	[ -e "$path/master" ] && master=$(readlink "$path/master") && master=${master##*/}
	lower=
	for below in "$path"/lower_*; do
		[ -e "$below" ] && lower="$lower,${below##*/lower_}"
	done
	links="$links$nic $device ${driver:--} $master ${lower:--}
"
	[ "$nic" = lo ] && continue
	if [ "$device" != - ] || [ "$nic" = "$interface" ] || [ -e "/sys/class/net/$interface/lower_$nic" ]; then
		chosen="$chosen $nic"
	fi
done
# shellcheck disable=SC2086 # a list of names
chosen=$(printf '%s\n' $chosen | head -n 16)
counters 1
sleep 1 &
pause=$!

run id id -u
run hostname uname -n
run kernel uname -r
run arch uname -m
run libc getconf GNU_LIBC_VERSION
run lscpu lscpu
settings /etc/os-release
files /proc/cmdline /proc/meminfo /proc/uptime /proc/loadavg /proc/swaps /proc/modules /proc/1/stat \
	/proc/self/status /proc/pressure/cpu
files /sys/devices/system/cpu/smt/* /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full \
	/sys/devices/system/cpu/online /sys/devices/system/cpu/vulnerabilities/* \
	/sys/devices/system/cpu/cpu*/cpufreq/scaling_* /sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_m??_freq \
	/sys/devices/system/cpu/cpuidle/* /sys/devices/system/cpu/cpu0/cpuidle/state*/name \
	/sys/devices/system/cpu/cpu0/cpuidle/state*/latency \
	/sys/devices/system/clocksource/clocksource0/* /sys/devices/system/node/online \
	/sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
	/sys/kernel/mm/ksm/run /sys/module/pcie_aspm/parameters/policy /sys/class/dmi/id/sys_vendor \
	/sys/class/dmi/id/product_name /sys/class/dmi/id/bios_version /sys/class/dmi/id/bios_date
if [ -r /dev/cpu_dma_latency ]; then
	od -An -td4 -N4 /dev/cpu_dma_latency 2>&1 | show pm_qos $?
else
	printf '!pm_qos %s\n' "$([ -e /dev/cpu_dma_latency ] && echo 'only root may read it' || echo 'there is no /dev/cpu_dma_latency')"
fi
if [ -r /run/systemd/container ]; then
	cat /run/systemd/container | show container 0
elif [ -e /.dockerenv ]; then
	echo docker | show container 0
elif [ -r /proc/1/environ ]; then
	tr '\0' '\n' </proc/1/environ | sed -n 's/^container=//p' | show container 0
else
	echo '!container only root can see it'
fi

# The words given: files and parameters.
parameters=
for word; do
	case $word in
	/*) # shellcheck disable=SC2086 # a pattern
		files $word ;;
	*) parameters="$parameters|$word" ;;
	esac
done
# Not the keys, and not what does something when it is read.
# shellcheck disable=SC2046 # a list of paths
files $(ls -d /proc/sys/net/core/* /proc/sys/net/ipv4/tcp_* /proc/sys/vm/* 2>/dev/null |
	grep -Ev 'key|/stat_refresh$|/compact_memory$|/drop_caches$')
files /proc/sys/net/ipv4/udp_* /proc/sys/net/ipv4/ip_forward \
	/proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/netfilter/nf_conntrack_count \
	/proc/sys/net/netfilter/nf_conntrack_max /proc/sys/net/ipv4/neigh/default/gc_thresh* \
	/proc/sys/kernel/sched_* /proc/sys/kernel/numa_* /proc/sys/kernel/*watchdog* \
	/proc/sys/kernel/timer_migration /proc/sys/kernel/randomize_va_space /proc/sys/kernel/perf_event_paranoid \
	/proc/sys/kernel/pid_max /proc/sys/kernel/threads-max /proc/sys/kernel/tainted /proc/sys/fs/file-max

# Network.
printf '%s' "$links" | show links 0
for nic in $chosen; do
	path=/sys/class/net/$nic
	files "$path"/mtu "$path"/address "$path"/operstate "$path"/speed "$path"/duplex "$path"/type \
		"$path"/carrier_changes "$path"/tx_queue_len
	if [ -e "$path/device" ]; then
		files "$path"/device/numa_node "$path"/device/*_link_speed "$path"/device/*_link_width \
			"$path"/device/vendor "$path"/device/device
		for irqs in "$path/device/msi_irqs" "$path/device/../msi_irqs"; do
			[ -d "$irqs" ] && ls "$irqs" | show "irqs.$nic" 0 && break
		done
	fi
	if ! command -v ethtool >/dev/null 2>&1; then
		printf '!ethtool ethtool is not installed\n'
		continue
	fi
	for option in '' -i -P -c -g -l -k -a --show-eee; do
		# shellcheck disable=SC2086 # none or one option
		run "ethtool$option.$nic" ethtool $option "$nic"
	done
done
run ethtool_version ethtool --version
for path in /sys/class/net/*; do
	files "$path/mtu" "$path/operstate" "$path/address"
done
files /proc/irq/*/smp_affinity_list /proc/irq/*/effective_affinity_list
run addresses ip -o addr show
run routes ip route show
run rules ip rule show
run qdiscs tc qdisc show
settings /etc/resolv.conf /etc/nsswitch.conf /etc/hosts
run resolve sh -c 'date +%s%N; getent ahostsv4 "$(uname -n)"; date +%s%N'

# Packet filter. The old iptables is only asked where the kernel has its tables: asking would load them.
# Where the kernel has not loaded it there are no rules, and asking would load it.
if grep -q . /proc/modules 2>/dev/null && ! grep -q '^nf_tables ' /proc/modules &&
	! grep -q '/nf_tables\.ko' "/lib/modules/$(uname -r)/modules.builtin" 2>/dev/null; then
	printf '#nft 0\n'
else
	run nft nft -nn -t list ruleset
fi
run iptables_version iptables -V
run ip_tables_names cat /proc/net/ip_tables_names
if grep -q . /proc/net/ip_tables_names 2>/dev/null; then
	if command -v iptables-legacy-save >/dev/null 2>&1; then
		run iptables_legacy iptables-legacy-save
	else
		run iptables_legacy iptables-save
	fi
fi
run firewalld_zones firewall-cmd --get-active-zones

# Services, and what keeps settings over a reboot.
run system_state systemctl is-system-running
run units systemctl list-units --type=service,timer,socket --all --plain --no-legend --no-pager
# Patterns are applied by systemd itself, before it looks up each unit's state in all directories; a type is not.
run unit_files systemctl list-unit-files --no-legend --no-pager '*.service' '*.timer' '*.socket'
if command -v systemctl >/dev/null 2>&1; then
	enabled=$(printf '%s\n' "$out" | awk '$1 ~ /[^@]\.service$/ && $2 == "enabled" { print $1 }')
	# shellcheck disable=SC2086 # a list of units
	[ -n "$enabled" ] && run enabled systemctl show -p Id -p Type -p ActiveState -p SubState \
		-p ConditionResult -p ConditionTimestampMonotonic -p RemainAfterExit -p TriggeredBy $enabled
fi
settings /etc/sysctl.conf /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf \
	/usr/lib/sysctl.d/*.conf /lib/sysctl.d/*.conf
settings /etc/modprobe.d/*.conf /etc/network/interfaces /etc/network/interfaces.d/* /etc/netplan/*.yaml \
	/etc/systemd/network/*.network /etc/systemd/network/*.netdev /etc/sysconfig/network-scripts/ifcfg-* \
	/etc/tuned/active_profile /etc/tuned/profile_mode /etc/tuned/*/tuned.conf /etc/tuned/profiles/*/tuned.conf \
	/usr/lib/tuned/*/tuned.conf /usr/lib/tuned/profiles/*/tuned.conf /etc/default/irqbalance /etc/sysconfig/irqbalance \
	/etc/default/cpufrequtils /etc/openmpi/openmpi-mca-params.conf "$HOME/.openmpi/mca-params.conf"
for directory in /etc /run /usr/local/lib /usr/lib /lib; do
	settings "$directory"/systemd/network/*.link "$directory"/systemd/network/*.link.d/*.conf \
		"$directory"/systemd/network/*.network.d/*.conf
done
run systemd_version systemctl --version
run wulf_kept grep -hs '^keep ' /etc/wulf/settings.sh
run wulf_files grep -ls '^# Written by wulf' /etc/sysctl.d/*wulf.conf /etc/systemd/network/*-wulf-*.link \
	/etc/systemd/network/*.network.d/90-wulf.conf /etc/modprobe.d/wulf.conf /etc/wulf/settings.sh \
	/etc/systemd/system/wulf-*.service /etc/systemd/system/*.wants/wulf-*.service \
	/etc/systemd/system/*.service.d/90-wulf.conf /etc/network/if-up.d/wulf-settings \
	/etc/NetworkManager/dispatcher.d/90-wulf-settings
if [ -n "$interface" ]; then
	settings "/run/systemd/netif/links/$(cat "/sys/class/net/$interface/ifindex" 2>/dev/null)"
	run "udev.$interface" udevadm info --query=property "--path=/sys/class/net/$interface"
	run "nmcli.$interface" nmcli -g GENERAL.STATE device show "$interface"
fi
# Connection files hold secrets beside the settings: only the settings are looked at.
echo -
reasons "$({ $limit grep -E '^(id|interface-name|mac-address|mtu|method|type|ring-|coalesce-|feature-|pause-|channels-|eee-|\[)' \
	/dev/null /etc/NetworkManager/system-connections/* >&4; } 2>&1)"
# Who writes these files, as they say in a comment.
run managed sh -c 'grep -HEim 1 "(ansible|puppet|chef|salt|cfengine|cloud-init).*(managed|controlled|generated|maintained)|(managed|controlled|generated|maintained).*(ansible|puppet|chef|salt|cfengine|cloud-init)" \
	/dev/null /etc/sysctl.conf /etc/sysctl.d/* /etc/network/interfaces /etc/network/interfaces.d/* /etc/netplan/* \
	/etc/systemd/network/* /etc/NetworkManager/system-connections/* /etc/sysconfig/network-scripts/ifcfg-* 2>/dev/null; :'
files /sys/module/e1000/parameters/* /sys/module/e1000e/parameters/* /sys/module/ixgbe/parameters/*
# shellcheck disable=SC2046 # a list of names
run changed stat -c '%Y %n' $(ls -d /etc/sysctl.conf /etc/sysctl.d/* /etc/modprobe.d/* /etc/default/grub \
	/etc/network/interfaces /etc/network/interfaces.d/* /etc/systemd/network/* /etc/nftables.conf \
	/etc/NetworkManager/system-connections/* /etc/sysconfig/network-scripts/ifcfg-* /etc/tuned/active_profile \
	/etc/default/irqbalance /etc/sysconfig/irqbalance /boot/vmlinuz-* /var/run/reboot-required 2>/dev/null)
run disks df -P -l -k / /tmp /var /var/tmp /run /dev/shm
run clock_sync timedatectl show
run chrony chronyc -n tracking

# MPI, and what it computes with.
run openmpi ompi_info --version
if [ -n "$parameters" ] && command -v ompi_info >/dev/null 2>&1; then
	$limit ompi_info --param all all --level 9 --parsable 2>/dev/null |
		grep -E ":param:(${parameters#|}):(value|source):" | show openmpi_parameters 0
fi
run mpich mpichversion
run ucx ucx_info -v
env | grep -E '^(OMPI_|PMIX_|PRTE_|MPIR_|MPICH_|UCX_|I_MPI_|FI_|OMP_|OPENBLAS_|MKL_|BLIS_)' | show environment 0
run libraries sh -c 'ldconfig -p | grep -E "lib(blas|openblas|blis|mkl_rt|atlas|mpi|ucp|fabric)[.-]"'
for library in /usr/lib/*/libblas.so.3 /usr/lib64/libblas.so.3 /etc/alternatives/libblas.so.3*; do
	[ -e "$library" ] && printf '%s %s\n' "$library" "$(readlink -f "$library")"
done | show blas 0

wait "$pause"
counters 2
run date date +%s.%N
