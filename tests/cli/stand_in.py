"""Stand-ins for MPI libraries that are not to be had everywhere: MPICH behind their compilers and launchers.

A launcher's stand-in refuses what the captured help text does not have, and then starts the job with MPICH's own Hydra:
that the words are understood is tried, not how the other library does it.
"""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "mpi"
_COMPILER = """#!/bin/sh
case $1 in
-v) echo '{verbose}' ;;
*) exec mpicc.mpich "$@" ;;
esac
"""
_LAUNCHER = '''#!/usr/bin/env python3
"""Understands what {file} says."""
import os, re, sys
words = sys.argv[1:]
known = set(re.findall(r"(?<![\\w-])-[a-z][a-z-]*", open({path!r}).read())) | {more!r}
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
single = {single!r}
hosts, program, ranks, env = [], [], 0, dict(os.environ)
while words:
    word = words.pop(0)
    if word == ":":
        program = []
        continue
    if word.startswith("-") and not program:
        if word not in known:
            sys.exit(f"unknown option {{word}}")
        if word in single:
            continue
        value = words.pop(0)
        if word in ("-n", "-np"):
            ranks = int(value)
            wanted = ranks
        if word == "-host":
            hosts += [value] * ranks
    elif {named!r} and len(hosts) < wanted:
        hosts.append(word)
    elif {named!r} and re.fullmatch(r"[A-Z0-9_]+=.*", word) and not program:
        name, _, value = word.partition("=")
        env[name] = value
    else:
        program.append(word)
job = ["mpiexec.mpich", "-n", str(len(hosts)), "-launcher", "fork", "-disable-auto-cleanup", *program]
os.execvpe(job[0], job, env)
'''


def intel_mpi(directory: Path) -> Path:
    """Make a compiler and a launcher that look like Intel MPI's; return the compiler."""
    _write(
        directory / "mpicc",
        _COMPILER.format(verbose="mpigcc for the Intel(R) MPI Library 2021.18 for Linux*"),
    )
    file = "intelmpi-2021.18-help.txt"
    text = _LAUNCHER.format(
        file=file,
        path=str(GOLDEN / file),
        more={"-host"},
        log=str(directory / "log"),
        single=("-disable-auto-cleanup",),
        named=False,
    )
    _write(directory / "mpiexec.hydra", text)
    return directory / "mpicc"


def mvapich(directory: Path) -> Path:
    """Make a compiler and a launcher that look like MVAPICH2's; return the compiler."""
    _write(directory / "mpicc", _COMPILER.format(verbose="mpicc for MVAPICH2"))
    _write(directory / "mpichversion", "#!/bin/sh\necho 'MVAPICH2 Version:     \t2.3.7'\n")
    file = "mvapich2-mpirun_rsh-usage.txt"
    text = _LAUNCHER.format(
        file=file,
        path=str(GOLDEN / file),
        more=set(),
        log=str(directory / "log"),
        single=("-ssh", "-export"),
        named=True,
    )
    _write(directory / "mpirun_rsh", text)
    return directory / "mpicc"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
