# A property of the routes to the cluster's own network (those that `ip` calls scope link).
route_save() {
	limit ip -4 route show dev "$1" scope link | sed 's/ *$//' | grep . || { echo "$1 has no route of its own" >&2; return 1; }
}
route_put() {
	route_save "$1" "$2" | while read -r route_line; do
		case $3 in
		default) route_change "$1" "$(route_without "$2" "$route_line")" ;;
		*) route_change "$1" "$(route_without "$2" "$route_line") $2 ${3%ms}ms" ;;
		esac || return 1
	done
}
route_without() { # property, line
	printf '%s\n' "$2" | sed "s/ $1 \(lock \)\{0,1\}[^ ]*//"
}
route_change() { # interface, line; `ip` shows a lock that it does not take
	# shellcheck disable=SC2046 # the words of a route
	limit ip -4 route change $(printf '%s\n' "$2" | sed 's/rto_min lock /rto_min /') dev "$1" scope link
}
route_restore() { # one that does not come back does not keep the others from it
	route_failed=0
	route_lasting "$1" | {
		while read -r route_line; do
			route_change "$1" "$route_line" || route_failed=1
		done
		return "$route_failed"
	}
}
route_lasting() { # INTERFACE: a route that is gone took its property along
	route_there=$(route_save "$1" 2>/dev/null | cut -d ' ' -f 1)
	while IFS= read -r route_line; do
		case "
$route_there
" in *"
${route_line%% *}
"*) printf '%s\n' "$route_line" ;; esac
	done
}
route_get() {
	route_save "$1" "$2" | sed -n "s/.* $2 \(lock \)\{0,1\}\([^ ]*\).*/\2/p" | head -n 1 | grep . || echo default
}
