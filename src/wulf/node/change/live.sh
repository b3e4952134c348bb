# Every node looks for its own among all nodes, and does something with those after it.
#
#   sh -s -- WHAT VALUE INTERFACE      (the text before this one sets $nodes: lines of NAME ADDRESS)
#
# own -             prints its own address on INTERFACE
# carries BYTES     whether a packet with so much payload reaches the next one uncut
# tracks -          how many more connections are tracked after five with it
# interrupts -      interrupts per second in a flood of short packets
# reaches -         whether each TARGET of its lines in $routes (OWN TARGET INTERFACE, addresses) is reached over that INTERFACE
# passes LEVEL      what passes over INTERFACE between it and a neighbour: 0 nothing, 1 small packets, 2 whole frames, too;
#                   waits a while for LEVEL; prints `passes LEVEL NEIGHBOUR BYTES`, or `unknown` and why
#
# INTERFACE may be empty: then the routes decide. An ADDRESS may be a name, which is looked up here, on the node.
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
what=$1
value=$2
interface=$3
PEERS=3   # so many neighbours are tried
WAIT_S=10 # a driver may need a while until its link is up again
TAB=$(printf '\t')

limit() { if command -v timeout >/dev/null 2>&1; then timeout -k 1 3 "$@"; else "$@"; fi; }
address_of() { # ADDRESS or name
	case $1 in
	*:*) echo "$1" ;; # IPv6
	*[!0-9.]*)
		found=$(limit getent ahostsv4 "$1" 2>/dev/null || limit getent hosts "$1" 2>/dev/null)
		echo "${found%%[[:space:]]*}"
		;;
	*) echo "$1" ;;
	esac
}
own_line() { # the number of its own line; a name that means loopback may be any node's, so an address goes before it
	own=$(ip -o addr show 2>/dev/null | awk '{ sub("/.*", "", $4); print $4 }')
	count=0
	loop=
	while read -r _ address; do
		count=$((count + 1))
		# Of ten thousand nodes, no process for each.
		case $address in *[!0-9.]*) address=$(address_of "$address") ;; esac
		case $address in '') continue ;; 127.*) loop=${loop:-$count} && continue ;; esac
		case "
$own
" in *"
$address
"*) echo "$count" && return ;; esac
	done <<-END
		$nodes
	END
	echo "$loop"
}
find_peers() { # lines of NAME ADDRESS: the nodes after it, from the first one again after the last
	mine=$(own_line)
	[ -n "$mine" ] || fail "none of the nodes' addresses is its own: [addresses] in cluster.toml says where the others reach it"
	after=$(printf '%s\n' "$nodes" | awk -v mine="$mine" -v most="$PEERS" '{ line[NR] = $0 }
		END { for (i = 1; i < NR && i <= most; i++) print line[(mine - 1 + i) % NR + 1] }')
	peers=
	strange=
	while read -r name address; do
		found=$(address_of "$address")
		case $found in '' | 127.*) strange="$strange $name" ;; *) peers="$peers$name $found
" ;; esac
	done <<-END
		$after
	END
	[ -n "$peers" ] || fail "it does not know the address of$strange: the names must mean something on the nodes," \
		"or be in [addresses] in cluster.toml (the HostName of your ssh configuration is not known to the nodes)"
	next=${peers%%
*}
	next=${next#* }
}
fail() {
	echo "$*" >&2
	exit 1
}
send() { # COUNT, ping's arguments, ADDRESS
	send_count=$1
	shift
	limit ping -q -n -c "$send_count" -W 1 ${interface:+-I "$interface"} "$@" 2>&1
}
header() { case $1 in *:*) echo 48 ;; *) echo 28 ;; esac; } # of IP and ICMP
frame() { # ADDRESS: the largest packet of the interface that leads there
	device=${interface:-$(ip route get "$1" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')}
	cat "/sys/class/net/$device/mtu" 2>/dev/null || echo 1500
}
can_ping() { # ADDRESS
	command -v ping >/dev/null 2>&1 || return 1
	said=$(send 1 "$1")
	case $said in *transmitted*) ;; *ermitted* | *apabilit* | *"cap_net"*) return 1 ;; esac
}
answers() { # ADDRESS: a connection, or its refusal, is an answer
	case $(ip route get "$1" 2>/dev/null) in *" dev ${interface:-} "*) ;; *) [ -z "$interface" ] || return 1 ;; esac
	if command -v bash >/dev/null 2>&1; then
		said=$(limit bash -c 'exec 3<>"/dev/tcp/$1/22"' bash "$1" 2>&1) && return 0
	else
		said=$(limit python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], 22), 2)' "$1" 2>&1) && return 0
	fi
	case $said in *efused*) return 0 ;; *) return 1 ;; esac
}
level_of() { # ADDRESS
	if [ "$way" = tcp ]; then
		if answers "$1"; then echo 1; else echo 0; fi
	elif ! send 1 -s 56 "$1" >/dev/null && ! send 1 -s 56 "$1" >/dev/null; then
		echo 0
	elif send 1 $uncut -s "$2" "$1" >/dev/null || send 1 $uncut -s "$2" "$1" >/dev/null; then
		echo 2
	else
		echo 1
	fi
}
best() { # of all neighbours; the first one as good as it gets ends the search
	best_level=0
	best_peer=${peers%% *}
	best_bytes=0
	while read -r name address; do
		[ -n "$address" ] || continue
		bytes=$(frame "$address")
		level=$(level_of "$address" $((bytes - $(header "$address"))))
		[ "$level" -le "$best_level" ] || { best_level=$level best_peer=$name best_bytes=$bytes; }
		[ "$level" -lt "$enough" ] || return 0
	done <<-END
		$peers
	END
}
reaches() {
	own_address=$(printf '%s\n' "$nodes" | sed -n "${mine}s/.* //p")
	way=ping
	can_ping "$next" || way=tcp
	printf '%s\n' "$routes" | while read -r owner target device; do
		[ "$owner" = "$own_address" ] || continue
		path=$(ip -4 route get "$target" 2>&1 | head -n 1)
		case $path in *" dev $device "*) ;; *) fail "the way to $target is not over $device: ${path%%uid*}" ;; esac
		[ "$(level_of "$target" 0)" != 0 ] || fail "$target is not reached over $device"
	done
}
passes() {
	way=ping enough=2
	if ! can_ping "$next"; then
		way=tcp enough=1
		command -v bash >/dev/null 2>&1 || command -v python3 >/dev/null 2>&1 || {
			printf 'unknown\tping cannot be used there, nor bash or python3 instead\n'
			return
		}
	fi
	uncut='-M do'
	case $(ping -M do -c 1 -W 1 -s 8 "$next" 2>&1) in *nvalid* | *nrecognized* | *sage:*) uncut= ;; esac # BusyBox
	since=$(date +%s)
	while :; do
		best
		[ "$best_level" -lt "$value" ] && [ $(($(date +%s) - since)) -lt "$WAIT_S" ] || break
		sleep 1
	done
	printf 'passes\t%s\t%s\t%s\n' "$best_level" "$best_peer" "$best_bytes"
}

case $what in
own)
	ip -o -4 addr show dev "$interface" 2>/dev/null | awk '{ sub("/.*", "", $4); print $4; exit }'
	exit
	;;
esac
find_peers
case $what in
carries) # value: payload that makes a whole frame
	command -v ping >/dev/null 2>&1 ||
		fail "whether a packet of $((value + 28)) B reaches $next in one piece is not known: there is no ping here (Debian: iputils-ping)"
	send 3 -M do -s "$value" -i 0.2 "$next" >/dev/null && exit
	fail "a packet of $((value + 28)) B does not reach $next in one piece"
	;;
tracks) # each ping is a connection of its own
	count() { cat /proc/sys/net/netfilter/nf_conntrack_count 2>/dev/null || echo 0; }
	before=$(count)
	for i in 1 2 3 4 5; do send 1 "$next" >/dev/null; done
	echo $(($(count) - before))
	;;
interrupts) # per second, of the interface, in a flood of short packets
	count() {
		awk -v nic="$interface" '$NF ~ nic { for (i = 2; i < NF; i++) if ($i ~ /^[0-9]+$/) n += $i } END { print n + 0 }' \
			/proc/interrupts
	}
	before=$(count)
	begin=$(date +%s%N)
	# Who is not root may not flood: two milliseconds between packets are what ping allows him.
	[ "$(id -u)" = 0 ] && pace=-f || pace=-i0.002
	send 2000 "$pace" -w 2 "$next" >/dev/null
	awk -v n=$(($(count) - before)) -v ns=$(($(date +%s%N) - begin)) 'BEGIN { printf "%.1f\n", n / ns * 1e9 }'
	;;
passes) passes ;;
reaches) reaches ;;
esac
