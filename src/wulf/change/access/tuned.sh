# The profile of TuneD that is in force; `none` when it does nothing.
tuned_get() { limit tuned-adm active 2>/dev/null | sed -n 's/^Current active profile: //p' | grep . || echo none; }
tuned_save() {
	command -v tuned-adm >/dev/null 2>&1 || { echo "TuneD is not installed" >&2; return 1; }
	tuned_get "$1" "$2"
}
tuned_put() {
	case $3 in
	none) limit tuned-adm off ;;
	*) limit tuned-adm profile "$3" ;;
	esac
}
tuned_restore() {
	read -r tuned_before
	tuned_put "$1" "$2" "$tuned_before"
}
