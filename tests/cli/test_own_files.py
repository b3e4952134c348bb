"""Knobs, checks, suites, networks and launchers of a site and of a user: used, listed, and refused like wulf's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import wulf

DATA = Path(__file__).parents[2] / "src" / "wulf" / "data"
KNOB = (DATA / "knobs" / "sysctl.net.ipv4.tcp_limit_output_bytes.toml").read_text()
CHECK = (DATA / "checks" / "tcp.sack_folklore.toml").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def put(place: Path, owner: str, kind: str, name: str, text: str) -> Path:
    path = (place / "site" if owner == "site" else place / "config" / "wulf") / kind / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def own_knob(setting: str) -> str:
    return KNOB.replace("tcp_limit_output_bytes", setting)


def test_a_knob_of_a_site_is_one_as_any_other(place: Path) -> None:
    path = put(place, "site", "knobs", "sysctl.net.ipv4.tcp_notsent_lowat", own_knob("tcp_notsent_lowat"))
    listed = wulf(place, "settings", "list").stdout
    assert f"{path}" in listed
    assert "tcp_notsent_lowat" in wulf(place, "settings", "show", "tcp_notsent_lowat").stdout
    assert str(path) in wulf(place, "settings", "show", "tcp_notsent_lowat").stdout
    got = wulf(place, "settings", "get", "tcp_notsent_lowat", "--cluster", "local", "--json")
    (reading,) = json.loads(got.stdout)
    assert (reading["state"], reading["knob"]) == ("value", "sysctl.net.ipv4.tcp_notsent_lowat")


def test_a_check_of_a_user_finds_and_takes_the_place_of_another(place: Path) -> None:
    own = CHECK.replace("tcp.sack_folklore", "site.os").replace(
        'sysctl.net.ipv4.tcp_sack != "0"', 'kernel.os == "x"'
    )
    own = (
        own.replace("sysctl.net.ipv4.tcp_sack", "kernel.os").partition("[mend]")[0]
        + own[own.index("[[evidence]]") :]
    )
    path = put(place, "user", "checks", "site.os", own)
    found = wulf(place, "audit", "--cluster", "local", "--json")
    assert found.returncode in (0, 3), found.stderr
    assert "site.os" in [one["id"] for one in json.loads(found.stdout)["findings"]]
    milder = put(place, "site", "checks", "tcp.sack_folklore", CHECK.replace('"warn"', '"info"'))
    told = json.loads(wulf(place, "config", "--json").stdout)["own"]
    assert [(one["kind"], one["id"], one["path"], one["owner"], one["replaces"]) for one in told] == [
        ("checks", "tcp.sack_folklore", str(milder), "site", True),
        ("checks", "site.os", str(path), "user", False),
    ]


def test_the_check_of_the_documentation(place: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "configure.md").read_text()
    (text,) = [
        block for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if 'id = "site.kernel"' in block
    ]
    put(place, "user", "checks", "site.kernel", text)
    found = wulf(place, "audit", "--cluster", "local", "--json")
    assert found.returncode in (0, 3), found.stderr
    assert "site.kernel" in [one["id"] for one in json.loads(found.stdout)["findings"]]


def test_a_network_by_its_name(place: Path) -> None:
    text = (DATA / "networks" / "10gbe.toml").read_text().replace('id = "10gbe"', 'id = "ours"')
    path = put(place, "user", "networks", "ours", text)
    assert f"[{path}]" in " ".join(wulf(place, "program", "predict", "--list").stdout.split())
    assert wulf(place, "program", "predict", "--show", "ours").stdout == text


CHECK_OF_A_LINK = """
id = "site.link"
title = "The link is down"
severity = "warn"
costs = ["latency"]
effect = 0.5
profiles = ["latency", "hpc"]
holds = 'nic.sttae == "up"'
found = "{nic.name} is down"
wanted = "up"
why = "Nothing passes."
fix = "ip link set {interface} up"
keep = "-"
risk = "none"

[[evidence]]
source = "us"
figure = "none"
how_known = "published"
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "", "there is no fact nic.sttae; did you mean 'nic.state'?"),
        ("nic.sttae", "nic.state", "found: what is in braces is the name of a fact: {nic.name is down"),
    ],
)
def test_a_check_that_could_find_nothing_is_refused(place: Path, before: str, after: str, said: str) -> None:
    text = CHECK_OF_A_LINK
    if before:
        text = text.replace(before, after).replace("{nic.name} is", "{nic.name is")
    path = put(place, "site", "checks", "site.link", text)
    done = wulf(place, "audit", "--cluster", "local")
    assert done.returncode == 1, done.stdout
    assert f"{path}: {said}" in " ".join(done.stderr.split())


WRONG = {
    "a key that nobody knows": (
        "knobs",
        own_knob("tcp_a") + "\nnonsense = 1\n",
        ["settings", "list"],
        "nonsense",
    ),
    "a key that is missing": (
        "knobs",
        own_knob("tcp_a").replace("risk =", "notes ="),
        ["settings", "list"],
        "risk: missing",
    ),
    "another name": ("knobs", own_knob("tcp_b"), ["settings", "list"], "a file has the name of its id"),
    "a value that is none": (
        "knobs",
        own_knob("tcp_a").replace('"262144"', '"many"'),
        ["settings", "list"],
        "values has 'many'",
    ),
    "no TOML": ("knobs", "id = \n", ["settings", "list"], "not TOML"),
    "a suite without sense": ("suites", 'title = "x"\n[[experiment]]\nop = "a"\nsize = 3\n', [], "size"),
    "a launcher with a word too much": (
        "launchers",
        "LAUNCHER",
        ["audit", "facts", "--cluster", "c.toml"],
        "{host}",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_file(place: Path, name: str) -> None:
    kind, text, words, said = WRONG[name]
    file = "sysctl.net.ipv4.tcp_a" if kind == "knobs" else "mine"
    if text == "LAUNCHER":
        text = (DATA / "launchers" / "mvapich.toml").read_text().replace('id = "mvapich"', 'id = "mine"')
        text = text.replace('"{address}"', '"{host}"')
        (place / "c.toml").write_text(
            '[cluster]\nnodes = "a"\ntransport = "local"\n[mpi]\nlauncher = "mine"\n'
        )
    path = put(place, "site", kind, file, text)
    listed = wulf(place, "config")
    assert listed.returncode == 1 and str(path) in " ".join(listed.stderr.split())
    words = words or ["measure", "--suite", "mine", "--cluster", "local", "--dry-run"]
    done = wulf(place, *words)
    assert done.returncode == 1, done.stdout
    told = " ".join(done.stderr.split())
    assert str(path) in told
    assert said in told


def test_what_everybody_may_write_is_refused(place: Path) -> None:
    put(place, "user", "knobs", "sysctl.net.ipv4.tcp_a", own_knob("tcp_a")).chmod(0o666)
    done = wulf(place, "settings", "list")
    assert done.returncode == 1
    assert "everybody may write to it" in done.stderr
