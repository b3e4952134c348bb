# A parameter of Open MPI in the file that all jobs on the node read. `default` takes the line away.
mpi_parameter_file() { # the program takes longer than all else: who has a place for its work asks it once
	mpi_known=${WORK_PLACE:-$RUN}/work.$$/mpi_parameter_file
	{ read -r mpi_found <"$mpi_known" && echo "$mpi_found" && return; } 2>/dev/null
	# A unit of systemd's has no home, without which Open MPI 5's says nothing, and ends with 0.
	mpi_directory=$(HOME=${HOME:-/} && export HOME && limit ompi_info --path sysconfdir --parsable 2>/dev/null | sed -n 's/^path:sysconfdir://p')
	[ -n "$mpi_directory" ] || { echo "Open MPI is not installed (no ompi_info)" >&2; return 1; }
	echo "$mpi_directory/openmpi-mca-params.conf"
	[ ! -d "${mpi_known%/*}" ] || echo "$mpi_directory/openmpi-mca-params.conf" >"$mpi_known"
}
mpi_parameter_real() { # a distribution may keep it elsewhere, with a link here
	mpi_link=$(mpi_parameter_file) || return 1
	readlink -f "$mpi_link"
}
mpi_parameter_save() {
	mpi_file=$(mpi_parameter_real) || return 1
	stored_save "$1" "$mpi_file"
}
mpi_parameter_put() {
	mpi_file=$(mpi_parameter_real) || return 1
	mpi_values=$3
	mpi_text=$(cat "$mpi_file" 2>/dev/null; echo .)
	for mpi_name in $2; do
		mpi_value=${mpi_values%% *}
		mpi_values=${mpi_values#* }
		mpi_text=$(printf %s "${mpi_text%.}" | grep -Ev "^[[:space:]]*$mpi_name[[:space:]]*="
			[ "$mpi_value" = default ] || printf '%s = %s\n' "$mpi_name" "$mpi_value"
			echo .)
	done
	mpi_mode=$(stat -c %a "$mpi_file" 2>/dev/null || echo 644)
	stored_put "$1" "$mpi_file" "file:$mpi_mode:$(printf %s "${mpi_text%.}" | base64 | tr -d '\n')"
}
mpi_parameter_restore() { stored_restore "$1" "$(mpi_parameter_real)"; }
mpi_parameter_get() {
	mpi_file=$(mpi_parameter_file) || return 1
	for mpi_name in $2; do
		sed -n "s/^[[:space:]]*$mpi_name[[:space:]]*=[[:space:]]*//p" "$mpi_file" 2>/dev/null | tail -n 1 | grep . || echo default
	done | paste -s -d ' ' -
}
