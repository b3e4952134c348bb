# Prints the sizes of what could grow, a name and a number a line.
bytes() { find "$@" -type f -printf '%s\n' 2>/dev/null | awk '{ s += $1 } END { print s + 0 }'; }
cd /var/lib/wulf || exit
echo "journal-bytes $(bytes tx first history open.*)"
echo "journal-changes $(ls tx | wc -l)"
echo "journal-files $(find . -type f | wc -l)"
echo "log-bytes $(bytes log log.1)"
echo "archive-bytes $(bytes archive archive.1)"
echo "run-bytes $(bytes /run/wulf)"
echo "processes $(ls -d /proc/[0-9]* | wc -l)"
echo "cgroups $(find /sys/fs/cgroup/unified /sys/fs/cgroup/systemd -type d | wc -l)"
echo "units $(systemctl list-units --all --plain --no-legend | wc -l)"
for process in "systemd 1" "journald $(pgrep -o systemd-journal)" "dbus $(pgrep -o dbus-daemon)" "logind $(pgrep -o systemd-logind)" \
	"tuned $(pgrep -o tuned)"; do
	pid=${process#* }
	[ -d "/proc/$pid" ] && [ -n "$pid" ] || continue
	echo "descriptors-${process% *} $(ls "/proc/$pid/fd" | wc -l)"
	echo "memory-${process% *}-KiB $(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")"
done
