# The guard: makes changes on this node and undoes them unless they are confirmed in time.
#
#   guard lock OWNER LEASE_S             take (or renew) the node for one controller
#   guard unlock OWNER
#   guard begin TX OWNER DEADLINE_S      plan on stdin; journals the old state, changes nothing
#   guard apply TX                       makes the changes and prints what the kernel or driver made of them
#   guard swap OLD TX OWNER DEADLINE_S   undo OLD (- for none), begin TX (plan on stdin) and apply it, in one go
#   guard extend TX DEADLINE_S           still there: so many seconds from now
#   guard confirm TX                     keeps them; over a new connection
#   guard undo TX [WHY]                  puts everything back, in reverse order
#   guard rollback TX OWNER DEADLINE_S original|ID
#                                        begins a change back to the state before that one
#   guard recover                        ends what was left open; also runs before any of the above, and at boot
#   guard watch                          undoes what nobody confirmed in time; started by `begin`
#   guard status                         what is set, by whom, since when, and what differs from the original
#
# A plan has one step per line, with tabs between: KNOB KIND INTERFACE TARGET VALUE. Every KIND is a file of
# `access/`, whose functions come before this text:
#
#   KIND_save INTERFACE TARGET           prints the exact state
#   KIND_put INTERFACE TARGET VALUE      sets
#   KIND_restore INTERFACE TARGET        puts back what `save` printed (stdin)
#   KIND_get INTERFACE TARGET            prints the value as the catalogue writes it
#
# The journal is one directory per change, $STATE/tx/TX: `plan`, `about`, `saved.N` (the state before step N) and
# `state`. Each is flushed to disk before what it speaks of begins; a change whose `state` is `confirmed` is kept,
# every other one is put back. A step whose state is as saved is not touched again, so that undoing is idempotent.
#
# Exit codes: 0 done; 1 an error, nothing changed; 10 somebody else has the node; 11 a step failed and all is put
# back; 12 too late: it was undone before; 13 not everything could be put back (`status` says what).
umask 077
STATE=/var/lib/wulf
KEPT_LOG_BYTES=262144
RETRY_S=60 # what could not be put back is tried again so much later
UNIT=wulf-recover.service

fail() { # code, words...
	code=$1
	shift
	words=$(printf %s "$*" | tr '\n\t' '  ')
	printf 'error\t%s\n' "$words"
	note "error: $words"
	exit "$code"
}
now() { # seconds since boot: no clock that somebody sets
	read -r up _ </proc/uptime
	echo "${up%.*}"
}
boot() { cat /proc/sys/kernel/random/boot_id; }
note() { # the log is for people; the journal is what counts, so a log that cannot be written stops nothing
	{ printf '%s %s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "${tx:--}" "$*" >>"$STATE/log"; } 2>/dev/null || :
}

# --- files that survive ------------------------------------------------------------------------------------

store() { # path; content on stdin: there as a whole or not at all, and on the disk
	cat >"$1.new" && flush "$1.new" && mv "$1.new" "$1" && flush "${1%/*}"
}
store_or_spare() { # path, content: gives the reserve away when the disk is full
	printf '%s\n' "$2" | store "$1" 2>/dev/null && return
	rm -f "$STATE/reserve"
	printf '%s\n' "$2" | store "$1"
}
reserve() { # so that the end of a change can be written down on a disk that has become full
	[ -s "$STATE/reserve" ] || dd if=/dev/zero of="$STATE/reserve" bs=4096 count=16 2>/dev/null
}
state_of() { cat "$STATE/tx/$1/state" 2>/dev/null || echo none; }
become() { # TX, state, why
	note "$2${3:+: $3}"
	store_or_spare "$STATE/tx/$1/state" "$2${3:+$TAB$3}"
}
about() { # TX, key
	sed -n "s/^$2$TAB//p" "$STATE/tx/$1/about"
}
changes() { # number and name of each, the earliest first: the clocks of controllers differ, so names tell no order
	awk -F '\t' '$1 == "number" { n = split(FILENAME, part, "/"); print $2 "\t" part[n - 1] }' \
		"$STATE"/tx/*/about 2>/dev/null | sort -n
}
open_changes() { # the latest first
	changes | sort -rn | while read -r _ open_tx; do
		case $(state_of "$open_tx") in none | confirmed* | undone*) ;; *) echo "$open_tx" ;; esac
	done
}

# --- one guard at a time -----------------------------------------------------------------------------------

exclusively() { # the lock goes with the process, however that ends
	command -v flock >/dev/null 2>&1 || fail 1 "flock (util-linux) is not installed"
	exec 9>"$RUN/mutex"
	flock -w 30 9 || fail 10 "another guard is at work for more than 30 s: $(cat "$RUN/holder" 2>/dev/null)"
	# A guard that was killed may have left tools at work, which would go on setting things behind our back.
	[ ! -s "$RUN/holder" ] || end_guard "$(cat "$RUN/holder")"
	echo "$MARK" >"$RUN/holder"
	trap 'rm -f "$RUN/holder"' EXIT
}
marked() { # every process of this guard has its mark in the environment, so that none is mistaken for another's
	MARK=${WULF_GUARD:-}
	case $MARK in "$$."*.) ;; *) WULF_GUARD=$$.$(now). exec /bin/sh "$0" "$@" ;; esac
}
end_guard() { # mark
	[ "$1" != "$MARK" ] || return 0
	for marked_environ in $(grep -ls "WULF_GUARD=$1" /proc/[0-9]*/environ); do
		marked_pid=${marked_environ%/environ}
		kill -9 "${marked_pid#/proc/}" 2>/dev/null
	done
}
require_owner() { # OWNER
	[ -s "$RUN/lock" ] || fail 10 "nobody has taken this node: lock it first"
	read_lock
	[ "$lock_owner" = "$1" ] || fail 10 "$lock_owner has this node since $(($(now) - lock_since)) s"
}
read_lock() {
	IFS=$TAB read -r lock_owner lock_since lock_until <"$RUN/lock"
}
lock() { # OWNER, LEASE_S
	since=$(now)
	if [ -s "$RUN/lock" ]; then
		read_lock
		if [ "$lock_owner" = "$1" ]; then
			since=$lock_since
		elif [ "$(now)" -lt "$lock_until" ]; then
			fail 10 "$lock_owner has this node since $(($(now) - lock_since)) s, for $((lock_until - $(now))) s more at most"
		else
			note "the lease of $lock_owner is over: $1 takes the node"
			for left in $(open_changes); do
				undo "$left" "its owner is gone"
			done
		fi
	fi
	printf '%s\t%s\t%s\n' "$1" "$since" "$(($(now) + $2))" >"$RUN/lock.new" && mv "$RUN/lock.new" "$RUN/lock"
}
unlock() { # OWNER
	[ -s "$RUN/lock" ] || return 0
	read_lock
	[ "$lock_owner" != "$1" ] || rm -f "$RUN/lock"
}

# --- a change ----------------------------------------------------------------------------------------------

is_kept_over_boot() { # KIND: what a reboot does not undo by itself
	case $1 in stored | unit | mpi_parameter) return 0 ;; *) return 1 ;; esac
}
step() { # TX, N: sets knob kind interface target value
	IFS=$TAB read -r knob kind interface target value <<-END
		$(sed -n "$2p" "$STATE/tx/$1/plan")
	END
}
steps() { # TX: how many
	wc -l <"$STATE/tx/$1/plan"
}
forget_undone() { # the log keeps what they were
	changes | sort -rn | while read -r _ known; do
		case $(state_of "$known") in undone*) echo "$known" ;; esac
	done | tail -n +50 | while read -r known; do
		rm -rf "${STATE:?}/tx/$known"
	done
}
begin() { # TX, OWNER, DEADLINE_S; plan on stdin
	tx=$1
	require_owner "$2"
	forget_undone
	[ -z "$(open_changes)" ] || fail 10 "a change is open: $(open_changes)"
	mkdir -p "$STATE/tx" && reserve || fail 1 "cannot write to $STATE: $(df -Pk "$STATE" | awk 'NR == 2 { print $4 }') KiB are free"
	mkdir "$STATE/tx/$tx" || fail 1 "there is a change $tx"
	{
		flush "$STATE/guard" && store "$STATE/tx/$tx/plan" &&
			printf 'number\t%s\nowner\t%s\nboot\t%s\nat\t%s\n' "$(($(changes | tail -n 1 | cut -f1) + 1))" \
				"$2" "$(boot)" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" |
			store "$STATE/tx/$tx/about" && printf 'preparing\n' | store "$STATE/tx/$tx/state" && flush "$STATE/tx"
	} 2>/dev/null || abandon "cannot write to $STATE: is the disk full?"
	note "begin: $(steps "$tx") steps for $2"
	deadline "$tx" "$3"
	watched || abandon "the watcher does not start"
	number=0
	while [ "$number" -lt "$(steps "$tx")" ]; do
		number=$((number + 1))
		step "$tx" "$number"
		command -v "${kind}_save" >/dev/null 2>&1 || abandon "$knob: this guard knows no access kind $kind"
		note "save $number: $knob"
		said=$({ "${kind}_save" "$interface" "$target" 9>&- | store "$STATE/tx/$tx/saved.$number"; } 2>&1)
		[ -s "$STATE/tx/$tx/saved.$number" ] && [ -z "$said" ] ||
			abandon "$knob: ${said:-its state cannot be read, so it could not be put back}"
		is_kept_over_boot "$kind" && recover_at_boot
	done
	deadline "$tx" "$3"
	become "$tx" prepared || abandon "cannot write to $STATE: is the disk full?"
}
abandon() { # why: nothing has been changed yet
	rm -rf "${STATE:?}/tx/$tx"
	close_change
	fail 11 "$*"
}
deadline() { # TX, seconds
	echo $(($(now) + $2)) >"$RUN/deadline.$1.new" && mv "$RUN/deadline.$1.new" "$RUN/deadline.$1"
}
is_late() { # TX
	late_at=$(cat "$RUN/deadline.$1" 2>/dev/null) || return 0
	[ "$(now)" -ge "$late_at" ]
}
require_open() { # TX, state...
	require_tx=$1
	read -r open_word open_why <<-END
		$(state_of "$require_tx")
	END
	shift
	case " $* " in *" $open_word "*) ;; *) fail 12 "$require_tx is $open_word${open_why:+: $open_why}" ;; esac
	is_late "$require_tx" || return 0
	undo "$require_tx" "not confirmed in time" || exit 13
	fail 12 "$require_tx came too late and was undone"
}
apply() { # TX
	tx=$1
	require_open "$tx" prepared
	become "$tx" applying || fail 1 "cannot write to $STATE"
	number=0
	while [ "$number" -lt "$(steps "$tx")" ]; do
		number=$((number + 1))
		step "$tx" "$number"
		note "put $number: $knob=$(printf %.60s "$value")"
		if ! said=$(put 2>&1 9>&-); then
			# The steps are gone through anew by undoing them.
			refused="$knob=$(printf %.60s "$value"): $(printf %s "${said:-it was refused}" | tr '\n\t' '  ')"
			undo "$tx" "step $number, $refused" || exit 13
			fail 11 "$refused"
		fi
		printf 'step\t%s\t%s\t%s\n' "$number" "$knob" "$("${kind}_get" "$interface" "$target" 2>&1 9>&- | tr '\n\t' '  ')"
	done
	settle
	become "$tx" applied || {
		undo "$tx" "cannot write to $STATE" || exit 13
		fail 11 "cannot write to $STATE: is the disk full?"
	}
}
swap() { # OLD, TX, OWNER, DEADLINE_S; plan on stdin
	if [ "$1" != - ]; then
		undo "$1" "the next trial" || exit 13
	fi
	begin "$2" "$3" "$4"
	apply "$2"
}
put() { # the current step; a value @TX/saved.N is the state saved there
	case $value in
	@*)
		saved=$STATE/tx/${value#@}
		as_saved && return
		"${kind}_restore" "$interface" "$target" <"$saved"
		as_saved || echo "$knob is not as before"
		as_saved
		;;
	*) "${kind}_put" "$interface" "$target" "$value" ;;
	esac
}
settle() { # once for all steps
	units=$(awk -F "$TAB" 'index($4, "/etc/systemd/system/") == 1 { print $4 }' "$STATE/tx/$tx/plan")
	[ -n "$units" ] || return 0
	limit systemctl daemon-reload 2>/dev/null 9>&-
	for unit in $units; do # what one without its file failed with would keep the system degraded
		[ -e "$unit" ] || limit systemctl reset-failed "${unit##*/}" 2>/dev/null 9>&-
	done
	return 0
}
extend() { # TX, DEADLINE_S
	tx=$1
	require_open "$tx" prepared applied
	deadline "$tx" "$2"
	watched
}
confirm() { # TX
	tx=$1
	case $(state_of "$tx") in confirmed*) return 0 ;; esac
	require_open "$tx" applied
	become "$tx" confirmed || fail 1 "cannot write to $STATE"
	close_change
}
close_change() {
	rm -f "$RUN/deadline.$tx"
	tidy
	reserve 2>/dev/null
	wake
	return 0
}
undo() { # TX, why
	tx=$1
	case $(state_of "$tx") in
	undone* | none) return 0 ;;
	confirmed*) fail 12 "$tx is confirmed: roll it back" ;;
	esac
	become "$tx" undoing "${2:-asked to}" || :
	stuck=
	# Interrupts come last: channels and rings make them anew.
	for undo_pass in first last; do
		number=$(steps "$tx")
		while [ "$number" -gt 0 ]; do
			step "$tx" "$number"
			case $kind:$undo_pass in irq_affinity:first | *:last) [ "$kind:$undo_pass" = irq_affinity:last ] ;; esac &&
				undo_step
			number=$((number - 1))
		done
	done
	settle
	if [ -n "$stuck" ]; then
		become "$tx" stuck "$stuck"
		deadline "$tx" "$RETRY_S"
		printf 'error\tnot put back: %s\n' "$stuck"
		return 13
	fi
	become "$tx" undone "${2:-asked to}"
	close_change
}
give_up() { # TX: nobody has come in time, so whoever has the node is gone
	undo "$1" "not confirmed in time" && unlock "$(about "$1" owner)"
}
undo_step() {
	saved=$STATE/tx/$tx/saved.$number
	[ -s "$saved" ] || return 0
	[ "$(boot)" = "$(about "$tx" boot)" ] || is_kept_over_boot "$kind" || return 0
	if as_saved; then
		return 0
	fi
	note "restore $number: $knob"
	said=$("${kind}_restore" "$interface" "$target" <"$saved" 2>&1 9>&-)
	as_saved || stuck="$stuck $knob ($(printf %s "${said:-it is not as before}" | tr '\n\t' '  '));"
	# What starts at this boot was settled before the unit was put back.
	[ "$kind" != unit ] || [ "$(boot)" = "$(about "$tx" boot)" ] || unit_follow "$target" 9>&-
}
as_saved() {
	"${kind}_save" "$interface" "$target" 2>/dev/null 9>&- | cmp -s - "$saved"
}
recover() { # what an earlier boot, a dead controller or a dead guard left
	for left in $(open_changes); do
		if [ "$(boot)" != "$(about "$left" boot)" ]; then
			undo "$left" "the node was started anew"
		elif is_late "$left"; then
			give_up "$left"
		else
			case $(state_of "$left") in preparing* | applying* | undoing* | stuck*) undo "$left" "its guard was ended" ;; esac
		fi
	done
	for left in "$STATE"/tx/*/; do # a `begin` that never came to its journal
		[ ! -d "$left" ] || [ -e "$left/state" ] || rm -rf "$left"
	done
	tidy
	tx=
}
tidy() { # 0 when no change is open; then nothing of one may be left, whatever ended a guard after its last word
	[ -z "$(open_changes)" ] && rm -f "$RUN"/deadline.* && no_recover_at_boot
}

# --- the watcher -------------------------------------------------------------------------------------------

wake() { # make it look at the deadlines again
	watcher=$(cat "$RUN/watcher" 2>/dev/null)
	# The number may be another process's by now.
	[ -n "$watcher" ] && tr '\0' ' ' <"/proc/$watcher/cmdline" 2>/dev/null | grep -q 'guard watch' &&
		kill -USR1 "$watcher" 2>/dev/null
}
watched() { # start it, unless there is one
	wake && return 0
	rm -f "$RUN/watcher"
	for way in watch_by_systemd watch_by_setsid watch_by_nohup; do
		"$way" </dev/null >/dev/null 2>&1 9>&- || continue
		tries=0
		until [ -s "$RUN/watcher" ]; do
			tries=$((tries + 1))
			[ "$tries" -lt 100 ] || continue 2
			sleep 0.05
		done
		return 0
	done
	return 1
}
watch_by_systemd() { # a service outlives the connection, and systemd starts it again should somebody end it
	[ -d /run/systemd/system ] && systemd-run --quiet --collect --unit="wulf-guard-$$-$(now)" -p Restart=on-failure \
		-p RestartSec=100ms -p StartLimitIntervalSec=0 /bin/sh "$STATE/guard" watch
}
watch_by_setsid() { command -v setsid && { setsid /bin/sh "$STATE/guard" watch & }; }
watch_by_nohup() { nohup /bin/sh "$STATE/guard" watch & }
watch() {
	trap : USR1
	echo $$ >"$RUN/watcher"
	while :; do
		wait_s=5 # a signal that comes just before the wait is not seen
		for left in $(open_changes); do
			left_until=$(cat "$RUN/deadline.$left" 2>/dev/null) || left_until=0
			left_s=$((left_until - $(now)))
			if [ "$left_s" -le 0 ]; then
				overdue
				left_s=1
			fi
			[ "$left_s" -ge "$wait_s" ] || wait_s=$left_s
		done
		if [ -z "$(open_changes)" ]; then
			retire
			wait_s=1
		fi
		sleep "$wait_s" &
		# A signal ends the wait, not the sleep, whose number is nobody else's as long as it was not waited for.
		wait $! || { kill $! 2>/dev/null && wait $! 2>/dev/null; }
	done
}
overdue() { # in a shell of its own: the lock must go when it is done
	if ! flock -w 5 "$RUN/mutex" true; then
		note "the guard at work hangs: it is ended"
		hanging=$(cat "$RUN/holder" 2>/dev/null) && [ -n "$hanging" ] && end_guard "$hanging"
	fi
	(
		exclusively
		rotate
		is_late "$left" && give_up "$left"
	)
}
retire() { # nothing is open; decided under the lock, so that no `begin` counts on this watcher
	(
		flock -w 1 9 || exit 1
		tidy && rm -f "$RUN/watcher"
	) 9>"$RUN/mutex" && exit 0
}

# --- at boot -----------------------------------------------------------------------------------------------

recover_at_boot() (
	[ ! -e "/etc/systemd/system/$UNIT" ] && [ -d /etc/systemd/system ] || return 0
	umask 022
	printf '%s\n' '[Unit]' 'Description=Undo changes of wulf that nobody confirmed' 'DefaultDependencies=no' \
		'RequiresMountsFor=/var/lib/wulf /etc' 'After=local-fs.target' \
		'Before=sysinit.target systemd-sysctl.service systemd-modules-load.service network-pre.target' '' \
		'[Service]' 'Type=oneshot' "ExecStart=/bin/sh $STATE/guard recover" |
		store "/etc/systemd/system/$UNIT" &&
		mkdir -p /etc/systemd/system/sysinit.target.wants &&
		ln -sf "../$UNIT" "/etc/systemd/system/sysinit.target.wants/$UNIT" &&
		flush /etc/systemd/system/sysinit.target.wants
)
no_recover_at_boot() {
	[ -e "/etc/systemd/system/$UNIT" ] || return 0
	rm -f "/etc/systemd/system/sysinit.target.wants/$UNIT" "/etc/systemd/system/$UNIT"
	rmdir /etc/systemd/system/sysinit.target.wants 2>/dev/null || :
}

# --- what was done -----------------------------------------------------------------------------------------

confirmed_since_original() { # confirmed changes that are not rolled back, the oldest first
	changes | while read -r _ known; do
		case $(state_of "$known") in confirmed*) echo "$known" ;; esac
	done | awk -v state="$STATE" '{ line[NR] = $0; to = ""; getline to < (state "/tx/" $0 "/rollback"); if (to == "original") from = NR }
		END { for (i = from + 1; i <= NR; i++) print line[i] }'
}
touched() { # [TX]: what was changed from that change on, each once: first TX, N; the last TX, N that set it
	case ${1:-original} in original) from= ;; *) from=$1 ;; esac
	for known in $(confirmed_since_original); do
		[ "$known" != "$from" ] || from=
		[ -z "$from" ] || continue
		awk -F '\t' -v tx="$known" -v OFS='\t' '{ print tx, NR, $2 "\t" $3 "\t" $4, $1, $5 }' "$STATE/tx/$known/plan"
	done | awk -F '\t' -v OFS='\t' '{ key = $3 FS $4 FS $5
		if (!(key in first)) { first[key] = $1 OFS $2; order[++n] = key }
		last[key] = $1 OFS $2 OFS $6 OFS $7 }
		END { for (i = 1; i <= n; i++) print first[order[i]], order[i], last[order[i]] }'
}
rollback() { # TX, OWNER, DEADLINE_S, original|ID
	case $4 in original) ;; *) [ -d "$STATE/tx/$4" ] || fail 1 "there is no change $4 here" ;; esac
	touched "$4" | awk -F '\t' -v OFS='\t' '{ line[NR] = $8 OFS $3 OFS $4 OFS $5 OFS "@" $1 "/saved." $2 }
		END { for (i = NR; i > 0; i--) print line[i] }' >"$RUN/rollback"
	if [ ! -s "$RUN/rollback" ]; then
		printf 'nothing\n'
		return 0
	fi
	begin "$1" "$2" "$3" <"$RUN/rollback"
	store_or_spare "$STATE/tx/$1/rollback" "$4" || abandon "cannot write to $STATE: is the disk full?"
}
status() {
	printf 'boot\t%s\nuptime\t%s\n' "$(boot)" "$(now)"
	if [ -s "$RUN/lock" ]; then
		read_lock
		printf 'lock\t%s\t%s\t%s\n' "$lock_owner" "$(($(now) - lock_since))" "$((lock_until - $(now)))"
	fi
	changes | while read -r _ known; do
		printf 'tx\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$known" "$(about "$known" at)" "$(about "$known" owner)" \
			"$(about "$known" boot)" "$(steps "$known")" "$(cat "$STATE/tx/$known/rollback" 2>/dev/null)" "$(state_of "$known")"
	done
	touched | while IFS=$TAB read -r first_tx first_n kind interface target tx number knob wanted; do
		differs=same
		"${kind}_save" "$interface" "$target" 2>/dev/null | cmp -s - "$STATE/tx/$first_tx/saved.$first_n" || differs=different
		printf 'set\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$knob" "$kind" "$interface" "$target" "$tx" "$differs" \
			"$("${kind}_get" "$interface" "$target" 2>&1 | tr '\n\t' '  ')" "$wanted"
	done
	tail -n 20 "$STATE/log" 2>/dev/null | sed 's/^/log\t/'
}

rotate() {
	[ "$({ wc -c <"$STATE/log" || echo 0; } 2>/dev/null)" -le "$KEPT_LOG_BYTES" ] || mv -f "$STATE/log" "$STATE/log.1"
}

main() {
	marked "$@"
	verb=$1
	shift
	[ "$(id -u)" = 0 ] || fail 1 "changing settings takes root"
	mkdir -p "$STATE" "$RUN" || fail 1 "cannot write to $STATE"
	if [ "$verb" = watch ]; then
		watch
		exit
	fi
	exclusively
	rotate
	case $verb in
	recover) recover ;;
	undo)
		recover
		undo "$@"
		;;
	lock | unlock | begin | apply | swap | extend | confirm | rollback | status)
		recover
		"$verb" "$@"
		;;
	*) fail 1 "there is no verb $verb" ;;
	esac
}
main "$@"
