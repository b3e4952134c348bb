# --- what was done -----------------------------------------------------------------------------------------
#
# The last changes are kept one by one. Of the confirmed ones before them `history` keeps what is needed to go back
# to the original state and to say what is set: for each target those states (in `first/`) that say what was there
# before, and the last value. The rest of them is in `archive`, which nothing reads. A line of `history`, with tabs
# between: `what` FILES KIND INTERFACE TARGET TX N KNOB VALUE READ-BACK; the files are `saved.N`, as seen from `tx/`.

through() { # the number up to which confirmed changes are in `history`
	through_n=
	{ IFS=$TAB read -r _ through_n <"$STATE/history"; } 2>/dev/null
	case $through_n in '' | *[!0-9]*) echo 0 ;; *) echo "$through_n" ;; esac
}
last_number() {
	{ through; journal; } | awk -v last=0 '$1 + 0 > last { last = $1 + 0 } END { print last }'
}
confirmed() { # the confirmed changes that are kept one by one, the oldest first
	confirmed_from=$(through)
	journal confirmed | sort -n | awk -F '\t' -v from="$confirmed_from" '$1 > from + 0 { print $2 }'
}
since_original() { # changes on stdin: those after the last rollback to the original state; first `history`, if it counts
	{ [ ! -s "$STATE/history" ] || echo history; cat; } | while read -r known; do
		rolled_to=
		{ read -r rolled_to <"$STATE/tx/$known/rollback"; } 2>/dev/null
		printf '%s\t%s\n' "$known" "$rolled_to"
	done | awk -F '\t' '{ line[NR] = $1; if ($2 == "original") from = NR } END { for (i = from + 1; i <= NR; i++) print line[i] }'
}
sum_up() { # changes on stdin: what they changed, each once: all saved.N; kind, interface, target; the last TX, N that
	# set it; knob, value; value read back, which may be empty
	set -f
	set --
	while read -r known; do
		case $known in
		history) set -- "$@" "$STATE/history" ;;
		*)
			set -- "$@" "$STATE/tx/$known/plan"
			[ ! -e "$STATE/tx/$known/values" ] || set -- "$@" "$STATE/tx/$known/values"
			;;
		esac
	done
	set +f
	[ $# -eq 0 ] || awk -F '\t' -v OFS='\t' '
		function note(key, files, line) {
			if (!(key in all)) order[++n] = key
			all[key] = all[key] (all[key] ? " " : "") files
			last[key] = line; value[key] = ""
		}
		FNR == 1 { parts = split(FILENAME, part, "/"); file = part[parts]; tx = part[parts - 1] }
		file == "history" && $1 == "what" { key = $3 FS $4 FS $5; note(key, $2, $6 FS $7 FS $8 FS $9); value[key] = $10 }
		file == "plan" { key = $2 FS $3 FS $4; at[FNR] = key; note(key, tx "/saved." FNR, tx FS FNR FS $1 FS $5) }
		file == "values" { value[at[$1]] = $2 }
		END { for (i = 1; i <= n; i++) print all[order[i]], order[i], last[order[i]], value[order[i]] }' "$@"
}
touched() { # [TX]: what confirmed changes have changed, from that one on
	confirmed | since_original | case ${1:-original} in original) cat ;; *) sed -n "/^$1\$/,\$p" ;; esac | sum_up
}
unsound() { # rows of `touched`: why one cannot be put back; nothing when all can
	cut -f1,7 | while IFS=$TAB read -r files knob; do
		for file in $files; do
			unsound_tx=${file%%/*}
			[ "$unsound_tx" != .. ] || continue # the history answers for its own
			case " $(damaged "$unsound_tx") " in *" ${file#*/} "* | *' sums '*)
				echo "$unsound_tx: what was before $knob is damaged ($STATE/tx/$file); 'wulf rollback --abandon $unsound_tx' leaves its values as they are"
				;;
			esac
		done
	done | head -n 1
}
damaged_history() { # why it cannot be trusted; nothing when it can
	if [ ! -e "$STATE/history" ]; then
		[ ! -e "$STATE/archive" ] || echo "$STATE/history is gone"
	elif [ "$(sed -n '$s/^digest\t//p' "$STATE/history")" != "$(sed '$d' "$STATE/history" | sha256sum)" ]; then
		echo "$STATE/history is damaged"
	else
		(cd "$STATE/tx" && sed -n "s/^sum$TAB//p" ../history | sha256sum -c 2>/dev/null) |
			sed -n '/: OK$/!s/:.*/ is damaged/p' | head -n 1
	fi
}
rollback() { # TX, OWNER, DEADLINE_S, original|ID
	recover stuck # who asks for this has mended what kept it from being put back
	case $4 in
	original)
		broken=$(damaged_history)
		[ -z "$broken" ] || fail 1 "$broken: what was before the changes in it is not known"
		;;
	*) [ -d "$STATE/tx/$4" ] || fail 1 "there is no change $4 here, or it is older than the last $KEPT_CHANGES" ;;
	esac
	touched "$4" >"$RUN/touched" || fail 1 "cannot write to $RUN: is it full?"
	if [ ! -s "$RUN/touched" ]; then
		printf 'nothing\n'
		return 0
	fi
	broken=$(unsound <"$RUN/touched")
	[ -z "$broken" ] || fail 1 "$broken"
	way_back <"$RUN/touched" >"$RUN/rollback" || fail 1 "cannot write to $RUN: is it full?"
	begin "$1" "$2" "$3" <"$RUN/rollback"
	rm -f "$RUN/touched" "$RUN/rollback"
	store_or_spare "$STATE/tx/$1/rollback" "$4" || not_begun "cannot write to $STATE: is the disk full?"
}

way_back() { # rows of `touched`: a plan
	rolled=0
	while IFS=$TAB read -r files kind interface target _ _ knob _; do
		rolled=$((rolled + 1))
		printf '%s\t%s\t' "$(rank_of "$knob" "$kind")" "$rolled"
		printf '%s\t%s\t%s\t%s\t@%s\n' "$knob" "$kind" "$interface" "$target" "$files"
	done | sort -k 1,1n -k 2,2nr | cut -f 3-
}

# --- kept small --------------------------------------------------------------------------------------------

forget() { # the log keeps what those were that are not kept
	journal undone abandoned | sort -rn | tail -n "+$KEPT_CHANGES" | while IFS=$TAB read -r _ known _; do
		discard "$known"
	done
}
condense() { # not all at once, where a version before has left very many: a controller waits
	confirmed >"$RUN/confirmed" || return 0
	many=$(wc -l <"$RUN/confirmed")
	if [ "$many" -ge $((KEPT_CHANGES + 10)) ] && [ -z "$(damaged_history)" ]; then
		head -n $((many - KEPT_CHANGES)) "$RUN/confirmed" | head -n 100 | while read -r known; do # up to one that is damaged
			[ -z "$(damaged "$known")" ] && echo "$known" || break
		done >"$RUN/condensed"
		[ ! -s "$RUN/condensed" ] || condense_those
	fi
	rm -f "$RUN/confirmed" "$RUN/condensed"
}
condense_those() { # in $RUN/condensed. They are over for good once `history` is written
	note "the $(wc -l <"$RUN/condensed") oldest confirmed changes go to $STATE/archive"
	mkdir -p "$STATE/first" && since_original <"$RUN/condensed" | sum_up >"$RUN/summed" && keep_first <"$RUN/summed" >"$RUN/history" &&
		sealed_history <"$RUN/history" | store "$STATE/history" || { note "cannot write to $STATE/history"; return 0; }
	archive
	forget_first
	rm -f "$RUN/summed" "$RUN/history"
}
sealed_history() {
	cat >"$RUN/sealed" && cat "$RUN/sealed" && printf 'digest\t%s\n' "$(sha256sum <"$RUN/sealed")" && rm -f "$RUN/sealed"
}
keep_first() { # rows of `sum_up` on stdin: keeps the states before, prints `history`
	printf 'through\t%s\n' "$(about "$(tail -n 1 "$RUN/condensed")" number)" || return 1
	while IFS=$TAB read -r files kind interface target last_tx last_n knob wanted read_back; do
		kept=
		# shellcheck disable=SC2086 # names
		for file in $(needed "$kind" $files); do
			case $file in
			../*) ;;
			*)
				keep_file "$file" && keep_file "${file%/*}/after.${file##*.}" || return 1
				file=../first/$file
				;;
			esac
			kept="$kept${kept:+ }$file"
			keep_sum "$file" && keep_sum "${file%/*}/after.${file##*.}" || return 1
		done
		printf 'what\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$kept" "$kind" "$interface" "$target" "$last_tx" \
			"$last_n" "$knob" "$wanted" "$read_back" || return 1
	done
}
keep_file() { # as seen from tx/
	[ ! -e "$STATE/tx/$1" ] || { mkdir -p "$STATE/first/${1%/*}" && store "$STATE/first/$1" <"$STATE/tx/$1"; }
}
keep_sum() { [ ! -e "$STATE/tx/$1" ] || { (cd "$STATE/tx" && sha256sum "$1") | sed "s/^/sum$TAB/"; }; }
needed() { # KIND, saved.N...: those without which not all would come back; the others have nothing new in them
	needed_kind=$1
	shift
	if [ $# -eq 1 ] || ! has_items "$needed_kind" || command -v "${needed_kind}_items" >/dev/null 2>&1; then
		echo "$1"
		return
	fi
	needed_files=
	: >"$RUN/needed"
	kind=$needed_kind
	for needed_file; do
		changed_by "$needed_files${needed_files:+ }$needed_file"
		if [ -z "$needed_files" ] || ! cmp -s "$WORK/ours" "$RUN/needed"; then
			needed_files="$needed_files${needed_files:+ }$needed_file"
			cp "$WORK/ours" "$RUN/needed"
		fi
	done
	rm -f "$RUN/needed"
	echo "$needed_files"
}
archive() { # the changes in $RUN/condensed
	[ "$({ wc -c <"$STATE/archive" || echo 0; } 2>/dev/null)" -le "$KEPT_ARCHIVE_BYTES" ] || mv -f "$STATE/archive" "$STATE/archive.1"
	while read -r known; do
		awk -v tx="$known" 'FNR == 1 { n = split(FILENAME, part, "/"); print "== " tx "/" part[n] } { print }' \
			"$STATE/tx/$known"/* >>"$STATE/archive" 2>/dev/null
		mv "$STATE/tx/$known" "$STATE/gone.$known"
	done <"$RUN/condensed"
	rm -rf "$STATE"/gone.*
}
forget_first() { # states that `history` does not name
	for first_file in "$STATE"/first/*/*; do
		grep -q "  ../first/${first_file#"$STATE/first/"}\$" "$STATE/history" || rm -f "$first_file"
	done
	rmdir "$STATE"/first/* 2>/dev/null || :
}

# --- shown; nothing is changed by it ----------------------------------------------------------------------

status() {
	printf 'boot\t%s\nuptime\t%s\n' "$(boot)" "$(now)"
	if [ -s "$RUN/lock" ]; then
		read_lock
		printf 'lock\t%s\t%s\t%s\n' "$lock_owner" "$(($(now) - lock_since))" "$((lock_until - $(now)))"
	fi
	broken=$(damaged_history)
	[ -z "$broken" ] || printf 'tx\thistory\t-\t-\t-\t0\t\tdamaged\t%s\n' "$broken"
	status_from=$(through)
	journal | sort -n | while IFS=$TAB read -r number known word why; do
		[ "$word" != confirmed ] || [ "$number" -gt "$status_from" ] || continue
		status_row
	done
	touched | while IFS=$TAB read -r files kind interface target tx number knob wanted read_back; do
		differs=same
		changed_by "$files"
		is_back "$kind" "$interface" "$target" || differs=different
		printf 'set\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$knob" "$kind" "$interface" "$target" "$tx" "$differs" \
			"$("${kind}_get" "$interface" "$target" 2>&1 | tr '\n\t' '  ')" "$wanted" "$read_back"
	done
	tail -n 20 "$STATE/log" 2>/dev/null | sed 's/^/log\t/'
}
status_row() {
	read_about "$known"
	about_this=$about_boot
	rolled_to=
	{ read -r rolled_to <"$STATE/tx/$known/rollback"; } 2>/dev/null
	status_remark
	printf 'tx\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n' "$known" "${about_at:--}" "${about_owner:--}" "${about_boot:--}" \
		"$(steps "$known")" "$rolled_to" "$word" "${why:+$TAB$why}"
}
status_remark() { # sets word and why to what somebody has to know
	case $word in
	undone | abandoned | preparing | none) ;;
	confirmed)
		broken=$(damaged "$known")
		[ -z "$broken" ] || { word=damaged why="it is confirmed, and its journal is damaged ($broken): it cannot be rolled back"; }
		;;
	stuck) why="$why; 'wulf rollback --abandon $known' leaves it so" ;;
	*)
		broken=$(damaged "$known")
		if [ -n "$broken" ]; then
			word=damaged why="its journal is damaged: $broken"
		elif [ "$about_this" != "$(boot)" ]; then
			why="left open: the node was started anew since"
		elif is_late "$known"; then
			why="overdue: nobody confirmed it, and it is not put back yet"
		fi
		;;
	esac
}
