# How one node sees the others: names, path MTU, clocks. Sends a few pings, changes nothing.
#
#   sh -s -- INTERFACE NAME=ADDRESS... <peers.sh
#
# All NAMEs are looked up; the first of them that is not this node itself is pinged over INTERFACE, and a second
# one where the first does not take full frames: which of the two ends is at fault shows across nodes.
# ssh as MPI's launchers use it is tried to the next node behind this one in the list.
# Prints a tree, see capture.sh.
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
interface=$1
shift
mtu=$(cat "/sys/class/net/$interface/mtu" 2>/dev/null)
own=$(ip -o addr show 2>/dev/null | awk '{ sub("/.*", "", $4); print $4 }')

printf '#date 0\n %s\n' "$(date +%s.%N)"
limit=
command -v timeout >/dev/null 2>&1 && limit='timeout -k 1 2'
for peer; do
	name=${peer%%=*}
	found=$($limit getent ahostsv4 "$name" 2>/dev/null)
	code=$?
	# One that takes so long is enough to know; the others would take as long.
	[ "$code" -lt 124 ] || break
	[ "$code" -eq 0 ] || found=$($limit getent ahostsv6 "$name" 2>/dev/null)
	printf '#name.%s 0\n %s\n' "$name" "${found%%[[:space:]]*}"
done
printf '#end 0\n %s\n' "$(date +%s.%N)"

# The next node in the list, and of the last one the first: each is tried by another.
first=
following=
passed=
for peer; do
	address=${peer#*=}
	case "
$own
" in *"
$address
"*)
		passed=yes
		continue
		;;
	esac
	[ -n "$first" ] || first=$peer
	[ -z "$passed" ] || [ -n "$following" ] || following=$peer
done
following=${following:-$first}
if ! command -v ssh >/dev/null 2>&1; then
	printf '!ssh ssh is not installed\n'
elif [ -n "$following" ]; then
	limit=
	command -v timeout >/dev/null 2>&1 && limit='timeout -k 1 8'
	# A name that means nothing here is said elsewhere.
	name=$(getent ahosts "${following%%=*}" >/dev/null 2>&1 && echo "${following%%=*}")
	for way in $name "${following#*=}"; do
		said=$($limit ssh -o BatchMode=yes -o ConnectTimeout=5 -- "$way" true 2>&1 </dev/null)
		printf '#ssh.%s %s\n' "$way" "$?"
		printf '%s\n' "$said" | tail -n 3 | sed 's/^/ /'
	done
fi

# MPI and the probe listen on ports that the kernel chooses: two of these, on which somebody need not listen, as a
# closed port answers, too. Where ssh itself does not get through another finding says so.
answers() { # ADDRESS PORT: prints why not
	timeout -k 1 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1 </dev/null
}
if ! command -v timeout >/dev/null 2>&1 || ! command -v bash >/dev/null 2>&1; then
	printf '!ports bash or timeout is not installed\n'
elif [ -z "$following" ]; then
	printf '!ports there is no other node\n'
elif ! answers "${following#*=}" 22 >/dev/null; then
	printf '!ports %s does not answer on port 22 either\n' "${following%%=*}"
else
	printf '#ports 0\n %s\n' "${following%%=*}"
	read -r low high </proc/sys/net/ipv4/ip_local_port_range
	for port in $((low + (high - low) / 3)) $((high - (high - low) / 3)); do
		said=$(answers "${following#*=}" "$port")
		printf '#port.%s %s\n' "$port" "$?"
		printf '%s\n' "$said" | tail -n 2 | sed 's/^/ /'
	done
fi

if ! command -v ping >/dev/null 2>&1; then
	printf '!path ping is not installed\n!clock ping is not installed\n'
	exit 0
fi
if [ -z "$mtu" ]; then
	printf '!path there is no interface %s\n!clock there is no interface %s\n' "$interface" "$interface"
	exit 0
fi
passes() { # address, MTU, tries
	headers=28
	case $1 in *:*) headers=48 ;; esac
	ping -n -q -c "${3:-2}" -i 0.2 -W 1 -I "$interface" -M do -s "$(($2 - headers))" "$1" 2>/dev/null |
		grep -q ' [1-9][0-9]* received'
}
largest_below() { # address, MTU: the largest usual frame that passes, 0 when none does
	usual=
	count=0
	for size in 576 1000 1300 1400 1450 1492 1500 2000 3000 4000 6000 9000; do
		[ "$size" -lt "$2" ] && usual="$usual $size" && count=$((count + 1))
	done
	low=0
	high=$((count + 1))
	best=0
	while [ $((high - low)) -gt 1 ]; do
		middle=$(((low + high) / 2))
		# shellcheck disable=SC2086 # a list of numbers
		size=$(echo $usual | cut -d ' ' -f "$middle")
		if passes "$1" "$size" 1; then
			low=$middle
			best=$size
		else
			high=$middle
		fi
	done
	echo "$best"
}
tried=0
for peer; do
	address=${peer#*=}
	case "
$own
" in *"
$address
"*) continue ;; esac
	tried=$((tried + 1))
	said=$(ping -n -q -c 1 -W 1 -I "$interface" "$address" 2>&1)
	case $said in *transmitted*) ;; *)
		said=$(printf '%s' "$said" | tail -n 1)
		printf '!path ping does not work: %s\n!clock ping does not work: %s\n' "$said" "$said"
		exit 0
		;;
	esac
	if passes "$address" "$mtu"; then
		largest=$mtu
	else
		largest=$(largest_below "$address" "$mtu")
	fi
	printf '#path.%s 0\n %s %s\n' "$tried" "${peer%%=*}" "$largest"
	if [ "$tried" -eq 1 ]; then
		# The clocks of both ends are in the IP header: milliseconds since midnight.
		clocks=$(ping -n -c 5 -i 0.2 -W 1 -I "$interface" -T tsonly "$address" 2>&1)
		printf '#clock %s\n' "$?"
		printf '%s\n' "$clocks" | sed 's/^/ /'
	fi
	if [ "$largest" -eq "$mtu" ] || [ "$tried" -ge 2 ]; then
		break
	fi
done
[ "$tried" -gt 0 ] || printf '!path there is no other node\n!clock there is no other node\n'
