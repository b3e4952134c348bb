# The route to one address, TARGET: `via GATEWAY dev INTERFACE src ADDRESS`, or `none`. With `src` packets keep the
# address by which the others know the node: answers would not find the way back to one of a cable.
host_route_save() { # as `ip` takes it; a route with a metric is somebody else's, and comes after this one
	host_route_said=$(limit ip -4 route show exact "$2/32" table main) || return 1
	case $host_route_said in
	*nexthop* | blackhole* | unreachable* | prohibit* | throw*)
		echo "the route to $2 that is there cannot be put back as it was: ${host_route_said%%nexthop*}" >&2
		return 1
		;;
	esac
	printf '%s\n' "$host_route_said" | awk '$1 != "" && !/ metric / && !found {
			found = 1; $1 = ""; gsub(/ (linkdown|dead)/, ""); gsub(/^ +| +$/, ""); print }
		END { if (!found) print "none" }'
}
host_route_put() {
	case $3 in
	none) [ "$(host_route_save "$1" "$2")" = none ] || limit ip -4 route del "$2/32" ;;
	# shellcheck disable=SC2086 # the words of a route
	*) limit ip -4 route replace "$2/32" $3 ;;
	esac
}
host_route_restore() {
	read -r host_route_before
	host_route_put "$1" "$2" "$host_route_before"
}
host_route_get() { host_route_save "$1" "$2"; }
