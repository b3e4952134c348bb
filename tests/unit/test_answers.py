"""What nodes answer, malformed answers among them: no answer of one node may spoil what is known of the others."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from wulf.base.errors import EXIT_FINDINGS
from wulf.face.cli import status as shown
from wulf.node.change.answers import left
from wulf.node.change.guard import Answer, Guards
from wulf.node.change.shared_files import Sharing
from wulf.node.change.steps import Step
from wulf.node.change.transaction import StepError, Transaction
from wulf.node.change.trial import Trial
from wulf.node.cluster.transport import shell
from wulf.node.fleet import change, persist

GOOD = (
    "boot\tb1\nuptime\t100\nlock\troot@head:1\t5\t-3\n"
    "tx\tA\t2026-11-21T10:00:00Z\troot@head:1\tb1\t1\t\tconfirmed\n"
    "set\tnic.mtu\tlink\teth0\tmtu\tA\tdifferent\t1400\t1400\nlog\tline one\n"
)
STORED = "set\t/etc/x\tstored\t-\t/etc/x\tA\tdifferent\tabsent\t{}\n"
MARK = "0123456789abcdef"


class Nodes:
    """Nodes that print what they are told to, through the judgement of the real transport."""

    def __init__(self, **said: bytes) -> None:
        self.said = said

    def run(self, _argv, nodes, **_):
        return {node: self._judge(node) for node in nodes}

    def _judge(self, node):
        out = MARK.encode() + b"\n" + self.said[node]
        raw = shell.Raw(stdout=out, stderr=f"{MARK} 0\n".encode(), code=0)
        return shell.judge(node, raw, MARK, 10.0)


class Former(Nodes):
    """Nodes whose guard is of a version that has no `version`."""

    def run(self, argv, nodes, **_):
        assert "rm -rf tx" not in " ".join(argv)
        if "version" not in argv:
            return super().run(argv, nodes)
        raw = shell.Raw(stdout=f"{MARK}\n".encode(), stderr=f"{MARK} 1\n".encode(), code=1)
        return {node: shell.judge(node, raw, MARK, 10.0) for node in nodes}


def statuses(**said: bytes):
    return change.status(Guards(Nodes(**said), "me", b"guard"), list(said))


def printed(found, monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(shown, "console", lambda: Console(file=out, width=1000))
    shown.show(found, log=True)
    return out.getvalue()


def test_a_good_answer_is_read():
    (found,) = statuses(node01=GOOD.encode())
    assert (found.error, found.owner, found.owned_s, found.lease_s) == ("", "root@head:1", 5, -3)
    assert [(value.knob, value.now, value.holds, value.after) for value in found.settings] == [
        ("nic.mtu", "1400", True, None)
    ]
    assert [(entry.change, entry.steps, entry.state, entry.this_boot) for entry in found.journal] == [
        ("A", 1, "confirmed", True)
    ]


BAD = {
    "nothing at all": "",
    "no steps, as without a plan": GOOD.replace("\tb1\t1\t\t", "\tb1\t\t\t"),
    "a number of another script": GOOD.replace("\tb1\t1\t\t", "\tb1\t²\t\t"),
    "a number without end": GOOD.replace("\tb1\t1\t\t", "\tb1\t" + "9" * 5000 + "\t\t"),
    "too few columns of a change": GOOD + "tx\tB\n",
    "too few columns of a value": GOOD + "set\tnic.mtu\n",
    "a lock that is not a number": GOOD.replace("\t5\t", "\tsoon\t"),
    "neither the same nor different": GOOD.replace("different", ""),
    "two boots": GOOD + "boot\tb2\n",
    "a stored file cut off": GOOD + STORED.format("file:644"),
    "a stored file that is no base64": GOOD + STORED.format("file:644:~~~"),
}


@pytest.mark.parametrize("said", BAD.values(), ids=BAD.keys())
def test_a_malformed_answer_is_the_error_of_its_node_alone(said, monkeypatch):
    good, bad = statuses(node01=GOOD.encode(), node02=said.encode())
    assert good.error == ""
    assert "cannot be read" in bad.error
    assert shown.needs_a_look(bad)
    text = printed([good, bad], monkeypatch)
    assert "node01:\n" in text
    assert "nic.mtu = 1400" in text
    assert "node02:\n  no usable answer: " in text
    assert [one.node for one in persist.holding([good, bad])] == ["node01"]
    with pytest.raises(Exception, match=r"node02: what its guard says cannot be read"):
        persist.lasting([good, bad], [], "eth0")


def test_what_is_not_text_is_the_error_of_its_node():
    good, bad = statuses(node01=GOOD.encode(), node02=b"boot\t\xff\xfe\n")
    assert good.error == ""
    assert "UTF-8" in bad.error


def test_verify_shows_the_others_and_says_which_node_cannot_be_read(monkeypatch, capsys):
    from contextlib import nullcontext

    import typer

    from wulf.face.cli import verify
    from wulf.node.cluster import inventory
    from wulf.node.fleet import change, clusters

    guards = Guards(Nodes(node01=GOOD.encode(), node02=b"boot\n"), "me", b"guard")
    monkeypatch.setattr(clusters, "cluster", lambda _: inventory.from_nodes("node[01-02]"))
    monkeypatch.setattr(change, "open_guards", lambda _: nullcontext((None, guards)))
    with pytest.raises(typer.Exit) as end:
        verify.command(run=None, cluster=None, nodes=None, json=True)
    found = json.loads(capsys.readouterr().out)
    assert end.value.exit_code == EXIT_FINDINGS
    assert [one["node"] for one in found["settings"]] == ["node01"]
    assert list(found["unanswered"]) == ["node02"]


def test_a_knob_of_another_version_keeps_nothing_else_from_lasting():
    other = GOOD + "set\tnic.of_the_future\tlink\teth0\tmtu\tA\tdifferent\t1\t1\n"
    (found,) = statuses(node01=other.encode())
    assert found.error == ""
    assert "nic.of_the_future" in persist._not_kept(found)
    routed = GOOD + "set\tdirect.route.10.0.0.2\thost_route\t-\t10.0.0.2\tA\tdifferent\tvia x\tvia x\n"
    (found,) = statuses(node01=routed.encode())
    assert "hold until the next boot" in persist._not_kept(found)["direct.route.10.0.0.2"]


@pytest.mark.parametrize(
    "said", ["", "place\n", "place\t/etc/passwd\n", "place\t/run/wulf-alternation/x\textra\n"]
)
def test_a_place_is_not_where_a_node_says_that_it_is(said):
    trial = Trial(Guards(Nodes(node01=said.encode()), "me", b"guard"), ["node01"])
    trial._open = [Transaction(trial.guards, 60)]
    with pytest.raises(StepError, match="node01: its guard does not say that it listens at"):
        trial.alternate({"node01": ((1,), (2,))})


@pytest.mark.parametrize("number", ["²", "٣", "9" * 5000, "0", "2", "", "1\t/x\txfs\tk\t-\t-\tv\nfile\t1"])
def test_a_file_of_no_step_is_the_error_of_its_node(number):
    steps = [Step(knob="ompi.x", kind="mpi_parameter", interface="-", target="x", value="1")]
    said = f"file\t{number}\t/etc/x\txfs\tkey\t-\t-\tvalue\n".encode()
    sharing = Sharing(Guards(Nodes(node01=said), "me", b"guard"), {"node01": steps})
    assert "does not say where its files are" in sharing.begin("A", 60)["node01"].reason


def test_a_former_guard_that_says_nothing_is_not_forgotten():
    guards = Guards(Former(node01=b""), "me", b"guard")
    assert "settings that an earlier version" in guards.install(["node01"])["node01"].reason


LINES = st.lists(
    st.tuples(
        st.sampled_from(["boot", "lock", "tx", "set", "log", "step", "error", "", "missing"]),
        st.lists(
            st.one_of(
                st.text(max_size=8),
                st.sampled_from(
                    ["1", "", "same", "different", "stored", "link", "nic.mtu", "confirmed", "@A"]
                ),
                st.sampled_from(["file:644:", "file:644:QQ==", "file:", "-1", "9" * 5000]),
            ),
            max_size=11,
        ),
    ),
    max_size=8,
).map(lambda rows: "\n".join("\t".join([word, *columns]) for word, columns in rows).encode(errors="replace"))


@given(st.one_of(st.binary(max_size=300), LINES, LINES.map(GOOD.encode().__add__)))
@example(GOOD.replace("A\tdifferent", "").encode())
def test_any_bytes_are_an_answer(said):
    good, other = statuses(node01=GOOD.encode(), node02=said)
    assert good.error == ""
    with pytest.MonkeyPatch.context() as patch:
        assert "nic.mtu = 1400" in printed([good, other], patch)
    if b"boot\t" not in said:
        assert other.error
    persist.holding([good, other])


def test_what_was_left_is_said_once_for_all_nodes():
    lines = [
        ["left", "nic.rx_usecs", "tx-usecs 200"],
        ["left"],
        ["gone", "nic.mtu", "eth0 (02:00) is not there"],
    ]
    answers = {node: Answer(node=node, code=0, lines=lines, reason="") for node in ("node01", "node02")}
    assert left(answers) == [
        "nic.rx_usecs: somebody else has set tx-usecs 200 since, and it was left so on node[01-02]",
        "nic.mtu: eth0 (02:00) is not there, so nothing was put back on node[01-02]",
    ]
