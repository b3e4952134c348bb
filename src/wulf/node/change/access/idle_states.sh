# Idle states of the CPUs that are not used: "all allowed", or "disabled: NAME NAME".
idle_states_save() { file_save "$1" "$2"; }
idle_states_put() {
	for idle_path in $(file_each "$2"); do
		idle_name=${idle_path%/disable}
		idle_name=${idle_name##*/}
		case " ${3#disabled:} " in *" $idle_name "*) idle_value=1 ;; *) idle_value=0 ;; esac
		file_write "$idle_path" "$idle_value" || return 1
	done
}
idle_states_restore() { file_restore "$1" "$2"; }
idle_states_get() {
	idle_off=$(file_save "$1" "$2" | awk -F '\t' '$2 == 1 { n = split($1, part, "/"); print part[n - 1] }' | sort -u | paste -s -d ' ' -)
	[ -n "$idle_off" ] && echo "disabled: $idle_off" || echo "all allowed"
}
