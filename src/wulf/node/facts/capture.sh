# Read-only look at one node: what it is, how it is set, what its counters do within a second.
#
#   sh -s -- [INTERFACE [WORD...]] <capture.sh
#
# INTERFACE carries the cluster's traffic. A WORD that begins with / is a file (or a pattern of files) to read
# beside those named here, {interface} in it INTERFACE and whatever that is made of; another is the name of an Open
# MPI parameter.
#
# Needs no root, except for: packet filter rules, iptables' tables, some drivers' registers. Writes nothing.
#
# Prints a tree, line by line:
#   /path:text       one line of a file
#   #name code       output of a command that ended with `code`; its lines follow, each after a space
#   !name reason     why the file or output `name` cannot be had
#   -                another batch of files begins; a file that comes again is passed over
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin" SYSTEMD_COLORS=0 SYSTEMD_PAGER=
export HOME="${HOME:-/}" # a unit of systemd's has none, without which Open MPI 5's ompi_info says nothing
exec 4>&1
interface=${1:-}
[ $# -gt 0 ] && shift
newline='
'
tab='	'

# A process is what a look costs on a node that is slow: what the shell can do itself starts none.
line() { # name, file: its first line
	text=
	{ read -r text <"$2"; } 2>/dev/null
	[ -z "$text" ] || printf '#%s 0\n %s\n' "$1" "$text"
}
section() { # name: what follows belongs to it; how long each took is seen from these
	line "section.$1" /proc/uptime
}
show() { # name, code; text on stdin
	printf '#%s %s\n' "$1" "$2"
	awk -v name="$1" 'NR <= 4000 { print " " substr($0, 1, 1000) }
		END { if (NR > 4000) print "!" name " is longer than 4000 lines" }'
}
keep() { # name, code, text: without its blank lines
	printf '#%s %s\n' "$1" "$2"
	name=$1
	count=0
	set -f
	IFS=$newline
	for text in $3; do
		count=$((count + 1))
		if [ "$count" -gt 4000 ]; then
			printf '!%s is longer than 4000 lines\n' "$name"
			break
		fi
		printf ' %.1000s\n' "$text"
	done
	IFS=" $tab$newline"
	set +f
}
there() { # name, command
	command -v "$2" >/dev/null 2>&1 || {
		printf '!%s %s is not installed\n' "$1" "$2"
		return 1
	}
}
ask() { # name, command...: of the kernel, which answers or hangs beyond help
	there "$1" "$2" || return 0
	name=$1
	shift
	out=$("$@" 2>&1 </dev/null)
	keep "$name" $? "$out"
}
run() { # name, command...: may wait for a service or a file server
	there "$1" "$2" || return 0
	name=$1
	shift
	out=$($limit "$@" 2>&1 </dev/null)
	keep "$name" $? "$out"
}
reasons() { # what grep said on stderr
	set -f
	IFS=$newline
	for text in $1; do
		case $text in 'grep: /'*': '*)
			text=${text#grep: }
			printf '!%s %s\n' "${text%: *}" "${text##*: }"
			;;
		esac
	done
	IFS=" $tab$newline"
	set +f
}
files() { # paths...
	echo -
	reasons "$($limit grep '' /dev/null "$@" 2>&1 >&4)"
}
settings() { # paths of configuration files: without comments, blank lines, and what may be a secret
	echo -
	reasons "$($limit grep -Evi '^[[:space:]]*([#;]|$)|passw|passphrase|secret|psk|wpa|private|preshared|_?key' \
		/dev/null "$@" 2>&1 >&4)"
}

counters() { # 1 or 2: which look
	line "time.$1" /proc/uptime
	set -- "$1"
	for path in /proc/stat /proc/interrupts /proc/net/softnet_stat /proc/net/snmp /proc/net/netstat; do
		[ -r "$path" ] && set -- "$@" "$path"
	done
	look=$1
	shift
	awk -v look="$look" '
		function begin(name) { print "#" name "." look " 0" }
		FNR == 1 && FILENAME == "/proc/stat" { begin("stat") }
		FNR == 1 && FILENAME == "/proc/interrupts" {
			begin("interrupts")
			for (i = 1; i <= NF; i++) cpu[i + 1] = substr($i, 4)
			n = NF + 1
			next
		}
		FNR == 1 && FILENAME ~ /softnet/ { begin("softnet") }
		FILENAME ~ /snmp|netstat/ && !protocols++ { begin("protocols") }
		FILENAME == "/proc/interrupts" {
			total = 0; most = 0; busiest = "-"; name = ""
			for (i = 2; i <= n && $i ~ /^[0-9]+$/; i++) {
				total += $i
				if ($i > most) { most = $i; busiest = cpu[i] }
			}
			for (; i <= NF; i++) name = name " " $i
			print " " substr($1 " " total " " busiest " " most " " name, 1, 1000)
			next
		}
		FILENAME == "/proc/stat" { if (/^(cpu |ctxt |btime )/) print " " $0; next }
		FILENAME ~ /softnet/ { print " " $0; next }
		/^(Tcp|Udp|Ip|TcpExt):/ { print " " substr(FILENAME ":" $0, 1, 1000) }' "$@"
	for nic in $chosen; do
		printf '#statistics.%s.%s 0\n' "$nic" "$look"
		for path in "/sys/class/net/$nic/statistics"/*; do
			text=
			{ read -r text <"$path"; } 2>/dev/null
			[ -z "$text" ] || printf ' %s:%s\n' "$path" "$text"
		done
		if command -v ethtool >/dev/null 2>&1; then
			printf '#ethtool-S.%s.%s 0\n' "$nic" "$look"
			ethtool -S "$nic" 2>/dev/null | awk 'tolower($0) ~ \
				/err|drop|discard|crc|miss|fifo|timeout|overrun|buf|lost|coll|interrupt|pause|xoff/ { print " " substr($0, 1, 1000) }'
		fi
	done
}

outward() { # interface: whether it is a device or leads to one
	[ -e "/sys/class/net/$1/device" ] && return
	set -- "/sys/class/net/$1"/lower_*
	[ -e "$1" ]
}
# What the cluster's interface is made of (a bond on a VLAN on …), from the top down: itself first.
stack=
below=$interface
while [ -n "$below" ]; do
	level=$below
	below=
	for nic in $level; do
		case " $stack " in *" $nic "*) continue ;; esac
		stack="$stack $nic"
		for path in "/sys/class/net/$nic"/lower_*; do
			[ -e "$path" ] || continue
			under=${path##*/lower_}
			# The ports of a bridge that lead to containers and virtual machines carry nothing of the cluster.
			[ ! -d "/sys/class/net/$nic/bridge" ] || outward "$under" || continue
			below="$below $under"
		done
	done
done
# Interfaces: the physical ones, the cluster's, and what that one is made of.
chosen=
links=
many=0
for path in /sys/class/net/*; do
	nic=${path##*/}
	device=-
	driver=-
	# Where a link leads, the shell itself knows.
	if cd -P "$path/device" 2>/dev/null; then
		device=${PWD##*/}
		cd -P "$path/device/driver" 2>/dev/null && driver=${PWD##*/}
	fi
	master=-
	cd -P "$path/master" 2>/dev/null && master=${PWD##*/}
	lower=
	for below in "$path"/lower_*; do
		[ -e "$below" ] && lower="$lower,${below##*/lower_}"
	done
	links="$links$nic $device ${driver:--} $master ${lower:--}
"
	[ "$nic" = lo ] && continue
	case " $stack " in *" $nic "*) chosen="$chosen $nic" && continue ;; esac
	if [ "$device" != - ]; then
		many=$((many + 1))
		[ "$many" -gt 16 ] || chosen="$chosen $nic"
	fi
done
cd /
section counters
read -r begun _ </proc/uptime
counters 1
read -r counted _ </proc/uptime
# Nothing may hang the look: a dead file server, a service that does not answer. Where a few processes take long, so
# does the answer of a service.
patience=3
begun=${begun%.*}${begun#*.}
counted=${counted%.*}${counted#*.}
[ $((1$counted - 1$begun)) -lt 15 ] || patience=10
limit=
command -v timeout >/dev/null 2>&1 && limit="timeout -k 1 $patience"
sleep 1 &
pause=$!

section machine
while read -r key _ id _; do
	if [ "$key" = Uid: ]; then
		printf '#id 0\n %s\n' "$id"
		break
	fi
done </proc/self/status
line hostname /proc/sys/kernel/hostname
line kernel /proc/sys/kernel/osrelease
line kernel_version /proc/sys/kernel/version
ask arch uname -m
ask libc getconf GNU_LIBC_VERSION
ask lscpu lscpu
files /proc/cmdline /proc/meminfo /proc/uptime /proc/loadavg /proc/swaps /proc/modules /proc/1/stat \
	/proc/self/status /proc/pressure/cpu \
	/sys/devices/system/cpu/smt/* /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full \
	/sys/devices/system/cpu/online /sys/devices/system/cpu/vulnerabilities/* \
	/sys/devices/system/cpu/cpu*/cpufreq/scaling_* /sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_m??_freq \
	/sys/devices/system/cpu/cpuidle/* /sys/devices/system/cpu/cpu0/cpuidle/state*/name \
	/sys/devices/system/cpu/cpu0/cpuidle/state*/latency \
	/sys/devices/system/clocksource/clocksource0/* /sys/devices/system/node/online \
	/sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
	/sys/kernel/mm/ksm/run /sys/module/pcie_aspm/parameters/policy /sys/class/dmi/id/sys_vendor \
	/sys/class/dmi/id/product_name /sys/class/dmi/id/bios_version /sys/class/dmi/id/bios_date \
	/sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count /sys/devices/system/node/node*/cpulist \
	/sys/devices/system/edac/mc/mc*/[cu]e_count /sys/devices/system/edac/mc/mc*/dimm*/size \
	/sys/module/e1000/parameters/* /sys/module/e1000e/parameters/* /sys/module/ixgbe/parameters/*
if [ -r /dev/cpu_dma_latency ]; then
	ask pm_qos od -An -td4 -N4 /dev/cpu_dma_latency
elif [ -e /dev/cpu_dma_latency ]; then
	echo '!pm_qos only root may read it'
else
	echo '!pm_qos there is no /dev/cpu_dma_latency'
fi
if [ -r /run/systemd/container ]; then
	line container /run/systemd/container
elif [ -e /.dockerenv ]; then
	printf '#container 0\n docker\n'
elif [ -r /proc/1/environ ]; then
	tr '\0' '\n' </proc/1/environ | sed -n 's/^container=//p' | show container 0
else
	echo '!container only root can see it'
fi

# The words given: files and parameters.
parameters=
paths=
for word; do
	case $word in
	*'{interface}'*)
		for nic in $stack; do
			paths="$paths ${word%%'{interface}'*}$nic${word#*'{interface}'}"
		done
		;;
	/*) paths="$paths $word" ;;
	*) parameters="$parameters|$word" ;;
	esac
done
# shellcheck disable=SC2086 # patterns
[ -z "$paths" ] || files $paths
# Not the keys, and not what does something when it is read.
set --
for path in /proc/sys/net/core/* /proc/sys/net/ipv4/tcp_* /proc/sys/vm/*; do
	case $path in
	*key* | */stat_refresh | */compact_memory | */drop_caches) ;;
	*) [ -d "$path" ] || set -- "$@" "$path" ;;
	esac
done
files "$@" /proc/sys/net/ipv4/udp_* /proc/sys/net/ipv4/ip_forward \
	/proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/netfilter/nf_conntrack_count \
	/proc/sys/net/netfilter/nf_conntrack_max /proc/sys/net/ipv4/neigh/default/gc_thresh* \
	/proc/sys/kernel/sched_* /proc/sys/kernel/numa_* /proc/sys/kernel/*watchdog* \
	/proc/sys/kernel/timer_migration /proc/sys/kernel/randomize_va_space /proc/sys/kernel/perf_event_paranoid \
	/proc/sys/kernel/pid_max /proc/sys/kernel/threads-max /proc/sys/kernel/tainted /proc/sys/fs/file-max

section network
keep links 0 "$links"
set --
for nic in $chosen; do
	path=/sys/class/net/$nic
	set -- "$@" "$path"/mtu "$path"/address "$path"/operstate "$path"/speed "$path"/duplex "$path"/type \
		"$path"/carrier_changes "$path"/tx_queue_len
	if [ -e "$path/device" ]; then
		set -- "$@" "$path"/device/numa_node "$path"/device/*_link_speed "$path"/device/*_link_width \
			"$path"/device/vendor "$path"/device/device "$path"/device/iommu_group/type \
			"$path"/device/driver/module/taint
	fi
	for path in "$path"/bonding "$path"/bonding_slave "$path"/brport; do
		[ -d "$path" ] || continue
		for file in mode slaves active_slave xmit_hash_policy lacp_rate miimon ad_partner_mac ad_aggregator state \
			mii_status ad_aggregator_id link_failure_count; do
			[ -f "$path/$file" ] && set -- "$@" "$path/$file"
		done
	done
done
[ $# -eq 0 ] || files "$@"
for nic in $chosen; do
	path=/sys/class/net/$nic
	for irqs in "$path/device/msi_irqs" "$path/device/../msi_irqs"; do
		[ -d "$irqs" ] || continue
		printf '#irqs.%s 0\n' "$nic"
		for irq in "$irqs"/*; do
			[ -e "$irq" ] && printf ' %s\n' "${irq##*/}"
		done
		break
	done
	# The registers of the card, of which only root may read more than the first 64 bytes.
	[ ! -e "$path/device/config" ] || ask "pci_config.$nic" od -An -v -tx1 -N256 "$path/device/config"
	# What a virtual interface is: a bond, a VLAN with its number, a macvlan with its mode.
	[ -e "$path/device" ] || ask "kind.$nic" ip -d -o link show dev "$nic"
	if ! command -v ethtool >/dev/null 2>&1; then
		printf '!ethtool ethtool is not installed\n'
		continue
	fi
	for option in '' -i -P -c -g -l -k -a --show-eee; do
		# shellcheck disable=SC2086 # none or one option
		ask "ethtool$option.$nic" ethtool $option "$nic"
	done
done
ask ethtool_version ethtool --version
files /sys/class/net/*/mtu /sys/class/net/*/operstate /sys/class/net/*/address \
	/proc/irq/*/smp_affinity_list /proc/irq/*/effective_affinity_list
ask addresses ip -o addr show
ask routes ip route show
ask rules ip rule show
ask qdiscs tc qdisc show
# How long a name takes: of the node's own, which every file of hosts should have. Twice, as one look alone may have
# waited for the CPU.
if there resolve getent; then
	read -r own </proc/sys/kernel/hostname
	for look in resolve resolve.again; do
		before=$(date +%s%N)
		out=$($limit getent ahostsv4 "$own" 2>&1 </dev/null)
		code=$?
		[ "$code" -eq 124 ] || code=0
		keep "$look" "$code" "$before$newline$out$newline$(date +%s%N)"
		[ "$code" -eq 0 ] || break
	done
fi

section firewall
# Packet filter. The old iptables is only asked where the kernel has its tables: asking would load them.
# Where the kernel has not loaded it there are no rules, and asking would load it.
first=
{ read -r first </proc/modules; } 2>/dev/null
read -r kernel </proc/sys/kernel/osrelease
if [ -n "$first" ] && [ ! -d /sys/module/nf_tables ] &&
	! grep -q '/nf_tables\.ko' "/lib/modules/$kernel/modules.builtin" 2>/dev/null; then
	printf '#nft 0\n'
else
	run nft nft -nn -t list ruleset
fi
ask iptables_version iptables -V
ask ip_tables_names cat /proc/net/ip_tables_names
first=
{ read -r first </proc/net/ip_tables_names; } 2>/dev/null
if [ -n "$first" ]; then
	if command -v iptables-legacy-save >/dev/null 2>&1; then
		run iptables_legacy iptables-legacy-save
	else
		run iptables_legacy iptables-save
	fi
fi
run firewalld_zones firewall-cmd --get-active-zones

section services
# Services, and what keeps settings over a reboot.
run system_state systemctl is-system-running
run units systemctl list-units --type=service,timer,socket --all --plain --no-legend --no-pager
# Patterns are applied by systemd itself, before it looks up each unit's state in all directories; a type is not.
run unit_files systemctl list-unit-files --no-legend --no-pager '*.service' '*.timer' '*.socket'
if command -v systemctl >/dev/null 2>&1; then
	enabled=$(printf '%s\n' "$out" | awk '$1 ~ /[^@]\.service$/ && $2 == "enabled" { print $1 }')
	# shellcheck disable=SC2086 # a list of units
	# Blank lines divide the units.
	[ -n "$enabled" ] && $limit systemctl show -p Id -p Type -p ActiveState -p SubState \
		-p ConditionResult -p ConditionTimestampMonotonic -p RemainAfterExit -p TriggeredBy $enabled \
		2>/dev/null </dev/null | show enabled 0
fi

section files
set --
for directory in /etc /run /usr/local/lib /usr/lib /lib; do
	set -- "$@" "$directory"/systemd/network/*.link "$directory"/systemd/network/*.link.d/*.conf \
		"$directory"/systemd/network/*.network.d/*.conf
done
index=
{ [ -n "$interface" ] && read -r index <"/sys/class/net/$interface/ifindex"; } 2>/dev/null
settings "$@" /etc/os-release /etc/resolv.conf /etc/nsswitch.conf /etc/hosts /etc/sysctl.conf /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf \
	/usr/lib/sysctl.d/*.conf /lib/sysctl.d/*.conf \
	/etc/modprobe.d/*.conf /etc/network/interfaces /etc/network/interfaces.d/* /etc/netplan/*.yaml \
	/etc/systemd/network/*.network /etc/systemd/network/*.netdev /etc/sysconfig/network-scripts/ifcfg-* /etc/sysconfig/network/ifcfg-* \
	/etc/tuned/active_profile /etc/tuned/profile_mode /etc/tuned/*/tuned.conf /etc/tuned/profiles/*/tuned.conf \
	/usr/lib/tuned/*/tuned.conf /usr/lib/tuned/profiles/*/tuned.conf /etc/default/irqbalance /etc/sysconfig/irqbalance \
	/etc/default/cpufrequtils /etc/openmpi/openmpi-mca-params.conf "$HOME/.openmpi/mca-params.conf" \
	"/run/systemd/netif/links/$index"
ask systemd_version systemctl --version
# In which order systemd itself reads the files of sysctl.d, without those that another one hides.
if command -v systemd-analyze >/dev/null 2>&1; then
	$limit systemd-analyze cat-config sysctl.d 2>/dev/null </dev/null |
		grep -E '^# /(etc|run|usr/local/lib|usr/lib|lib)/sysctl\.d/[^ ]+\.conf$' | show sysctl_order 0
fi
run wulf_kept grep -hs '^keep ' /etc/wulf/settings.sh
run wulf_files grep -ls '^# Written by wulf' /etc/sysctl.d/*wulf.conf /etc/systemd/network/*-wulf-*.link \
	/etc/systemd/network/*.network.d/90-wulf.conf /etc/modprobe.d/wulf.conf /etc/wulf/settings.sh \
	/etc/systemd/system/wulf-*.service /etc/systemd/system/*.wants/wulf-*.service \
	/etc/systemd/system/*.service.d/90-wulf.conf /etc/network/if-up.d/wulf-settings \
	/etc/NetworkManager/dispatcher.d/90-wulf-settings
if [ -n "$interface" ]; then
	run "udev.$interface" udevadm info --query=property "--path=/sys/class/net/$interface"
	run "nmcli.$interface" nmcli -g GENERAL.STATE device show "$interface"
fi
# Connection files hold secrets beside the settings: only the settings are looked at.
echo -
reasons "$($limit grep -E '^(id|interface-name|mac-address|mtu|method|type|ring-|coalesce-|feature-|pause-|channels-|eee-|\[)' \
	/dev/null /etc/NetworkManager/system-connections/* 2>&1 >&4)"
# Who writes these files, as they say in a comment.
keep managed 0 "$($limit grep -HEim 1 '(ansible|puppet|chef|salt|cfengine|cloud-init).*(managed|controlled|generated|maintained)|(managed|controlled|generated|maintained).*(ansible|puppet|chef|salt|cfengine|cloud-init)' \
	/dev/null /etc/sysctl.conf /etc/sysctl.d/* /etc/network/interfaces /etc/network/interfaces.d/* /etc/netplan/* \
	/etc/systemd/network/* /etc/NetworkManager/system-connections/* /etc/sysconfig/network-scripts/ifcfg-* 2>/dev/null)"
set --
for path in /etc/sysctl.conf /etc/sysctl.d/* /etc/modprobe.d/* /etc/default/grub \
	/etc/network/interfaces /etc/network/interfaces.d/* /etc/systemd/network/* /etc/nftables.conf \
	/etc/NetworkManager/system-connections/* /etc/sysconfig/network-scripts/ifcfg-* /etc/tuned/active_profile \
	/etc/default/irqbalance /etc/sysconfig/irqbalance /boot/vmlinuz-* /var/run/reboot-required; do
	[ -e "$path" ] && set -- "$@" "$path"
done
ask changed stat -c '%Y %n' "$@"
run disks df -P -l -k / /tmp /var /var/tmp /run /dev/shm
run clock_sync timedatectl show
run chrony chronyc -n tracking

section mpi
# MPI, and what it computes with.
run openmpi ompi_info --version
if [ -n "$parameters" ] && command -v ompi_info >/dev/null 2>&1; then
	$limit ompi_info --param all all --level 9 --parsable 2>/dev/null |
		grep -E ":param:(btl_tcp_if_exclude$parameters):(value|source):" | show openmpi_parameters 0
fi
run mpich mpichversion
run ucx ucx_info -v
keep environment 0 "$(env | grep -E '^(OMPI_|PMIX_|PRTE_|MPIR_|MPICH_|UCX_|I_MPI_|FI_|OMP_|OPENBLAS_|MKL_|BLIS_)')"
out=$(ldconfig -p 2>/dev/null | grep -E 'lib(blas|openblas|blis|mkl_rt|atlas|mpi|ucp|fabric)[.-]')
keep libraries $? "$out"
echo '#blas 0'
for library in /usr/lib/*/libblas.so.3 /usr/lib64/libblas.so.3 /etc/alternatives/libblas.so.3*; do
	[ -e "$library" ] && printf ' %s %s\n' "$library" "$(readlink -f "$library")"
done

section counters_again
wait "$pause"
counters 2
ask date date +%s.%N
section end
