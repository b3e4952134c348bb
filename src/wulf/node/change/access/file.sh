# A file under /proc or /sys, or all files of some patterns; a value has a word for each pattern.
# A file that shows its choices ("always [madvise] never") has the one in brackets.
file_each() { # patterns: prints the files
	for file_path in $1; do
		[ -e "$file_path" ] && printf '%s\n' "$file_path"
	done
}
file_save() {
	file_found=$(file_each "$2")
	[ -n "$file_found" ] || { echo "there is no $2" >&2; return 1; }
	printf '%s\n' "$file_found" | while read -r file_path; do
		file_text=$(cat "$file_path") || return 1
		printf '%s\t%s\n' "$file_path" "$(file_chosen "$file_text")"
	done
}
file_chosen() {
	case $1 in
	*\[*\]*) file_rest=${1#*\[} && printf %s "${file_rest%%\]*}" ;;
	*"$TAB"*) printf %s "$1" | tr '\t' ' ' ;;
	*) printf %s "$1" ;;
	esac
}
file_put() {
	set -f
	set -- "$3" $2
	file_values=$1
	shift
	file_words=$#
	for file_pattern; do
		set +f
		[ "$file_words" -eq 1 ] && file_value=$file_values || file_value=${file_values%% *}
		file_values=${file_values#* }
		for file_path in $(file_each "$file_pattern"); do
			file_write "$file_path" "$file_value" || return 1
		done
	done
}
file_write() { # path, value
	file_said=$({ printf '%s\n' "$2" >"$1"; } 2>&1) || { echo "$1 does not take '$2' (${file_said##*: })" >&2; return 1; }
}
file_restore() { # one that does not come back does not keep the others from it
	file_failed=0
	while IFS=$TAB read -r file_path file_value; do
		file_of_no_queue "$file_path" && continue
		[ "$(file_chosen "$(cat "$file_path" 2>/dev/null)")" = "$file_value" ] || file_write "$file_path" "$file_value" ||
			file_failed=1
	done
	return "$file_failed"
}
# An interface that has fewer queues than when they were set has none of their settings, and would make a new queue
# without them: nothing is to be put back. An interface that is gone is something else.
file_lasting() {
	while IFS= read -r file_item; do
		file_of_no_queue "${file_item%%"$TAB"*}" || printf '%s\n' "$file_item" || return 1
	done
}
file_of_no_queue() { # path
	case $1 in
	/sys/class/net/*/queues/[rt]x-*/*) [ -d "${1%/queues/*}/queues" ] && [ ! -d "${1%/*}" ] ;;
	*) return 1 ;;
	esac
}
file_get() {
	set -f
	for file_pattern in $2; do
		set +f
		file_save "$1" "$file_pattern" | cut -f2 | sort -u | paste -s -d , -
	done | paste -s -d ' ' -
}
