# CPUs of the interface's interrupts. They are known by their names: a driver that makes its queues anew gets
# other numbers. The value is a list of CPUs for each interrupt, in order; the last one serves the rest.
irq_affinity_list() { # number and name
	awk -v nic="$1" 'NR > 1 && $1 ~ /^[0-9]+:$/ && $NF ~ ("^(.*[-@])?" nic "($|[-@:])") { sub(":", "", $1); print $1, $NF }' /proc/interrupts
}
irq_affinity_save() {
	irq_affinity_list "$1" | while read -r irq_number irq_name; do
		printf '%s\t%s\n' "$irq_name" "$(cat "/proc/irq/$irq_number/smp_affinity_list")"
	done | grep . || { echo "$1 has no interrupts of its own" >&2; return 1; }
}
irq_affinity_write() { # number, CPUs
	{ printf '%s\n' "$2" >"/proc/irq/$1/smp_affinity_list"; } 2>/dev/null ||
		{ echo "interrupt $1 does not take the CPUs $2" >&2; return 1; }
}
irq_affinity_put() {
	irq_cpus=$3
	irq_affinity_list "$1" | while read -r irq_number irq_name; do
		irq_affinity_write "$irq_number" "${irq_cpus%% *}" || return 1
		irq_cpus=${irq_cpus#* }
	done
}
irq_affinity_restore() {
	while IFS=$TAB read -r irq_name irq_cpus; do
		irq_number=$(irq_affinity_list "$1" | awk -v name="$irq_name" '$2 == name { print $1 }')
		[ -z "$irq_number" ] || irq_affinity_write "$irq_number" "$irq_cpus" || return 1
	done
}
irq_affinity_get() { irq_affinity_save "$1" "$2" | cut -f2 | paste -s -d ' ' -; }
