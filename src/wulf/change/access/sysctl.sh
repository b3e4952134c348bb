# A parameter of the kernel, by its name in sysctl.
sysctl_path() { printf '/proc/sys/%s\n' "$(printf %s "$1" | tr . /)"; }
sysctl_save() { file_save "$1" "$(sysctl_path "$2")"; }
sysctl_put() { file_put "$1" "$(sysctl_path "$2")" "$3"; }
sysctl_restore() { file_restore "$1" "$2"; }
sysctl_get() { file_get "$1" "$(sysctl_path "$2")"; }
