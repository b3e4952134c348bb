# Sets what its last lines name, and puts everything back:
#
#   apply    set what is not set yet; the state before is kept in $STATE
#   undo     put back exactly what was there before the first `apply`
#   status   say what is as it was set; ends with 1 when something is not
#
# TuneD calls them `start`, `stop` and `verify`. Needs root.
case ${1:-} in
apply | start) verb=apply ;;
undo | stop) verb=undo ;;
status | verify) verb=status ;;
*)
	echo "usage: sh $0 apply|undo|status" >&2
	exit 2
	;;
esac
me=$(id -u 2>&1)
case $me in
0) ;;
'' | *[!0-9]*)
	echo "the program id fails here, so nothing is changed: ${me:-it prints nothing}" >&2
	exit 1
	;;
*)
	echo "changing settings takes root" >&2
	exit 1
	;;
esac
failed=0
reload=
mkdir -p "$RUN"

wrong() { # KNOB, words...
	wrong_knob=$1
	shift
	printf '%s: %s\n' "$wrong_knob" "$*" >&2
	failed=1
}
get() { "${kind}_get" "$interface" "$target" 2>&1 | tr '\n\t' '  '; }
is_set() { # VALUE, in $here
	[ -s "$here/wanted" ] && [ "$(cat "$here/wanted")" = "$1" ] && [ "$(get)" = "$(cat "$here/after")" ]
}
keep() { # KNOB KIND INTERFACE TARGET VALUE
	knob=$1 kind=$2 interface=$3 target=$4
	here=$STATE/$(printf %s "$1" | tr / _)
	"${verb}_one" "$5"
}
remember() { # the state before, once
	[ ! -s "$here/before" ] || return 0
	mkdir -p "$here" && printf '%s\t%s\t%s\n' "$kind" "$interface" "$target" >"$here/what" &&
		"${kind}_save" "$interface" "$target" >"$here/before.new" && [ -s "$here/before.new" ] &&
		mv "$here/before.new" "$here/before" && printf '%s\n' "${here##*/}" >>"$STATE/order"
}
apply_one() { # VALUE
	if is_set "$1"; then
		return 0
	fi
	if ! said=$(remember 2>&1); then
		rm -rf "$here"
		wrong "$knob" "${said:-its state cannot be read}: it is not changed"
	elif ! said=$("${kind}_put" "$interface" "$target" "$1" 2>&1); then
		wrong "$knob" "${said:-it was refused}"
	else
		get >"$here/after"
		"${kind}_save" "$interface" "$target" >"$here/state" 2>/dev/null
		printf '%s\n' "$1" >"$here/wanted"
		needs_reload
	fi
}
needs_reload() {
	case $target in /etc/systemd/system/*) reload=1 ;; esac
}
status_one() { # VALUE
	if is_set "$1"; then
		printf 'set\t%s\t%s\n' "$knob" "$(cat "$here/after")"
	else
		printf 'not set\t%s\t%s\n' "$knob" "$(get)"
		failed=1
	fi
}
undo_order() { # what makes others anew first; otherwise the last one first
	awk '{ print NR "\t" $0 }' "$STATE/order" | while IFS=$TAB read -r undo_number undo_key; do
		read -r kind _ <"$STATE/$undo_key/what" 2>/dev/null || continue
		printf '%s\t%s\t%s\n' "$(rank "$undo_key" || rank "$kind" || echo 9999)" "$undo_number" "$undo_key"
	done | sort -k 1,1n -k 2,2nr | cut -f 3
}
undo_all() {
	[ -s "$STATE/order" ] || return 0
	for undo_key in $(undo_order); do
		here=$STATE/$undo_key
		[ -s "$here/what" ] || continue
		IFS=$TAB read -r kind interface target <"$here/what"
		undo_one
	done
	[ "$failed" = 1 ] || rm -rf "$STATE"
	rmdir "${STATE%/*}" 2>/dev/null || :
}
undo_one() {
	if ! is_before; then
		said=$(put_back "$kind" "$interface" "$target" "$here/before" "$here/state" 2>&1)
		needs_reload
		is_before || { wrong "$undo_key" "${said:-it is not as before}"; return 0; }
	fi
	rm -rf "$here"
}
is_before() {
	changed "$kind" "$here/before" "$here/state"
	is_back "$kind" "$interface" "$target"
}
finish() {
	[ "$verb" != undo ] || undo_all
	[ -z "$reload" ] || ! command -v systemctl >/dev/null 2>&1 || limit systemctl daemon-reload
	rm -rf "$RUN/work.$$"
	exit "$failed"
}
