# A file that lasts. VALUE: `absent`, `link:TARGET`, or `file:MODE:CONTENT` with the content in base64.
stored_save() {
	stored_clear "$2"
	if [ -L "$2" ]; then
		printf 'link:%s\n' "$(readlink "$2")"
	elif [ -f "$2" ]; then
		printf 'file:%s:%s:%s\n' "$(stat -c %a:%u:%g "$2" | tr : ,)" "$(stored_time "$2")" "$(base64 <"$2" | tr -d '\n')"
	elif [ -e "$2" ]; then
		echo "$2 is not a file" >&2
		return 1
	else
		printf 'absent:%s\n' "$(stored_missing "${2%/*}")"
	fi
}
stored_time() { # seconds since the epoch, to the nanosecond where `stat` can
	stored_seconds=$(stat -c %.9Y "$1")
	case $stored_seconds in '' | *[!0-9.]*) stat -c %Y "$1" ;; *) echo "$stored_seconds" ;; esac
}
stored_missing() { # directory: the uppermost one that is not there
	[ -d "$1" ] && return
	stored_upper=$(stored_missing "${1%/*}")
	printf '%s\n' "${stored_upper:-$1}"
}
stored_put() {
	case $3 in
	absent) rm -f "$2" && { [ ! -d "${2%/*}" ] || flush "${2%/*}"; } ;;
	link:*) stored_directory "$2" && ln -sfn "${3#link:}" "$2" && flush "${2%/*}" ;;
	file:*)
		stored_rest=${3#file:}
		stored_write "$2" "${stored_rest%%:*}" "$(stat -c %u:%g "$2" 2>/dev/null)" '' "${stored_rest#*:}"
		;;
	*) echo "a file is absent, link:TARGET or file:MODE:CONTENT" >&2; return 1 ;;
	esac
}
stored_directory() { (umask 022 && mkdir -p "${1%/*}"); }
stored_write() { # path, mode, owner, time, content: there as a whole or not at all
	stored_directory "$1" || return 1
	# The directory may be one that other nodes write to, and the name one that somebody has made a link of.
	stored_new=$1.wulf.$(uname -n).$$
	(set -C && printf %s "$5" | base64 -d >"$stored_new") && { [ -z "$3" ] || chown "$3" "$stored_new"; } &&
		chmod "$2" "$stored_new" && { [ -z "$4" ] || touch -d "@$4" "$stored_new"; } && flush "$stored_new" &&
		mv -f "$stored_new" "$1" && flush "${1%/*}" || { rm -f "$stored_new"; return 1; }
}
stored_clear() { # path: what a guard of this node was writing when it was ended
	for stored_left in "$1.wulf.$(uname -n)".*; do
		case ${stored_left##*.} in *[!0-9]*) continue ;; esac
		[ -d "/proc/${stored_left##*.}" ] || rm -f "$stored_left"
	done
}
stored_restore() {
	IFS= read -r stored_before
	case $stored_before in
	absent:*)
		stored_put "$1" "$2" absent
		stored_upper=${stored_before#absent:}
		[ -z "$stored_upper" ] || stored_prune "${2%/*}" "$stored_upper"
		;;
	link:*) stored_put "$1" "$2" "$stored_before" ;;
	file:*)
		stored_rest=${stored_before#file:}
		stored_owner=${stored_rest%%:*}
		stored_rest=${stored_rest#*:}
		stored_write "$2" "${stored_owner%%,*}" "$(printf %s "${stored_owner#*,}" | tr , :)" "${stored_rest%%:*}" "${stored_rest#*:}"
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
