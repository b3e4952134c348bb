# What a node says of its energy. POSIX sh, functions only: put before what calls them. Prints as context.sh does.
# Energy counters of the kernel (Documentation/power/powercap); the argument stands before /sys.
energy() {
	if [ ! -e "$1/sys/class/powercap" ]; then
		echo '!energy no energy counters (RAPL): there is no /sys/class/powercap'
		return
	fi
	none=yes
	for zone in "$1"/sys/class/powercap/intel-rapl:*; do
		[ -e "$zone/name" ] || continue
		[ "$none" = no ] || echo '#energy'
		none=no name=unreadable spent=unreadable range=0
		{ read -r name <"$zone/name"; } 2>/dev/null
		{ read -r spent <"$zone/energy_uj"; } 2>/dev/null
		{ read -r range <"$zone/max_energy_range_uj"; } 2>/dev/null
		printf ' %s %s %s %s\n' "${zone##*/}" "$name" "${spent:-unreadable}" "${range:-0}"
	done
	[ "$none" = no ] || echo '!energy no energy counters (RAPL): /sys/class/powercap has no intel-rapl:*'
}
# The power of the whole node by its management controller (DCMI).
node_power() {
	if ! command -v ipmitool >/dev/null 2>&1; then
		echo '!node_power ipmitool is not installed'
		return
	fi
	said=$(ipmitool dcmi power reading 2>&1)
	watts=$(printf '%s\n' "$said" | sed -n 's/.*Instantaneous power reading: *\([0-9][0-9]*\) Watts.*/\1/p')
	case $said in
	*'reading state is:'*deactivated*) watts=0 ;;
	esac
	if [ "${watts:-0}" -gt 0 ]; then
		printf '#node_power\n %s\n' "$watts"
	elif [ -n "$watts" ]; then
		# A node that answers takes some: 0 is what a controller says that does not measure.
		echo '!node_power ipmitool dcmi power reading: it does not measure (0 Watts, or deactivated)'
	else
		said=$(printf '%s\n' "$said" | sed -n '/[^[:space:]]/{p;q;}')
		printf '!node_power ipmitool dcmi power reading: %s\n' "${said:-nothing}"
	fi
}
