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
service_put() {
	case $3 in
	on) limit systemctl start "$2" || { limit systemctl reset-failed "$2" 2>/dev/null; return 1; } ;;
	off) limit systemctl stop "$2" ;;
	*) echo "a service is on or off, not '$3'" >&2; return 1 ;;
	esac
}
service_restore() {
	read -r service_state
	service_put "$1" "$2" "$service_state" || return 1
	service_filters "$2" || return 0
	{ printf 'flush ruleset\n'; cat; } | limit nft -f -
}
service_get() { service_save "$1" "$2" | head -n 1; }
