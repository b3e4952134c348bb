# A service of systemd: on or off now. What starts at boot is not touched (see `unit`).
service_filters() { case $1 in nftables.service | firewalld.service | iptables.service | ip6tables.service | ufw.service) return 0 ;; *) return 1 ;; esac; }
service_save() {
	case $(limit systemctl show -p LoadState --value "$2") in
	loaded | masked) ;;
	*) echo "there is no $2" >&2; return 1 ;;
	esac
	case $(limit systemctl is-active "$2") in active | activating | reloading) echo on ;; *) echo off ;; esac
	service_filters "$2" || return 0
	# Its rules go with it, and starting it again brings only those of its file.
	[ -z "$(firewall_legacy)" ] || { echo "there are rules of $(firewall_legacy | paste -s -d ' ' -), which nft cannot put back" >&2; return 1; }
	service_rules=$(firewall_rules)
	printf 'flush ruleset\n%s\n' "$service_rules" | limit nft -c -f - >/dev/null 2>&1 ||
		{ echo "nft could not put back the rules that are there" >&2; return 1; }
	printf '%s\n' "$service_rules"
}
service_items() { # the service's own state, and each table of the packet filter
	read -r service_item || return 0
	printf 'state\t%s\n' "$service_item"
	firewall_contents
}
service_put() {
	rm -f "$RUN/rules.$2"
	service_switch "$2" "$3"
}
service_switch() { # unit, on|off
	case $2 in
	on) limit systemctl start "$1" || { limit systemctl reset-failed "$1" 2>/dev/null; return 1; } ;;
	off) limit systemctl stop "$1" ;;
	*) echo "a service is on or off, not '$2'" >&2; return 1 ;;
	esac
}
service_restore() { # also the file of what was saved, and that of the state after the change
	if ! service_filters "$2"; then
		read -r service_state
		service_switch "$2" "$service_state"
		return
	fi
	service_now=$RUN/rules.$2
	{ read -r service_state && cat >"$service_now.saved"; } || return 1
	service_tables "$service_now" || return 1
	service_others "$service_now" "${4:-/dev/null}" || return 1
	# Starting it loads the rules of its file, in place of all that are there now.
	service_switch "$2" "$service_state" || return 1
	service_rules "$service_now" "$(service_age "${3:-}")" | limit nft -f - || return 1
	rm -f "$service_now" "$service_now".*
}
service_tables() { # file: the rules that are there now, once, should a guard be ended before all are back
	[ -e "$1" ] || { firewall_rules >"$1.new" && mv "$1.new" "$1"; } || return 1
	if [ -n "${WORK:-}" ]; then grep '^table ' "$WORK/ours" >"$1.ours" || :; else firewall_contents <"$1.saved" >"$1.ours"; fi
}
service_others() { # file, state after the change: a table that somebody else has made instead of one of ours is not removed
	service_items <"$2" >"$1.after"
	firewall_contents <"$1" >"$1.items"
	# Rules of our own may have come or gone with another setting since.
	service_theirs=$(awk -F '\t' '
		{ table = $1; gsub(/ *[io]ifname "[^"]*" accept comment "wulf"/, "") }
		FILENAME ~ /ours$/ { ours[table] = $0; next } FILENAME ~ /after$/ { after[$0]; next }
		table in ours && ours[table] != $0 && !($0 in after) && table != "table inet wulf" { print table }' "$1.ours" "$1.after" "$1.items")
	[ -z "$service_theirs" ] ||
		{ echo "somebody else has made $service_theirs meanwhile: 'nft delete $service_theirs' lets the former one come back" >&2; rm -f "$1"; return 1; }
}
service_rules() { # file, seconds: those of others as they are, ours as they were
	echo 'flush ruleset'
	firewall_tables no "$1.ours" <"$1"
	firewall_tables yes "$1.ours" <"$1.saved" | firewall_aged "$2"
}
service_age() { # file of what was saved: how long ago [s]
	service_then=$(stat -c %Y "$1" 2>/dev/null) || { echo 0; return; }
	service_s=$(($(date +%s) - service_then))
	[ "$service_s" -gt 0 ] && echo "$service_s" || echo 0
}
service_get() { service_save "$1" "$2" | head -n 1; }
