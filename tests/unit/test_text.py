"""Why a program ended, by what it printed last; the texts are those of Open MPI 4.1.4, MPICH 4.0.2 and LAMMPS."""

from __future__ import annotations

import pytest

from wulf.base.text import last_words
from wulf.node.probe.command import named

FRAME = "-" * 74
MISSING = f"""{FRAME}
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: /nonesuch
Node: node01

while attempting to start process rank 0.
{FRAME}
"""
ABORTED = f"""{FRAME}
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 1.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
You may or may not see output from other processes, depending on
exactly when Open MPI kills them.
{FRAME}
"""
FAILED = f"""solve: no input
{FRAME}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{FRAME}
"""


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            MISSING,
            "mpirun was unable to launch the specified application as it could not access or execute an executable: "
            "Executable: /nonesuch Node: node01",
        ),
        (ABORTED, "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD with errorcode 1."),
        (
            FAILED,
            "solve: no input; Primary job terminated normally, but 1 process returned a non-zero exit code. "
            "Per user-direction, the job has been aborted.",
        ),
        ("a\nsolve: no input\n\n", "solve: no input"),
        (f"a\n{FRAME}\n", "a"),
        (f"{FRAME}\n{FRAME}\n", ""),
        ("", ""),
    ],
)
def test_last_words_tell_why(printed: str, words: str) -> None:
    assert last_words(printed) == words
    assert last_words(printed.encode()) == words


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./solve --in 'a b'", "\"./solve --in 'a b'\""),
        ("cd '/opt/my run' || exit\nenv A=1 'B=x y' mpirun -np 2 ./solve", "'mpirun -np 2 ./solve'"),
        ("cd /opt || exit\n./solve | tail -n 1", "'./solve | tail -n 1'"),
        ("env 'unclosed", '"env \'unclosed"'),
    ],
)
def test_messages_name_the_command_that_was_asked_for(command: str, name: str) -> None:
    assert named(command) == name
