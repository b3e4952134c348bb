# The profile of TuneD that is in force; `none` when it does nothing. TARGET: the file in which TuneD keeps its name.
tuned_get() { limit tuned-adm active 2>/dev/null | sed -n 's/^Current active profile: //p' | grep . || echo none; }
tuned_save() { # `preset:NAME` where TuneD does not run but has a profile for when it does
	command -v tuned-adm >/dev/null 2>&1 || { echo "TuneD is not installed" >&2; return 1; }
	tuned_now=$(tuned_get "$1" "$2")
	[ "$tuned_now" != none ] || tuned_now=$(grep . "$2" 2>/dev/null | sed 's/^/preset:/')
	echo "${tuned_now:-none}"
}
tuned_items() { # after a boot TuneD may still come: what counts is what it finds
	if [ -n "${earlier_boot:-}" ]; then sed 's/^preset://'; else cat; fi
}
tuned_put() {
	case $3 in
	none) limit tuned-adm off ;;
	*) limit tuned-adm profile "$3" ;;
	esac
}
tuned_restore() {
	read -r tuned_before
	case $tuned_before in
	preset:*)
		[ "$(tuned_get "$1" "$2")" = none ] || limit systemctl stop tuned.service
		tuned_preset "$2" "${tuned_before#preset:}"
		;;
	*)
		if [ -n "${earlier_boot:-}" ] && [ "$(tuned_get "$1" "$2")" = none ]; then
			tuned_preset "$2" "${tuned_before#none}"
		else
			tuned_put "$1" "$2" "$tuned_before"
		fi
		;;
	esac
}
tuned_preset() { # file, profile: what it sets when it starts
	printf '%s\n' "$2" | grep . >"$1.wulf"
	chmod 644 "$1.wulf" && flush "$1.wulf" && mv -f "$1.wulf" "$1" && flush "${1%/*}"
}
