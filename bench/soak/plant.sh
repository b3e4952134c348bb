# Beside what `bench/faults/plant.sh` plants: stand-ins for files that the kernel of a virtual machine does not have.
mkdir -p /var/lib/planted
cd /var/lib/planted || exit
echo 1 >no_turbo
echo "4294967295" >cpu_dma_latency
for cpu in cpu0 cpu1; do
	for state in POLL C1 C6; do
		mkdir -p "$cpu/cpuidle/$state"
		echo 0 >"$cpu/cpuidle/$state/disable"
	done
done
systemctl daemon-reload
systemctl start tuned
# What its first profile writes for the first time is a part of the original state.
for profile in network-latency powersave virtual-guest; do tuned-adm profile "$profile" || exit; done
