# What of a state a change has changed, whether that is back, and what somebody else has changed since.
#
# A kind may say with KIND_items what of its states counts (KEY and value, a line each, or the word: without what
# changes by itself); one whose states have items, with KIND_also what else they take with them, and with KIND_lasting
# which of them there can still be. Files are in $WORK.
items() { # KIND; a state on stdin
	if command -v "$1_items" >/dev/null 2>&1; then "$1_items"; else cat; fi
}
changed() { # KIND SAVED AFTER [SAVED AFTER]..., the first change first: writes to $WORK/ours what has to come back
	changed_kind=$1
	changed_first=$2
	shift
	WORK=${WORK_PLACE:-$RUN}/work.$$
	[ -d "$WORK" ] || mkdir -p "$WORK" || return 1
	# Where a state is more than its items, it is the first one that comes back.
	! command -v "${changed_kind}_items" >/dev/null 2>&1 || set -- "$1" "$2"
	# What could not be written for want of space must not look like nothing.
	rm -f "$WORK"/items.* "$WORK/ours"
	[ -s "$1" ] || return 1
	if command -v "${changed_kind}_items" >/dev/null 2>&1; then
		[ ! -s "$1" ] || items "$changed_kind" <"$1" >"$WORK/items.1" || return 1
		[ ! -s "$2" ] || items "$changed_kind" <"$2" >"$WORK/items.2" || return 1
		set -- "$WORK/items.1" "$WORK/items.2"
	fi
	has_items "$changed_kind" && changed_word=0 || changed_word=1
	printf '%s\n' "$@" | awk -v word="$changed_word" '
		function pair(n,    there, any, all, line, lines, differing, i, part, key) {
			while ((getline line <path[n + 1]) > 0) { there[line]; any = 1 }
			while ((getline line <path[n]) > 0) { all[++lines] = line; if (!(line in there)) differing = 1 }
			for (i = 1; i <= lines; i++) {
				split(all[i], part, /[ \t]/)
				key = word ? "" : part[1]
				# A word comes back whatever came after it; so do all items where what came after is not known, or
				# shows nothing of what was set.
				if ((!word && any && differing && all[i] in there) || (key in got && got[key] != n)) continue
				got[key] = n
				print all[i]
			} }
		{ path[NR] = $0 }
		END { for (n = 1; n < NR; n += 2) pair(n) }' >"$WORK/ours.new" || return 1
	if command -v "${changed_kind}_also" >/dev/null 2>&1; then
		"${changed_kind}_also" "$changed_first" <"$WORK/ours.new" >"$WORK/ours.all" && mv "$WORK/ours.all" "$WORK/ours"
	else
		mv "$WORK/ours.new" "$WORK/ours"
	fi
}
is_back() { # KIND INTERFACE TARGET: whether all of $WORK/ours is there
	[ -f "$WORK/ours" ] || return 1
	if command -v "$1_items" >/dev/null 2>&1; then
		"$1_save" "$2" "$3" 2>/dev/null | "$1_items" >"$WORK/now" || return 1
	else
		"$1_save" "$2" "$3" 2>/dev/null >"$WORK/now" || : # what is not there is not back, but where nothing lasts
	fi
	is_back_items=$WORK/ours
	if command -v "$1_lasting" >/dev/null 2>&1; then
		is_back_items=$WORK/lasting
		"$1_lasting" "$2" "$3" <"$WORK/ours" >"$is_back_items" || return 1
	fi
	grep -qvxFf "$WORK/now" "$is_back_items"
	[ "$?" = 1 ]
}
put_back() { # KIND INTERFACE TARGET SAVED AFTER: $WORK/ours
	if command -v "$1_items" >/dev/null 2>&1; then
		"$1_restore" "$2" "$3" "$4" "$5" <"$4"
	else
		"$1_restore" "$2" "$3" <"$WORK/ours"
	fi
}
left() { # KIND SAVED AFTER: what is neither as it was before nor as the change left it, and not ours: $WORK/now of is_back
	[ -s "$3" ] && has_items "$1" || return 0
	{ items "$1" <"$2" && items "$1" <"$3" && cat "$WORK/ours"; } >"$WORK/known"
	awk 'FILENAME != now { split($0, part, /[ \t]/); known[$0]; keys[part[1]]; next }
		{ split($0, part, /[ \t]/) } part[1] in keys && !($0 in known)' now="$WORK/now" "$WORK/known" "$WORK/now"
}
