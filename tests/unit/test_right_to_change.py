"""Who may change settings on a node: a program that fails there says nothing of who is logged in."""

import subprocess
from pathlib import Path

import pytest

from wulf.node.change import export, guard

UNDOABLE = Path(export.__file__).parents[1] / "undoable.sh"
SAID = {
    "exit 127": "the program id fails",
    "exit 0": "the program id fails",
    "echo id: cannot find a name; exit 1": "the program id fails there, so nothing is changed: id: cannot find a name",
    "echo 1000": "changing settings takes root",
}


@pytest.mark.parametrize("body", SAID)
@pytest.mark.parametrize("script", ["guard", "undoable"])
def test_a_program_that_fails_is_told_as_that(tmp_path, body, script):
    program = tmp_path / "id"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    words = (
        ["/bin/sh", "-c", f"{guard._AS_ROOT}echo done"]
        if script == "guard"
        else ["/bin/sh", str(UNDOABLE), "status"]
    )
    done = subprocess.run(
        words, capture_output=True, text=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 1
    assert SAID[body].replace("there", "here" if script == "undoable" else "there") in done.stderr
    assert "done" not in done.stdout


def test_root_may(tmp_path):
    program = tmp_path / "id"
    program.write_text("#!/bin/sh\necho 0\n")
    program.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", f"{guard._AS_ROOT}echo done"],
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n")
