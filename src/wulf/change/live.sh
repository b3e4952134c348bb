# Every node looks for its own among the addresses of all nodes, and does something with the next one.
#
#   sh -s -- WHAT VALUE ADDRESS...
#
# carries BYTES     whether a packet with so much payload reaches it uncut
# tracks -          how many more connections are tracked after five with it
# interrupts NIC    interrupts per second in a flood of short packets
what=$1
value=$2
shift 2
first=$1
mine=
next=
for address; do
	if [ -n "$mine" ]; then next=$address; break; fi
	case $(ip route get "$address" 2>/dev/null) in local*) mine=$address ;; esac
done
[ -n "$mine" ] || { echo "none of the nodes' addresses is its own" >&2; exit 1; }
next=${next:-$first}
case $what in
carries) # value: payload that makes a whole frame
	ping -q -n -M do -s "$value" -c 3 -i 0.2 -W 1 "$next" >/dev/null 2>&1 && exit
	echo "a packet of $((value + 28)) B does not reach $next in one piece" >&2
	exit 1 ;;
tracks) # each ping is a connection of its own
	count() { cat /proc/sys/net/netfilter/nf_conntrack_count 2>/dev/null || echo 0; }
	before=$(count)
	for i in 1 2 3 4 5; do ping -q -n -c 1 -W 1 "$next" >/dev/null 2>&1; done
	echo $(($(count) - before)) ;;
interrupts) # per second, of the interface $value, in a flood of short packets
	count() {
		awk -v nic="$value" '$NF ~ nic { for (i = 2; i < NF; i++) if ($i ~ /^[0-9]+$/) n += $i } END { print n + 0 }' \
			/proc/interrupts
	}
	before=$(count); begin=$(date +%s%N)
	ping -q -n -f -c 2000 -w 2 "$next" >/dev/null 2>&1
	awk -v n=$(($(count) - before)) -v ns=$(($(date +%s%N) - begin)) 'BEGIN { printf "%.1f\n", n / ns * 1e9 }' ;;
esac
