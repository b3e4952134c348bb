# Prints what a node's settings are, beyond its facts.
tries=0 # a booted node's address is being looked for among its neighbours
while ip -6 addr show dev host0 tentative | grep -q . && [ "$tries" -lt 50 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
section() { echo "== $1"; shift; "$@" 2>&1; }
section addresses ip -o addr show dev host0
section routes ip route show table all
section rules sh -c "nft -nn list ruleset | sed 's/packets [0-9]* bytes [0-9]*/packets 0 bytes 0/'"
section features ethtool -k host0
section channels ethtool -l host0
names='^net[.](core|ipv4[.]tcp|ipv4[.]conf[.]host0|ipv6[.]conf[.]host0)'
section sysctl sh -c "sysctl -a -r '$names' | grep -v -e tcp_fastopen_key -e stable_secret"
section units sh -c "systemctl list-units --all --plain --no-legend 'planted*' nftables.service | tr -s ' '"
section unit-files systemctl list-unit-files --no-legend 'planted*' nftables.service
section flush cat /sys/class/net/host0/gro_flush_timeout /sys/class/net/host0/queues/rx-0/rps_cpus
section guards sh -c "ls -d /run/systemd/transient/wulf* 2>/dev/null; true"
