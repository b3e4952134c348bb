# Prints the commands that a plan would run on this node, and runs none of them.
# The plan's steps are the arguments. Follows the functions of `access/`, which it lets do their reading.
limit() {
	case $* in
	'ethtool -'[cgklai]' '* | 'ethtool --show-eee '* | *' route show '* | 'nft '*'list ruleset' | 'systemctl show '* | \
		'systemctl is-'* | 'ompi_info '* | 'tuned-adm active')
		"$@"
		;;
	'nft -f -') printf "nft -f - <<'END'\n" && cat && echo END ;;
	*) printf '%s\n' "$*" ;;
	esac
}
file_write() {
	file_note=
	[ -w "$1" ] || [ "$(id -u)" != 0 ] || file_note='   # it cannot be written here'
	printf "echo '%s' >%s%s\n" "$2" "$1" "$file_note"
}
irq_affinity_write() { printf "echo '%s' >/proc/irq/%s/smp_affinity_list\n" "$2" "$1"; }
ethtool_run() {
	# shellcheck disable=SC2086 # names and values
	limit ethtool "$(ethtool_flag "$ethtool_group")" "$1" $2
}
pm_qos_put() { printf 'a process holds %s open with %s written to it\n' "$2" "$3"; }
service_put() { service_switch "$2" "$3"; }
module_back() { :; }
stored_put() {
	case $3 in absent) echo "rm $2" ;; *) echo "write $2" ;; esac
}
for step; do
	IFS=$TAB read -r knob kind interface target value <<-END
		$step
	END
	if ! said=$("${kind}_put" "$interface" "$target" "$value" 2>&1); then
		printf '%s=%s: %s\n' "$knob" "$value" "$said" >&2
		exit 1
	fi
	printf '%s\n' "$said" | sed "s/^/$knob$TAB/"
done
