# A property of a link that `ip link` sets.
link_save() { printf '%s\t%s\n' "$2" "$(cat "/sys/class/net/$1/$2")"; }
link_put() { limit ip link set dev "$1" "$2" "$3"; }
link_restore() {
	while IFS=$TAB read -r link_name link_value; do
		link_put "$1" "$link_name" "$link_value" || return 1
	done
}
link_get() { cat "/sys/class/net/$1/$2"; }
