"""The tutorial, as it is written: each of its commands runs, and says what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import environment
from tests.conftest import OTHER_LAB
from wulf.base.errors import EXIT_FINDINGS

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough, pytest.mark.xdist_group(OTHER_LAB)]

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-run.md"
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: A test has less time than a reader; what is shown does not depend on it.
SHORTER = {"--budget 2m": "--budget 15s --ladder short --max-size 256B", "--budget 8m": "--budget 60s"}
#: A noisy cluster has findings, and a short search comes to no end: that is said, and no error.
MAY_FIND = ("audit", "measure", "compare", "mend", "tune", "verify")
#: How it ends where the page says so: a change that cuts nodes off is put back.
ENDS = {"wulf settings set nic.mtu=9000": 1}
#: Not a command of wulf's, or of a terminal.
LEFT_OUT = ("make ", "tools/", "export ", "wulf report latest --text | less")


def parts():
    """The blocks of the page: commands, or what one of them prints."""
    return [block.splitlines() for block in BLOCK.findall(PAGE.read_text())]


def is_command(line):
    return line.startswith(("wulf ", "make ", "tools/", "export ", "for "))


def shape(line):
    """What a line says, with any numbers and any width of its columns."""
    words = [re.escape(word) for word in re.sub(r"\s+#.*", "", line).split()]
    return re.sub(r"[0-9]+(\\\.[0-9]+)?", r"[0-9.]+", r"\s+".join(words))


def test_a_shape_is_of_any_numbers_and_no_other_words():
    shown = shape("up: 4 nodes, node01 to node04, in 5.1 s")
    assert re.search(shown, "up: 4 nodes, node01 to node04, in 12 s")
    assert not re.search(shown, "already up: 4 nodes, node01 to node04")


def allowed(command):
    for begin, code in ENDS.items():
        if command.startswith(begin) and "--dry-run" not in command:
            return (code,)
    return (0, EXIT_FINDINGS) if set(command.split()[1:3]) & set(MAY_FIND) else (0,)


def test_every_command_of_the_tutorial_runs_and_says_what_it_shows(spare, tmp_path):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = environment(tmp_path, WULF_LAB_DIR=str(spare.directory), PATH=path)
    said, ran = "", 0
    for block in parts():
        if not is_command(block[0]):
            for line in block:
                # Who shares a CPU depends on how many there are.
                assert line.startswith("note: ") or re.search(shape(line), said), (line, said)
            continue
        said = ""
        for line in block:
            if line.startswith(LEFT_OUT):
                continue
            command = re.sub(r"\s+#.*", "", line)
            for usual, short in SHORTER.items():
                command = command.replace(usual, short)
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=tmp_path,
                env=variables,
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
            )
            said += done.stdout
            ran += 1
            # A search of a minute may keep nothing, and then there is nothing to be verified.
            is_nothing = (
                command.startswith("wulf settings verify") and "has no confirmed settings" in done.stderr
            )
            assert done.returncode in allowed(command) or is_nothing, f"{command}\n{done.stdout}{done.stderr}"
    assert ran > 20
    assert not spare.directory.exists()
