"""Files that several nodes have in common: two guards in namespaces of their own that see the same directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.unit.namespaces import BEFORE, Nodes
from wulf.base.native import build
from wulf.base.records import ChangeOutcome
from wulf.node.change import apply
from wulf.node.change.guard import PLACE, Guards
from wulf.node.change.steps import Step

pytestmark = pytest.mark.root

#: A guard for which the disk of this machine is one that other machines may have, too, where `foreign` says so.
FAULTS = "wulf-guard-faults"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path, ["a", "b"])
    yield made
    made.end()


def links(value: str) -> list[Step]:
    return [
        Step(
            knob="ompi.btl_tcp_links",
            kind="mpi_parameter",
            interface="-",
            target="btl_tcp_links",
            value=value,
        )
    ]


def change(
    nodes: Nodes, names: Sequence[str], steps: Sequence[Step], text: bytes | None = None, **more: object
) -> ChangeOutcome:
    guards = Guards(nodes, "me", text)
    return apply.change(guards, {name: list(steps) for name in names}, deadline_s=60, **more)  # type: ignore[arg-type]


def roll_back(nodes: Nodes, names: Sequence[str], text: bytes | None = None) -> ChangeOutcome:
    return apply.rollback(Guards(nodes, "me", text), names, "original", deadline_s=60)


@pytest.fixture
def foreign(nodes: Nodes) -> bytes:
    for node in ("a", "b"):
        nodes.on(node, "sh", "-c", "mkdir /run/wulf-fault && touch /run/wulf-fault/foreign")
    return build.build_program(FAULTS, None).path.read_bytes()


def states(outcome: ChangeOutcome) -> dict[str, str]:
    return {node.node: node.state for node in outcome.nodes}


def test_one_node_changes_the_file_that_both_have(nodes: Nodes) -> None:
    outcome = change(nodes, ["a", "b"], links("4"))
    assert (outcome.kept, states(outcome)) == (True, {"a": "confirmed", "b": "untouched"}), outcome
    assert outcome.notes == [f"a,b have one {nodes.file}: a has changed it for all"]
    assert nodes.file.read_text() == BEFORE + "btl_tcp_links = 4\n"
    # The node that has changed it goes on doing so, whichever comes first.
    again = change(nodes, ["b", "a"], links("2"))
    assert (again.kept, states(again)) == (True, {"a": "confirmed", "b": "untouched"}), again
    back = roll_back(nodes, ["b", "a"])
    assert back.kept, back
    assert nodes.file.read_text() == BEFORE


def test_what_fails_elsewhere_does_not_take_away_what_was_confirmed(nodes: Nodes) -> None:
    assert change(nodes, ["a"], links("4")).kept
    refused = change(nodes, ["a", "b"], links("2"), live=lambda: {"b": "it does not work there"})
    assert not refused.kept
    assert nodes.file.read_text() == BEFORE + "btl_tcp_links = 4\n"


def test_who_does_not_see_it_is_said_and_nothing_is_kept(nodes: Nodes) -> None:
    def hide() -> dict[str, str]:  # as if the node went on seeing what it had read before
        old = nodes.opt.parent / "old"
        old.write_text(BEFORE)
        assert nodes.on("b", "mount", "--bind", str(old), str(nodes.file)).returncode == 0
        return {}

    guards = Guards(nodes, "me")
    outcome = apply.change(guards, {"a": links("4"), "b": links("4")}, deadline_s=10, live=hide)
    assert not outcome.kept
    assert f"b: it does not see what a has written to {nodes.file}" in outcome.reason
    assert nodes.file.read_text() == BEFORE


def test_a_file_that_another_node_has_changed_is_left_to_it(nodes: Nodes, foreign: bytes) -> None:
    assert change(nodes, ["a"], links("4"), foreign).kept
    assert "# wulf on a has changed this file" in nodes.file.read_text()
    before = nodes.file.read_text()
    refused = change(nodes, ["b"], links("2"), foreign)
    assert not refused.kept
    assert "a has changed it: change it there (--nodes), or roll it back there first" in refused.reason
    assert nodes.file.read_text() == before
    assert change(nodes, ["a", "b"], links("2"), foreign).kept
    assert nodes.file.read_text().count("# wulf on") == 1
    assert roll_back(nodes, ["a", "b"], foreign).kept
    assert nodes.file.read_text() == BEFORE


def test_nodes_that_have_files_of_their_own_change_them(nodes: Nodes) -> None:
    for node in ("a", "b"):
        own = nodes.opt.parent / node
        own.mkdir()
        (own / nodes.file.name).write_text(BEFORE)
        assert nodes.on(node, "mount", "--bind", str(own), str(nodes.opt)).returncode == 0
    outcome = change(nodes, ["a", "b"], links("4"))
    assert (outcome.notes, states(outcome)) == ([], {"a": "confirmed", "b": "confirmed"}), outcome
    assert nodes.file.read_text() == BEFORE
    assert (nodes.opt.parent / "b" / nodes.file.name).read_text() == BEFORE + "btl_tcp_links = 4\n"


@pytest.mark.parametrize(
    ("path", "is_foreign", "why"),
    [
        ("/run/x/90-wulf.conf", False, "/run/x/90-wulf.conf is in memory (tmpfs), so a boot forgets it"),
        ("{opt}/90-wulf.conf", True, "which other nodes may have, too"),
    ],
)
def test_what_would_not_last_is_not_kept(
    nodes: Nodes, request: pytest.FixtureRequest, path: str, is_foreign: bool, why: str
) -> None:
    text = request.getfixturevalue("foreign") if is_foreign else None
    path = path.replace("{opt}", str(nodes.opt))
    steps = [Step(knob=path, kind="stored", interface="-", target=path, value="file:644:eA==")]
    refused = change(nodes, ["a", "b"], steps, text)
    assert not refused.kept
    assert why in refused.reason
    assert "put the files into the image that the nodes boot" in refused.reason
    assert nodes.on("a", "test", "-e", path).returncode == 1


def test_an_overlay_lasts_when_its_upper_layer_does(nodes: Nodes) -> None:
    kept = nodes.opt.parent
    for name, upper, lasts in (("memory", "/run", False), ("disk", str(kept), True)):
        made = f"mkdir -p {upper}/{name}/up {upper}/{name}/work {kept}/at.{name} {kept}/low && "
        made += (
            f"mount -t overlay -o lowerdir={kept}/low,upperdir={upper}/{name}/up,workdir={upper}/{name}/work "
        )
        done = nodes.on("a", "sh", "-c", made + f"overlay {kept}/at.{name}")
        if done.returncode:
            pytest.skip(f"no overlay here: {done.stderr.decode()}")
        path = f"{kept}/at.{name}/x.conf"
        steps = [Step(knob=path, kind="stored", interface="-", target=path, value="file:644:eA==")]
        outcome = change(nodes, ["a"], steps)
        assert outcome.kept == lasts, outcome
        assert lasts or "an overlay in memory" in outcome.reason


def test_names_of_temporary_files_are_of_one_node_and_process(nodes: Nodes) -> None:
    evil = nodes.opt.parent / "evil"
    evil.write_text("of somebody else")
    (nodes.opt / f"{nodes.file.name}.wulf").symlink_to(evil)
    assert change(nodes, ["a", "b"], links("4")).kept
    assert evil.read_text() == "of somebody else"
    assert [path.name for path in nodes.opt.iterdir() if ".wulf." in path.name] == []


def test_the_guard_says_where_files_are(nodes: Nodes) -> None:
    assert Guards(nodes, "me").install(["a"])["a"].done
    line = links("4")[0].line() + "\n"
    text = line + line.replace("btl_tcp_links", "btl_tcp_sndbuf")
    said = nodes.on("a", PLACE, "where", stdin=text.encode()).stdout.decode().splitlines()
    assert [row.split("\t")[:3] for row in said] == [
        ["file", "1", str(nodes.file)],
        ["file", "2", str(nodes.file)],
    ]
    assert [row.split("\t")[-1].strip() for row in said] == ["default", "default"]
