# --- through sudo ------------------------------------------------------------------------------------------
#
# Who is not root calls this guard by way of sudo, which lets him do everything: this part is against mistakes and is no
# bound for an adversary (docs/adr/0016-sudo.md). Called so it changes what the catalogue names, and writes the files that
# `wulf settings persist` writes, but neither sets nor writes anything else. `granted_verbs`, `granted_steps`, `granted_files` and `granted_boot`
# print what is granted: `wulf.node.change.grants` makes them.

is_by_sudo() { [ "$by_sudo" != 0 ]; }
require_granted() { # VERB, words...
	case $1 in *[!a-z]* | '') fail 1 "through sudo there is no such verb" ;; esac
	granted_forms=$(granted_verbs | grep "^$1\( \|\$\)") || fail 1 "through sudo there is no verb $1"
	shift
	for granted_form in ${granted_forms#* }; do
		case $granted_forms in *' '*) ;; *) break ;; esac
		is_granted_word "$granted_form" "${1-}" || fail 1 "not through sudo: a word that is no $granted_form"
		[ $# -eq 0 ] || shift
	done
	[ $# -eq 0 ] || fail 1 "not through sudo: more words than the verb has"
}
is_granted_word() { # form, word: a number must not be anything that a shell's arithmetic would run
	case $1:$2 in
	*[[:cntrl:]]*) return 1 ;;
	why:*) return 0 ;;
	steps:0 | steps:[1-9]*) ! printf '%s\n' "$2" | grep -qv '^[0-9]\{1,6\}\(,[0-9]\{1,6\}\)*$' || return 1 ;;
	steps:*) return 1 ;;
	*: | number:*[!0-9]* | number:??????????* | change:*[!A-Za-z0-9-]* | owner:*[!A-Za-z0-9@._:+-]*) return 1 ;;
	esac
}
granted_plan() { # plan on stdin: in $RUN/granted when all of it is granted
	tr -d '\000' | head -c 1048577 >"$RUN/granted"
	[ "$(wc -c <"$RUN/granted")" -le 1048576 ] || fail 1 "not through sudo: a plan of more than 1 MiB"
	granted_not=$(refused_lines <"$RUN/granted")
	[ -z "$granted_not" ] || fail 1 "not through sudo: $granted_not"
}
refused_lines() { # prints what of a plan is not granted
	granted_lines=$(cat)
	printf '%s\n' "$granted_lines" | awk -F '\t' '
		NF != 5 || $1 !~ /^[A-Za-z0-9_.\/@+-]+$/ || $3 !~ /^(-|[A-Za-z0-9][A-Za-z0-9_.:@-]*)$/ { print "a step that is not one"; exit }
		{ for (i = 1; i <= 5; i++) if ($i !~ /^[ -~]+$/) { print "a step that is not one"; exit } }'
	printf '%s\n' "$granted_lines" | grep -v "^[^$TAB]*${TAB}stored$TAB" | refused_steps
	printf '%s\n' "$granted_lines" | grep "^[^$TAB]*${TAB}stored$TAB" | while IFS=$TAB read -r _ _ _ granted_path granted_value; do
		is_granted_file "$granted_path" "$granted_value" || echo "$granted_path with this content"
	done
}
refused_steps() { # steps on stdin: prints those that set something which the catalogue does not name
	{ granted_steps; echo; cat; } | awk -F '\t' '
		!plan && $0 == "" { plan = 1; next }
		!plan { kind[++n] = $1; target[n] = $2; value[n] = "^(" $3 ")$"; next }
		{ for (i = 1; i <= n; i++) {
				named = target[i]
				gsub("INTERFACE", $3, named)
				if (NF == 5 && $2 == kind[i] && $4 == named && $5 ~ value[i]) next
			}
			print substr($0, 1, 200) }'
}

# --- files -------------------------------------------------------------------------------------------------

is_granted_file() { # path, value of a `stored` step
	case $1 in *[!A-Za-z0-9_./@+-]* | *..*) return 1 ;; esac
	granted_what=$(granted_files | awk -F '\t' -v path="$1" 'path ~ ("^" $1 "$") { print $2; exit }')
	case $2 in
	absent) [ -n "$granted_what" ] ;;
	link:*) [ "$2" = "$granted_what" ] ;;
	file:644:* | file:755:*)
		printf %s "${2#file:*:}" | base64 -d >"$RUN/granted.file" 2>/dev/null || return 1
		granted_not=$("granted_${granted_what%%:*}" "${granted_what#*:}" <"$RUN/granted.file" 2>&1) && [ -z "$granted_not" ]
		;;
	*) return 1 ;;
	esac
}
granted_() { return 1; } # a path that is not in the table
granted_link() { return 1; } # a link alone
granted_unmarked() { # takes the line away that says whose the file is
	sed '/^# Written by wulf (change [A-Za-z0-9-]*): `wulf rollback` takes it away\.$/d'
}
granted_sysctls() { granted_unmarked | sed "s/^\([a-z0-9_.]*\) = /k${TAB}sysctl${TAB}-${TAB}\1$TAB/" | refused_steps; }
granted_options() {
	granted_unmarked | sed "s/^options [a-z0-9_-]* \([A-Za-z0-9_]*\)=/k${TAB}module${TAB}-${TAB}\1$TAB/" | refused_steps
}
granted_network() { # a .link file or a drop-in of a .network file
	granted_unmarked | grep -Ev '^(# [A-Za-z0-9 ,:./_@-]*|\[(Match|Link)\]|[A-Za-z0-9]+=[A-Za-z0-9 ,:./_@%*!+-]*|)$' || :
}
granted_text() { # SHA-256|SHA-256...: a text that is always the same
	granted_unmarked | sed "s/^\(\[ \"[^\"]*\" = \)'\{0,1\}[A-Za-z0-9_.:@-]*\( up\)\{0,1\}'\{0,1\} ]/\1INTERFACE ]/" |
		sha256sum | grep -Ev "^($1) "
	return 0
}
granted_script() { # made of the guard's own functions, and of lines that set what is granted
	{
		sed '/^# --- end of the kinds of access/q' "$STATE/guard"
		echo
		granted_boot
	} >"$RUN/granted.known"
	granted_unmarked | awk -v known="$RUN/granted.known" '
		BEGIN { RS = ""; while ((getline text < known) > 0) there[text] }
		NR == 1 { sub(/^#!\/bin\/sh\n/, "") }
		/^keep / || $0 in there { next }
		{ print "a text that is not of wulf" }'
	sed -n '/^keep /,$p' "$RUN/granted.file" | granted_kept | refused_steps
}
granted_kept() { # the last lines of such a script, as the steps of a plan
	awk -v OFS='\t' '
		$0 == "exit \"$failed\"" && !end { end = 1; next }
		{ n = 0; rest = substr($0, 6); bad = end || !/^keep [a-z]+ /
			while (!bad && rest != "") {
				if (match(rest, /^\047[^\047]*\047/)) word[++n] = substr(rest, 2, RLENGTH - 2)
				else if (match(rest, /^[A-Za-z0-9_@%+=:,.\/-]+/)) word[++n] = substr(rest, 1, RLENGTH)
				else { bad = 1; break }
				rest = substr(rest, RLENGTH + 1)
				if (rest != "" && rest !~ /^ ./) bad = 1
				rest = substr(rest, 2)
			}
			if (bad || n != 6 || word[1] !~ /^(node|nic|firewall|latency)$/ || word[4] !~ /^(-|[A-Za-z0-9][A-Za-z0-9_.:@-]*)$/) print "not a setting: " $0
			else print word[2], word[3], word[4], word[5], word[6] }'
}
