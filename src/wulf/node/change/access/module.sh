# A parameter that the interface's driver takes only when it is loaded. Loading it anew takes the link down, and
# addresses and routes with it: they are put back. `-` stands for "not given".
module_driver() {
	module_link=$(readlink "/sys/class/net/$1/device/driver/module") || { echo "$1 has no driver that is a module" >&2; return 1; }
	echo "${module_link##*/}"
}
module_given() { # driver, parameter: what it was loaded with
	cat "/sys/module/$1/parameters/$2" 2>/dev/null || cat "$RUN/module.$1.$2" 2>/dev/null ||
		sed -n "s/^[[:space:]]*options[[:space:]]\{1,\}$1[[:space:]]\(.*[[:space:]]\)\{0,1\}$2=\([^[:space:]]*\).*/\2/p" /etc/modprobe.d/*.conf 2>/dev/null |
		tail -n 1 | grep . || echo -
}
module_save() {
	module_name=$(module_driver "$1") || return 1
	printf '%s\n' "$(module_given "$module_name" "$2")"
}
module_others() { # interfaces of the same driver
	for module_other in /sys/class/net/*/device/driver/module; do
		module_other_link=$(readlink "$module_other") || continue
		module_other=${module_other#/sys/class/net/}
		module_other=${module_other%%/*}
		[ "${module_other_link##*/}" != "$2" ] || [ "$module_other" = "$1" ] || echo "$module_other"
	done
}
module_put() {
	module_name=$(module_driver "$1") || return 1
	module_shared=$(module_others "$1" "$module_name")
	[ -z "$module_shared" ] || { echo "$module_name also drives $module_shared: loading it anew would take that down" >&2; return 1; }
	module_mtu=$(cat "/sys/class/net/$1/mtu")
	module_addresses=$(ip -o addr show dev "$1" scope global | awk '{ print $3, $4 }')
	module_routes=$(ip -4 route show dev "$1" | grep -v 'proto kernel')
	limit modprobe -r "$module_name" || return 1
	if [ "$3" = - ]; then
		limit modprobe "$module_name" && rm -f "$RUN/module.$module_name.$2"
	else
		limit modprobe "$module_name" "$2=$3" && printf '%s\n' "$3" >"$RUN/module.$module_name.$2"
	fi || { limit modprobe "$module_name"; module_back "$1"; return 1; }
	module_back "$1"
}
module_back() { # interface: as it was before the driver went
	module_tries=0
	until [ -e "/sys/class/net/$1" ]; do
		module_tries=$((module_tries + 1))
		[ "$module_tries" -lt 100 ] || { echo "$1 did not come back" >&2; return 1; }
		sleep 0.1
	done
	limit ip link set dev "$1" mtu "$module_mtu" up || return 1
	printf '%s\n' "$module_addresses" | while read -r module_family module_address; do
		[ -z "$module_address" ] || limit ip addr replace "$module_address" dev "$1" || return 1
	done || return 1
	printf '%s\n' "$module_routes" | while read -r module_route; do
		# shellcheck disable=SC2086 # the words of a route
		[ -z "$module_route" ] || limit ip route replace $module_route dev "$1" || return 1
	done
}
module_restore() {
	read -r module_before
	module_put "$1" "$2" "$module_before"
}
module_get() { module_save "$1" "$2"; }
