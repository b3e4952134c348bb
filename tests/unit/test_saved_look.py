"""A look that was saved: by whom it can be read, and what reading one of a stranger can cost."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.command import wulf
from wulf.base.errors import ConfigError
from wulf.node.fleet.look import read

HEAD = (
    b'{"version":1,"created_at":"","interface":"eth0","records":[{"node":"n1","reachable":true,"facts":{}}]}'
)


def saved(path: Path, members: Mapping[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("form", ["w:gz", "w", "w:bz2", "w:xz"])
def test_a_look_is_read_back(tmp_path: Path, form: str) -> None:
    path = saved(tmp_path / "look", {"nodes/n1.tree": b"#date 0\n 1\n", "wulf-facts.json": HEAD}, form)
    (record,), interface = read(path)
    assert (record.node, interface) == ("n1", "eth0")


def test_what_grows_without_end_is_not_unpacked(tmp_path: Path) -> None:
    name = tmp_path / "bomb.tar.gz"
    with gzip.open(name, "wb") as file:
        member = tarfile.TarInfo("nodes/n1.tree")
        member.size = 1 << 40
        file.write(member.tobuf())
        for _ in range(200):
            file.write(bytes(1 << 20))
    with pytest.raises(ConfigError, match=r"bomb\.tar\.gz does not hold facts .* more than .* MiB"):
        read(name)


@pytest.mark.thorough
def test_a_file_of_millions_of_nothings_comes_to_an_end(tmp_path: Path) -> None:
    name = tmp_path / "many.tar.gz"
    with gzip.open(name, "wb") as file:
        nothing = tarfile.TarInfo("nodes/n1.tree").tobuf() * 2000
        for _ in range(100):
            file.write(nothing)
    with pytest.raises(ConfigError, match=r"more than .* MiB"):
        read(name)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(["w:gz", "w", "w:xz"]))
def test_a_damaged_look_is_only_ever_refused(tmp_path: Path, seed: int, form: str) -> None:
    path = saved(tmp_path / "look", {"nodes/n1.tree": b"#date 0\n 1\n", "wulf-facts.json": HEAD}, form)
    noise = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(noise.randrange(1, 5)):
        content[noise.randrange(len(content))] = noise.randrange(256)
    path.write_bytes(content[: noise.choice([len(content), noise.randrange(len(content))])])
    try:
        read(path)
    except ConfigError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize(
    "head",
    [
        b"[" * 100_000,
        b'{"version":1,"records":' + b"[" * 100_000,
        b'{"version":' + b"9" * 5000 + b"}",
        b'{"version":1,"created_at":"","interface":null,"records":[{"node":"../x","reachable":true,"facts":{}}]}',
        b'{"version":1,"created_at":"","interface":null,"records":[{"node":"n1","reachable":true,"facts":'
        b'{"a":1e999,"b":' + b"9" * 5000 + b"}}]}",
        b"\xff\xfe",
        b"",
    ],
)
def test_an_odd_head_is_refused(tmp_path: Path, head: bytes) -> None:
    path = saved(tmp_path / "look", {"wulf-facts.json": head})
    with pytest.raises(ConfigError, match="does not hold facts"):
        read(path)


def test_saving_follows_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    place = tmp_path / "place"
    place.mkdir()
    for name in ("look.tar", ".look.tar.part"):
        (place / name).symlink_to(victim)
    done = wulf(tmp_path, "audit", "facts", "--cluster", "local", "--save", str(place / "look.tar"))
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "mine"
    kept = os.lstat(place / "look.tar")
    assert stat.S_ISREG(kept.st_mode)
    assert stat.S_IMODE(kept.st_mode) == 0o600
    assert {path.name for path in place.iterdir()} == {"look.tar", ".look.tar.part"}
    records, _ = read(place / "look.tar")
    assert [record.node for record in records] == ["local1", "local2"]
