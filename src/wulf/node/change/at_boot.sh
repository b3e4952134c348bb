# What the node's own system makes of its files: says what will be otherwise at boot than wulf's files have it.
#
#   sh -s -- INTERFACE LINK NETWORK [NAME=VALUE...] <at_boot.sh
#
# LINK is the .link file that is to be applied to INTERFACE, NETWORK the .network file that wulf has added to, - for none;
# NAME=VALUE are the sysctls. Only reads. Prints lines: otherwise WHAT FILE VALUE, or asked WHAT where the system could
# be asked.
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
interface=$1
link=$2
network=$3
shift 3
if [ $# -gt 0 ] && order=$(systemd-analyze cat-config sysctl.d 2>/dev/null </dev/null); then
	echo "asked sysctl"
	wanted=$(printf '%s\n' "$@")
	printf '%s\n' "$order" | WANTED=$wanted awk '
		function squeezed(text) {
			gsub(/[ \t]+/, " ", text)
			sub(/^ /, "", text)
			sub(/ $/, "", text)
			return text
		}
		/^# \/[^ ]+\.conf$/ { file = substr($0, 3); next }
		/^[ \t]*[#;]/ || !/=/ { next }
		{
			mark = index($0, "=")
			name = squeezed(substr($0, 1, mark - 1))
			sub(/^- ?/, "", name)
			slash = index(name, "/")
			dot = index(name, ".")
			if (slash && (!dot || slash < dot)) gsub("/", ".", name)
			value[name] = squeezed(substr($0, mark + 1))
			from[name] = file
		}
		END {
			count = split(ENVIRON["WANTED"], pairs, "\n")
			for (i = 1; i <= count; i++) {
				mark = index(pairs[i], "=")
				name = substr(pairs[i], 1, mark - 1)
				if (value[name] != squeezed(substr(pairs[i], mark + 1)))
					print "otherwise", name, (name in from ? from[name] : "-"), value[name]
			}
		}'
fi
if [ "$link" != - ]; then
	found=$(udevadm test-builtin net_setup_link "/sys/class/net/$interface" 2>/dev/null </dev/null |
		sed -n 's/^\(E: \)\{0,1\}ID_NET_LINK_FILE=//p')
	if [ -n "$found" ]; then
		echo "asked link"
		[ "$found" = "$link" ] || echo "otherwise $interface $found -"
	fi
fi
if [ "$network" != - ] && lines=$(systemd-analyze cat-config "systemd/network/$network" 2>/dev/null </dev/null); then
	echo "asked network"
	last=$(printf '%s\n' "$lines" | grep -E '^# /|^[[:space:]]*MTUBytes[[:space:]]*=' | grep -B 1 MTUBytes | tail -n 2 | head -n 1)
	case $last in
	*wulf*) ;;
	*) echo "otherwise $interface ${last#\# } -" ;;
	esac
	# Whether it is that file at all which the interface has now.
	applied=$(networkctl --no-pager status "$interface" 2>/dev/null </dev/null | sed -n 's/^ *Network File: *//p')
	case $applied in
	'' | n/a | */"$network") ;;
	*) echo "otherwise $interface $applied -" ;;
	esac
fi
exit 0
