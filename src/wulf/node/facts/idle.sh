# Who uses a node: all processes and their CPU time, twice. POSIX sh; run as: sh -s -- SECONDS <idle.sh
export LC_ALL=C
processes() {
	echo "#$1"
	cat /proc/[0-9]*/stat 2>/dev/null
	echo "#$1.owners"
	stat -c '%u %n' /proc/[0-9]* 2>/dev/null
	echo "#$1.uptime"
	cat /proc/uptime
}
processes before
sleep "$1"
processes after
echo '#users'
# Of the own files alone: a directory server with thousands of users is not asked.
cut -d: -f1,3 /etc/passwd
# The load of a container is its host's.
if [ ! -e /run/systemd/container ]; then
	echo '#load'
	cat /proc/loadavg
fi
exit 0
