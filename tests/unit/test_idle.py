"""Whether a node is idle: what its processes use, and whose they are."""

import subprocess

import pytest

from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.facts import idle

STAT = "{pid} ({name}) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 0 0"


def said(before, after, owners, load="0.10 0.10 0.10 1/100 200", users=("alice:1001",)):
    """Return what a node prints: processes as pid → (name, ticks), 2 s apart."""
    lines = []
    for when, processes, uptime in (("before", before, 100.0), ("after", after, 102.0)):
        lines += [f"#{when}", *(STAT.format(pid=p, name=n, ticks=t) for p, (n, t) in processes.items())]
        lines += [f"#{when}.owners", *(f"{owner} /proc/{pid}" for pid, owner in owners.items())]
        lines += [f"#{when}.uptime", f"{uptime} 1.0"]
    lines += ["#users", *users]
    if load is not None:
        lines += ["#load", load]
    return "\n".join(lines) + "\n"


def test_a_node_on_which_nobody_does_anything_is_idle():
    assert idle.why_busy(said({1: ("init", 500)}, {1: ("init", 501)}, {1: 0})) == ""


def test_a_users_program_makes_a_node_busy_and_is_named():
    text = said({7: ("solve it", 100)}, {7: ("solve it", 300), 8: ("gzip", 20)}, {7: 1001, 8: 1001})
    assert idle.why_busy(text) == "alice uses 1.1 CPUs (solve it, gzip)"


def test_a_user_who_only_is_logged_in_does_not():
    assert idle.why_busy(said({7: ("bash", 100)}, {7: ("bash", 102)}, {7: 1001})) == ""


def test_services_may_do_a_little():
    busy = {3: ("updatedb", 200)}
    assert idle.why_busy(said({3: ("updatedb", 0)}, {3: ("updatedb", 60)}, {3: 0})) == ""
    assert "services use 1 CPU (updatedb)" in idle.why_busy(said({3: ("updatedb", 0)}, busy, {3: 0}))
    # Nobody is no person.
    assert idle.why_busy(said({3: ("nfsd", 0)}, {3: ("nfsd", 60)}, {3: 65534})) == ""


def test_a_load_of_the_last_minute_makes_a_node_busy():
    assert "4.2 processes wanted to run" in idle.why_busy(said({}, {}, {}, load="4.20 3 2 1/1 1"))
    # A container has its host's load, and does not say any.
    assert idle.why_busy(said({}, {}, {}, load=None)) == ""


@pytest.mark.parametrize("text", ["", "#before\n", "nonsense", said({1: ("a", "x")}, {1: ("a", 1)}, {1: 0})])
def test_what_is_not_understood_is_not_idle(text):
    assert idle.why_busy(text)


def test_a_program_with_a_name_made_to_mislead_hides_nothing():
    name = "x) R 1 1 (y"
    text = said({7: (name, 0)}, {7: (name, 200)}, {7: 1001})
    assert "alice uses 1 CPU (" in idle.why_busy(text)
    # A name of several lines may at most make the answer unclear.
    assert idle.why_busy(said({7: ("a\n#after", 0)}, {7: ("a\n#after", 200)}, {7: 1001}))


@pytest.mark.root
def test_a_real_program_of_a_user_is_seen():
    with subprocess.Popen(["sh", "-c", "while :; do :; done"], user=1234, cwd="/") as spinning:
        try:
            transport = open_transport(inventory.local())
            try:
                found = idle.look(transport, ["local1"])
            finally:
                transport.close()
        finally:
            spinning.kill()
    assert "user 1234 uses" in found["local1"] or "1234" in found["local1"]
    assert "sh" in found["local1"]
