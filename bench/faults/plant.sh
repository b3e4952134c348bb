# What every node has before the cases: rules with connection tracking, services, a setting that is kept.
{
	echo '#!/usr/sbin/nft -f'
	echo 'flush ruleset'
	echo 'table inet planted {'
	echo 'set good { type ipv4_addr; elements = { 198.18.0.1, 198.18.0.10 }; }'
	echo 'chain input { type filter hook input priority filter; policy accept'
	echo 'ct state established,related counter accept'
	for n in $(seq 28); do echo "tcp dport $((20000 + n)) counter drop comment \"planted $n\""; done
	echo 'ip saddr @good accept'
	echo '}'
	echo 'chain output { type filter hook output priority filter; policy accept; ct state invalid drop'
	echo '}'
	echo '}'
} >/etc/nftables.conf
nft -c -f /etc/nftables.conf || exit
rm -rf /var/lib/wulf
unit() {
	{
		printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nRemainAfterExit=yes\n'
		printf '%s\n[Install]\nWantedBy=multi-user.target\n' "$2"
	} >"/etc/systemd/system/$1"
}
unit planted.service 'ExecStart=/bin/true'
unit planted-sys.service 'ExecStart=/bin/mount -o remount,rw /sys/devices'
echo 'table inet cut { chain input { type filter hook input priority filter; tcp dport 22 drop; }; }' \
	>/etc/planted-cut.nft
unit planted-cut.service "ExecStart=/usr/sbin/nft -f /etc/planted-cut.nft
ExecStop=/usr/sbin/nft delete table inet cut"
nft -c -f /etc/planted-cut.nft || exit
echo 'net.ipv4.tcp_fin_timeout = 44' >/etc/sysctl.d/98-planted.conf
# A node that is planted anew is as it was before, to the time of its files.
touch -d 2026-01-01 /etc/nftables.conf /etc/systemd/system/planted*.service /etc/planted-cut.nft /etc/sysctl.d/98-planted.conf
# What is not in use here: systemd looks each unit up in all its directories, which takes a third of a look.
systemctl list-units --all --plain --no-legend --no-pager | awk '{ print $1 }' >/run/in-use
cd /lib/systemd/system
for unit in *.service *.timer *.socket; do
	case $unit in
	systemd-reboot* | systemd-poweroff* | systemd-halt* | systemd-exit* | systemd-kexec*) continue ;;
	nftables* | irqbalance* | ssh* | dbus* | *@*) continue ;;
	esac
	grep -qxF "$unit" /run/in-use || rm "$unit"
done
systemctl daemon-reload
systemctl -q enable planted planted-sys nftables
