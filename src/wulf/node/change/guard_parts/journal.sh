# --- files that survive ------------------------------------------------------------------------------------

store() { # path; content on stdin: there as a whole or not at all, and on the disk
	cat >"$1.new" && put_in_place "$1" || not_stored "$1"
}
store_text() { # path, content of a line or more: the same, without a process for it
	{ printf '%s\n' "$2" >"$1.new"; } 2>/dev/null && [ -s "$1.new" ] && put_in_place "$1" || not_stored "$1"
}
put_in_place() { flush "$1.new" && mv "$1.new" "$1" && flush "${1%/*}"; }
not_stored() {
	rm -f "$1.new"
	return 1
}
store_or_spare() { # path, content: gives the reserve away when the disk is full
	store_text "$1" "$2" 2>/dev/null && return
	rm -f "$STATE/reserve"
	store_text "$1" "$2"
}
reserve() { # so that the end of a change can be written down on a disk, and in a /run, that has become full
	reserve_in "$RUN"
	reserve_in "$STATE"
}
reserve_in() { [ -s "$1/reserve" ] || dd if=/dev/zero of="$1/reserve" bs=4096 count=16 2>/dev/null; }
keep_in_run() { # NAME, content: until the next boot
	keep_once "$1" "$2" && return
	rm -f "$RUN/reserve"
	keep_once "$1" "$2" && return
	rm -f "$RUN/$1.new"
	return 1
}
keep_once() { { printf '%s\n' "$2" >"$RUN/$1.new" && [ -s "$RUN/$1.new" ] && mv "$RUN/$1.new" "$RUN/$1"; } 2>/dev/null; }
clear_away() { # paths; no process where there is nothing
	for clear_path; do
		[ ! -e "$clear_path" ] || rm -rf "$clear_path"
	done
}
discard() { # TX: at once, so that one half of it is never taken for a damaged journal
	[ ! -d "$STATE/tx/$1" ] || mv "$STATE/tx/$1" "$STATE/gone.$1" && rm -rf "$STATE/gone.$1"
}

# --- the journal -------------------------------------------------------------------------------------------

read_state() { # TX: sets state_word and state_why; what cannot be read is `stuck`, unless nothing was ever begun
	state_word= state_why= state_lost=
	{ IFS=$TAB read -r state_word state_why <"$STATE/tx/$1/state"; } 2>/dev/null
	case $state_word in
	preparing | prepared | applying | applied | undoing | stuck | undone | confirmed | abandoned) return ;;
	esac
	state_why=
	if ! was_begun "$1"; then
		state_word=none
	elif state_word=stuck state_lost=1 && [ -d "$STATE/tx/$1" ]; then
		state_why="its journal is damaged: its state cannot be read"
	else
		state_why="its journal is gone"
	fi
}
was_begun() { # TX: the state is written before anything that is found here
	for begun_file in "$STATE/tx/$1/state" "$STATE/tx/$1/sums" "$STATE/tx/$1"/saved.* "$STATE/open.$1" "$RUN/deadline.$1"; do
		[ ! -e "$begun_file" ] || return 0
	done
	return 1
}
state_of() {
	read_state "$1"
	printf '%s%s\n' "$state_word" "${state_why:+$TAB$state_why}"
}
is_over() { # state
	case $1 in none | confirmed | undone | abandoned) return 0 ;; *) return 1 ;; esac
}
become() { # TX, state, why
	note "$2${3:+: $3}"
	store_or_spare "$STATE/tx/$1/state" "$2${3:+$TAB$3}"
}
read_about() { # TX: sets about_*, from its mark outside where the journal is damaged
	about_format= about_number= about_owner= about_boot= about_at= about_steps=
	for about_file in "$STATE/tx/$1/about" "$STATE/open.$1"; do
		[ -z "$about_boot" ] && [ -r "$about_file" ] || continue
		while IFS=$TAB read -r about_key about_value; do
			case $about_key in
			format) about_format=$about_value ;;
			number) about_number=$about_value ;;
			owner) about_owner=$about_value ;;
			boot) about_boot=$about_value ;;
			at) about_at=$about_value ;;
			steps) about_steps=$about_value ;;
			esac
		done <"$about_file"
	done
	case $about_number in '' | *[!0-9]*) about_number=0 ;; esac
	case $about_steps in *[!0-9]*) about_steps= ;; esac
}
about() { # TX, key
	read_about "$1"
	eval "printf '%s\n' \"\$about_$2\""
}
journal() { # [STATE...]: a line for each change in one of these states, all by default: number, name, state, why
	# What is said then is no empty list: nobody takes it for a journal without open changes.
	journal_rows=$(journal_read "$@") || fail 1 "the journal cannot be read"
	case $journal_rows in
	'') return ;;
	*"$TAB?"*) # what cannot be read is looked at closely
		printf '%s\n' "$journal_rows" | while IFS=$TAB read -r journal_n journal_tx state_word state_why; do
			[ "$state_word" != '?' ] || read_state "$journal_tx"
			case " $* " in
			'  ' | *" $state_word "*) printf '%s\t%s\t%s\t%s\n' "$journal_n" "$journal_tx" "$state_word" "$state_why" ;;
			esac
		done
		;;
	*) printf '%s\n' "$journal_rows" ;;
	esac
}
journal_read() { # [STATE...]: the same by one process, for many are kept; `?` where the state is not plain to see
	printf '%s\n' "$STATE"/tx/*/ "$STATE"/open.* "$RUN"/deadline.* | awk -v state="$STATE" -v wanted=" $* " '
		function number(file,    line, part, found) {
			while ((getline line <file) > 0)
				if (split(line, part, "\t") > 1 && part[1] == "number") { found = part[2]; break }
			close(file)
			return found
		}
		function row(tx, dir,    n, line, word) {
			if (tx == "*" || tx in seen) return
			seen[tx]
			line = ""
			if (dir != "") { getline line <(dir "state"); close(dir "state") }
			word = line
			sub(/\t.*/, "", word)
			if (word !~ /^(preparing|prepared|applying|applied|undoing|stuck|undone|confirmed|abandoned)$/) {
				word = "?"
				line = word
			} else if (wanted != "  " && !index(wanted, " " word " ")) return
			n = dir != "" ? number(dir "about") : ""
			if (n == "") n = number(state "/open." tx)
			if (n !~ /^[0-9]+$/) n = 0
			print n "\t" tx "\t" line (index(line, "\t") ? "" : "\t")
		}
		/\/$/ { tx = $0; sub(/\/$/, "", tx); sub(/.*\//, "", tx); row(tx, $0); next }
		!/\.new$/ { tx = $0; sub(/.*\//, "", tx); sub(/^[^.]*\./, "", tx); row(tx, "") } # what was wiped has left its mark'
}
open_changes() { # [stuck|unfinished]: the latest first, as names tell no order
	case ${1:-} in
	stuck) set -- stuck ;;
	*) set -- preparing prepared applying applied undoing ${1:-stuck} ;;
	esac
	open_rows=$(journal "$@")
	case $open_rows in
	'') ;;
	*"
"*) printf '%s\n' "$open_rows" | sort -rn | cut -f 2 ;;
	*)
		open_rows=${open_rows#*"$TAB"}
		echo "${open_rows%%"$TAB"*}"
		;;
	esac
}

# --- whether it can be trusted -----------------------------------------------------------------------------
#
# `sums` has a digest of each file. It, and then `open.TX` beside the journal, are written before anything is
# changed; `open.TX` says what the change is of, and goes when it is over. Journals of earlier versions have neither.

seal() { # TX
	(cd "$STATE/tx/$1" && flush saved.* && sha256sum about plan saved.*) >"$STATE/tx/$1/sums.new" &&
		put_in_place "$STATE/tx/$1/sums" || not_stored "$STATE/tx/$1/sums" || return
	awk -F '\t' -v OFS='\t' 'FILENAME ~ /about$/ { print; next } { print "what", $1, $2, $3, $4 }' \
		"$STATE/tx/$1/about" "$STATE/tx/$1/plan" | store "$STATE/open.$1"
}
damaged() { # TX: prints the files that are not as they were written, on one line; nothing when all are
	[ -d "$STATE/tx/$1" ] || { echo everything; return; }
	read_about "$1"
	if [ -e "$STATE/tx/$1/sums" ]; then
		(cd "$STATE/tx/$1" && sha256sum -c sums 2>/dev/null) | awk -F ': ' -v steps="$about_steps" '
			$2 == "OK" { whole[$1] }
			END { n = split("about plan", name, " "); for (i = 1; i <= steps; i++) name[n + i] = "saved." i
				for (i = 1; i in name; i++) if (!(name[i] in whole)) print name[i] }'
	elif [ -n "$about_format" ]; then
		echo sums
	else
		damaged_unsealed "$1"
	fi | paste -s -d ' ' -
}
damaged_unsealed() { # TX, of an earlier version: what is empty or missing
	[ -s "$STATE/tx/$1/about" ] && [ -n "$about_boot" ] || echo about
	[ -s "$STATE/tx/$1/plan" ] || { echo plan; return; }
	unsealed_n=$(wc -l <"$STATE/tx/$1/plan")
	while [ "$unsealed_n" -gt 0 ]; do
		[ -s "$STATE/tx/$1/saved.$unsealed_n" ] || echo "saved.$unsealed_n"
		unsealed_n=$((unsealed_n - 1))
	done
}
untrusted() { # files: why nothing at all can be put back after them; nothing when each step can tell for itself
	for untrusted_file in $1; do
		case $untrusted_file in
		saved.*) ;;
		everything) echo "its journal is gone"; return ;;
		*) echo "its journal is damaged: $1"; return ;;
		esac
	done
}
what_of() { # TX: knob, kind, interface, target of each step, as far as that is known
	case " $(damaged "$1") " in
	*' plan '* | *' sums '* | *' everything '*) sed -n "s/^what$TAB//p" "$STATE/open.$1" 2>/dev/null ;;
	*) cut -f1-4 "$STATE/tx/$1/plan" ;;
	esac
}
