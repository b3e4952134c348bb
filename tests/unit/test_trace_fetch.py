"""What the ranks have left on a node is fetched whole, and a node that is lost is not one without ranks."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wulf.base.contracts import NodeResult
from wulf.base.errors import TransportError
from wulf.tools.trace.work import fetch


class Local:
    """Runs commands on this machine, and does not answer any more after some of them."""

    def __init__(self, answers: int) -> None:
        self._left = answers

    def run(self, argv: Sequence[str], nodes: Sequence[str], **_: Any) -> dict[str, NodeResult]:
        self._left -= 1
        if self._left < 0:
            lost = NodeResult(
                node=nodes[0], status="unreachable", exit_code=None, stdout=b"", stderr=b"", reason="no route"
            )
            return {nodes[0]: lost}
        done = subprocess.run(argv, capture_output=True, check=False)
        result = NodeResult(
            node=nodes[0],
            status="ok" if done.returncode == 0 else "exit",
            exit_code=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            reason="",
        )
        return {nodes[0]: result}


class Lying:
    """A node that answers what somebody else has chosen."""

    def __init__(self, listed: bytes, content: bytes = b"eA==") -> None:
        self._listed, self._content = listed, content

    def run(self, argv: Sequence[str], nodes: Sequence[str], **_: Any) -> dict[str, NodeResult]:
        said = self._listed if argv[0] == "ls" else self._content
        result = NodeResult(node=nodes[0], status="ok", exit_code=0, stdout=said, stderr=b"", reason="")
        return {nodes[0]: result}


@pytest.mark.parametrize(
    "name",
    [
        "/{outside}",
        "../outside",
        "rank.0/../../outside",
        "outside",
        "rank.1x",
        "rank.1234567",
        "rank.1.tail.x",
    ],
)
def test_what_a_node_answers_is_no_path_here(name: str, tmp_path: Path) -> None:
    target = tmp_path / "here"
    target.mkdir()
    outside = tmp_path / "outside"
    outside.write_text("mine")
    listed = name.replace("/{outside}", str(outside)).encode()
    with pytest.raises(TransportError, match=r"node01: .* is not a name of one"):
        fetch(Lying(listed), "node01", "/var/tmp/x", target, lambda _: None)  # type: ignore[arg-type]
    assert outside.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [target, outside] or [*tmp_path.iterdir()] == [outside, target]
    assert [*target.iterdir()] == []


def test_an_answer_that_is_not_what_was_asked_for_is_said(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"node01: cannot read .*: what came is not what was asked for"):
        fetch(Lying(b"rank.000000", b"no base64"), "node01", "/x", tmp_path, lambda _: None)  # type: ignore[arg-type]


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Files of two ranks."""
    source = tmp_path / "left"
    source.mkdir()
    for rank in range(2):
        (source / f"rank.{rank}").write_bytes(bytes(range(256)) * 300)
    return source


def test_all_files_come_whole(left: Path, tmp_path: Path) -> None:
    target = tmp_path / "here"
    target.mkdir()
    fetch(Local(100), "node01", str(left), target, lambda _: None)  # type: ignore[arg-type]
    assert {file.name: file.read_bytes() for file in target.iterdir()} == {
        file.name: file.read_bytes() for file in left.iterdir()
    }


@pytest.mark.parametrize("answers", [0, 1, 2, 3, 4])
def test_a_node_that_is_lost_is_named(answers: int, left: Path, tmp_path: Path) -> None:
    target = tmp_path / "here"
    target.mkdir()
    with pytest.raises(TransportError, match=r"node01: .*no route"):
        fetch(Local(answers), "node01", str(left), target, lambda _: None)  # type: ignore[arg-type]
