# What systemd starts at boot: enabled or disabled.
unit_save() { limit systemctl is-enabled "$2" 2>/dev/null | grep . || { echo "there is no $2" >&2; return 1; }; }
unit_put() {
	# Also where nothing changes, systemctl would write the links of System V anew.
	[ "$(unit_save "$1" "$2" 2>/dev/null)" != "$3" ] || return 0
	case $3 in
	enabled) limit systemctl --quiet enable "$2" 2>&1 ;;
	disabled) limit systemctl --quiet disable "$2" 2>&1 ;;
	*) echo "a unit is enabled or disabled at boot, not '$3'" >&2; return 1 ;;
	esac
}
unit_restore() {
	read -r unit_state
	case $unit_state in enabled | disabled) unit_put "$1" "$2" "$unit_state" ;; esac
}
unit_get() { unit_save "$1" "$2"; }
unit_follow() { # the running system, without waiting: it may still be booting
	case $(unit_get - "$1") in
	enabled) limit systemctl --no-block start "$1" ;;
	disabled) limit systemctl --no-block stop "$1" ;;
	esac
}
