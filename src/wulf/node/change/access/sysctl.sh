# A parameter of the kernel, by its name in sysctl.
sysctl_path() {
	sysctl_rest=$1
	sysctl_file=/proc/sys/${1%%.*}
	while [ "$sysctl_rest" != "${sysctl_rest#*.}" ]; do
		sysctl_rest=${sysctl_rest#*.}
		sysctl_file=$sysctl_file/${sysctl_rest%%.*}
	done
	echo "$sysctl_file"
}
sysctl_save() { file_save "$1" "$(sysctl_path "$2")"; }
sysctl_put() { file_put "$1" "$(sysctl_path "$2")" "$3"; }
sysctl_restore() { file_restore "$1" "$2"; }
sysctl_get() { file_get "$1" "$(sysctl_path "$2")"; }
