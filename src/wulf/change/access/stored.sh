# A file that lasts. VALUE: `absent`, `link:TARGET`, or `file:MODE:CONTENT` with the content in base64.
stored_save() {
	if [ -L "$2" ]; then
		printf 'link:%s\n' "$(readlink "$2")"
	elif [ -f "$2" ]; then
		printf 'file:%s:%s:%s\n' "$(stat -c %a:%u:%g "$2" | tr : ,)" "$(stat -c %Y "$2")" "$(base64 <"$2" | tr -d '\n')"
	elif [ -e "$2" ]; then
		echo "$2 is not a file" >&2
		return 1
	else
		printf 'absent:%s\n' "$(stored_missing "${2%/*}")"
	fi
}
stored_missing() { # directory: the uppermost one that is not there
	[ -d "$1" ] && return
	stored_upper=$(stored_missing "${1%/*}")
	printf '%s\n' "${stored_upper:-$1}"
}
stored_put() {
	mkdir -p "${2%/*}" && chmod go+rX "${2%/*}" || return 1
	case $3 in
	absent) rm -f "$2" ;;
	link:*) ln -sfn "${3#link:}" "$2" ;;
	file:*)
		stored_rest=${3#file:}
		printf %s "${stored_rest#*:}" | base64 -d >"$2.wulf" && chmod "${stored_rest%%:*}" "$2.wulf" && sync "$2.wulf" &&
			mv "$2.wulf" "$2" || { rm -f "$2.wulf"; return 1; }
		;;
	esac && sync "${2%/*}"
}
stored_restore() {
	IFS= read -r stored_before
	case $stored_before in
	absent:*)
		rm -f "$2"
		stored_upper=${stored_before#absent:}
		[ -z "$stored_upper" ] || stored_prune "${2%/*}" "$stored_upper"
		;;
	link:*) ln -sfn "${stored_before#link:}" "$2" ;;
	file:*)
		stored_rest=${stored_before#file:}
		stored_owner=${stored_rest%%:*}
		stored_rest=${stored_rest#*:}
		stored_time=${stored_rest%%:*}
		stored_put "$1" "$2" "file:${stored_owner%%,*}:${stored_rest#*:}" &&
			chown "$(printf %s "${stored_owner#*,}" | tr , :)" "$2" && touch -d "@$stored_time" "$2"
		;;
	esac
}
stored_prune() { # directory, uppermost: what was made for the file
	rmdir "$1" 2>/dev/null || return 0
	[ "$1" = "$2" ] || stored_prune "${1%/*}" "$2"
}
stored_get() { # what it is: a link's target, or the beginning of the content's SHA-256
	if [ -L "$2" ]; then
		printf 'link:%s\n' "$(readlink "$2")"
	elif [ -e "$2" ]; then
		sha256sum "$2" | cut -c1-12
	else
		echo absent
	fi
}
