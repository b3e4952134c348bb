# Sets what the last lines name, as they were found to be right. Arguments: the parts to set (node, nic, firewall,
# latency); the first three by default. One that fails does not keep the others from being set.
parts=${*:-node nic firewall}
failed=0
await() { # INTERFACE: a driver may need a while to make it
	await_tries=0
	until [ "$1" = - ] || [ -e "/sys/class/net/$1" ]; do
		await_tries=$((await_tries + 1))
		[ "$await_tries" -le 300 ] || return 0 # what is set next says that it is not there
		sleep 0.1
	done
}
keep() { # PART KNOB KIND INTERFACE TARGET VALUE
	case " $parts " in *" $1 "*) ;; *) return 0 ;; esac
	[ "$1" = firewall ] || await "$4" # a rule needs no interface, and its service may come before that
	said=$(/var/lib/wulf/guard set "$3" "$4" "$5" "$6" 2>&1) && return
	printf '%s=%s: %s\n' "$2" "$6" "${said#error?}" >&2
	failed=1
}
