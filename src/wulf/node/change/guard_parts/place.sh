# --- where files are ---------------------------------------------------------------------------------------
#
# A directory such as /opt may be the same one on many nodes, and a root may be gone after a boot. Nothing is written
# to find that out: what counts is the type of the file system and, on the same kernel, device and inode.

where() { # plan on stdin; prints for each file: file STEP PATH TYPE KEY HOLDER FORGETS VALUE
	where_step=0
	exec 3<&0 </dev/null # what is called in between must not take the rest of the plan
	while IFS=$TAB read -r knob kind interface target value <&3; do
		where_step=$((where_step + 1))
		case $kind in
		mpi_parameter) where_path=$(mpi_parameter_real) || fail 11 "$knob: Open MPI is not installed (no ompi_info)" ;;
		stored) where_path=$target ;;
		*) continue ;;
		esac
		where_mount=$(place_mount "$where_path")
		printf 'file\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$where_step" "$where_path" "$(printf %s "$where_mount" | cut -f1)" \
			"$(place_key "$where_path")" "$(where_holder "$kind" "$where_path")" "$(place_forgets "$where_mount")" \
			"$("${kind}_get" "$interface" "$target" 2>/dev/null | tr '\n\t' '  ')"
	done
}
where_holder() { # kind, path: `mine` when a confirmed change of this node is in it, else the node that says so there
	if touched | cut -f2 | grep -qx "$1"; then
		echo mine
	else
		sed -n 's/^# wulf on \([^ ]*\) has changed this file.*/\1/p' "$2" 2>/dev/null | tail -n 1 | grep . || echo -
	fi
}
place_upper() { # path: itself, or the directory above it that is there
	place_path=$1
	until [ -e "$place_path" ] || [ -z "$place_path" ]; do place_path=${place_path%/*}; done
	printf '%s\n' "${place_path:-/}"
}
place_mount() { # path: type and options of the file system that it is on
	place_real=$(readlink -f "$(place_upper "$1")")
	awk -v path="$place_real" '
		{ for (i = 7; i < NF && $i != "-"; i++) ;
			at = $5; gsub(/\\040/, " ", at); inside = at == "/" || path == at || index(path, at "/") == 1
			if (inside && length(at) >= best) { best = length(at); found = $(i + 1) "\t" $(i + 3) } }
		END { print found }' /proc/self/mountinfo
}
place_key() { # path: the same for all who see the same file
	place_found=$(place_upper "$1")
	place_rest=${1#"$place_found"}
	if place_is_local "$(place_mount "$1" | cut -f1)"; then
		printf '%s:%s%s\n' "$(boot)" "$(stat -c %d:%i "$place_found")" "$place_rest"
	else
		# Devices are of one kernel; on a server's disk the number of a file is the same for all.
		printf '%s:%s%s\n' "$(stat -c %i "$place_found")" \
			"$({ [ ! -f "$place_found" ] || cat "$place_found"; } | sha256sum | cut -c1-16)" "$place_rest"
	fi
}
place_is_local() { # TYPE: one that no other machine can have
	case $1 in
	ext[234] | xfs | btrfs | zfs | f2fs | jfs | reiserfs | bcachefs | vfat | overlay | tmpfs | ramfs | rootfs | squashfs | erofs) return 0 ;;
	*) return 1 ;;
	esac
}
place_forgets() { # type and options: why what is written there does not last, or `-`
	place_type=${1%%"$TAB"*}
	place_layer=$(printf %s "${1#*"$TAB"}" | tr , '\n' | sed -n 's/^upperdir=//p')
	case $place_type in
	tmpfs | ramfs | rootfs) echo "in memory ($place_type), so a boot forgets it" ;;
	squashfs | erofs) echo "on a file system that cannot be written ($place_type)" ;;
	overlay)
		case ",${1#*"$TAB"}," in *,volatile,*) place_layer=/run/ ;; esac
		case $place_layer:$(stat -f -c %T "$place_layer" 2>/dev/null) in
		/run/* | /cow/* | /dev/shm/* | *:tmpfs | *:ramfs) echo "on an overlay in memory, so a boot forgets it" ;;
		:*) echo "on an overlay that cannot be written" ;;
		*) echo - ;;
		esac
		;;
	*) place_is_local "$place_type" && echo - || echo "on $place_type, which other nodes may have, too" ;;
	esac
}
