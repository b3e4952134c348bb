# Frequencies above the nominal one: 1 allowed, 0 not. TARGET: the file that forbids, the file that allows.
turbo_save() {
	# shellcheck disable=SC2086 # two paths
	set -- $2
	for turbo_path; do
		[ -e "$turbo_path" ] && printf '%s\t%s\n' "$turbo_path" "$(cat "$turbo_path")" && return
	done
	echo "the CPU has no turbo that can be set" >&2
	return 1
}
turbo_put() {
	turbo_value=$3
	case $(turbo_save "$1" "$2") in
	*no_turbo*) file_write "${2%% *}" "$((1 - turbo_value))" ;;
	*) file_write "${2##* }" "$turbo_value" ;;
	esac
}
turbo_restore() { file_restore "$1" "$2"; }
turbo_get() {
	turbo_state=$(turbo_save "$1" "$2") || return
	case $turbo_state in *no_turbo*) echo $((1 - ${turbo_state##*	})) ;; *) echo "${turbo_state##*	}" ;; esac
}
