"""That a system's own answer is asked for what it will do at boot, and believed more than what was written."""

import shutil
import subprocess
from importlib import resources

import pytest

from wulf.base import catalogue
from wulf.base.contracts import NodeResult
from wulf.base.errors import TransportError
from wulf.base.records import NodeRecord
from wulf.node.change import persist as persisting
from wulf.node.change.steps import KnobSetting
from wulf.node.fleet import at_boot, persist

SYSCTLS = {"/etc/sysctl.d/90-wulf.conf": "# head\nvm.swappiness = 1\nnet.ipv4.tcp_rmem = 4096 1 2\n"}
LINK = {"/etc/systemd/network/10-wulf-eth0.link": "[Match]\n"}
DROPIN = {"/etc/systemd/network/50-x.network.d/90-wulf.conf": "[Link]\n"}
SCRIPT = resources.files("wulf.node.change").joinpath("at_boot.sh")


def test_what_is_asked_is_of_the_files_that_are_written():
    record = NodeRecord(node="n1", reachable=True)
    wanted = [KnobSetting(knob=catalogue.knob("sysctl.net.core.busy_poll"), value="50")]
    kept = persisting.persist(wanted, "eth0", record, "change")
    plan = persist.PersistencePlan(nodes={"n1": kept})
    assert at_boot.questions(plan.texts["n1"], "eth0") == ["eth0", "-", "-", "net.core.busy_poll=50"]


class Answering:
    """A transport on which each node prints a given text."""

    def __init__(self, texts):
        self.texts = texts

    def run(self, argv, nodes, *, timeout_s, stdin):
        return {
            node: NodeResult(
                node=node, status="ok" if node in self.texts else "timeout", exit_code=0,
                stdout=self.texts.get(node, "").encode(), stderr=b"", reason=f"{node}: not done in 60 s",
            )
            for node in nodes
        }  # fmt: skip


def test_what_is_asked():
    assert at_boot.questions(SYSCTLS | LINK | DROPIN, "eth0") == [
        "eth0", "/etc/systemd/network/10-wulf-eth0.link", "50-x.network", "vm.swappiness=1",
        "net.ipv4.tcp_rmem=4096 1 2",
    ]  # fmt: skip
    assert at_boot.questions({"/etc/wulf/settings.sh": "x"}, "eth0") == []


def test_what_will_be_otherwise_is_said_and_no_answer_is_none():
    said = {
        "n1": "asked sysctl\n",
        "n2": "asked sysctl\notherwise vm.swappiness /etc/sysctl.d/zzzzz.conf 60\n",
        "n3": "",
    }
    notes = at_boot.notes(Answering(said), {f"n{n}": SYSCTLS for n in range(1, 5)}, "eth0")
    assert notes == [
        "n2: vm.swappiness will be 60 at boot, by /etc/sysctl.d/zzzzz.conf",
        "n3: its system does not say what it makes of its files at boot (sysctl)",
        "n4: the settings at boot could not be determined: n4: not done in 60 s",
    ]


@pytest.mark.root
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_this_system_resolves_its_own_files(tmp_path):
    (tmp_path / "90-wulf.conf").write_text("vm.swappiness = 1\nnet.ipv4.tcp_rmem = 4096\t1  2\n")
    (tmp_path / "95-site.conf").write_text("# vm.swappiness = 7\n-vm/swappiness=  60\n")
    script = f'mount --bind {tmp_path} /etc/sysctl.d; exec sh -s -- "$@"'
    wanted = at_boot.questions(SYSCTLS, "lo")
    argv = ["unshare", "-m", "sh", "-c", script, "sh", *wanted]

    def said():
        ran = subprocess.run(
            argv, input=SCRIPT.read_text(), capture_output=True, text=True, check=True, timeout=120
        )
        return ran.stdout.splitlines()

    assert said() == ["asked sysctl", "otherwise vm.swappiness /etc/sysctl.d/95-site.conf 60"]
    (tmp_path / "95-site.conf").unlink()
    assert said() == ["asked sysctl"]


#: What networkctl 252 prints, as far as it matters.
STATUS = """\
\u25cf 2: eth0
                     Link File: /usr/lib/systemd/network/99-default.link
                  Network File: {}
                         State: routable (configured)
"""


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (STATUS.format("/etc/systemd/network/50-x.network"), []),
        (STATUS.format("/run/systemd/network/50-x.network"), []),
        (STATUS.format("n/a"), []),
        ("", []),
        (
            STATUS.format("/etc/systemd/network/10-other.network"),
            ["otherwise eth0 /etc/systemd/network/10-other.network -"],
        ),
    ],
)
def test_another_file_that_the_interface_has_now_is_named(tmp_path, status, said):
    (tmp_path / "status").write_text(status)
    cat = "echo '# /etc/systemd/network/50-x.network.d/90-wulf.conf'; echo MTUBytes=9000"
    for name, text in {"networkctl": f"cat {tmp_path}/status", "systemd-analyze": cat}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    ran = subprocess.run(
        ["sh", "-s", "--", *at_boot.questions(DROPIN, "eth0")],
        input=SCRIPT.read_text(),
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )
    assert ran.stdout.splitlines() == ["asked network", *said]


def test_a_node_whose_facts_are_not_known_is_kept_nothing_on():
    lost = NodeRecord(node="n2", reachable=True, error="n2: not done in 60 s")
    with pytest.raises(TransportError, match="what keeps settings there is not known: n2"):
        persist.require_facts([NodeRecord(node="n1", reachable=True), lost])
    for ask in (persist.lasting, persist.chosen):
        with pytest.raises(TransportError, match="not done in 60 s"):
            ask([], [lost], "eth0")
