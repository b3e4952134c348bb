"""Whole runs, of every kind: labelled, renamed, deleted, packed into a file and taken over from one."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import wulf
from tests.unit.test_hpl_result import launches, manifest
from tests.unit.test_library import tuned  # noqa: F401 - a fixture
from wulf.tools.hpl.store import HplWriter

GOLDEN = Path(__file__).parents[1] / "golden" / "run-v1"


@pytest.fixture
def runs(tmp_path: Path, tuned: Path) -> Path:  # noqa: F811
    """Return a directory with a run of each kind."""
    root = tmp_path / "runs"
    shutil.copytree(GOLDEN, root / "first")
    tuned.rename(root / "search")
    with HplWriter.create(root / "linpack", manifest()) as writer:
        writer.append(launches()[0])
    return root


def listed(place: Path, *words: str) -> dict[str, dict[str, object]]:
    return {one["run"]: one for one in json.loads(wulf(place, "runs", "list", *words, "--json").stdout)}


def test_labels(tmp_path: Path, runs: Path) -> None:
    for run in ("first", "search"):
        assert wulf(tmp_path, "runs", "tag", run, "good", "rack:1").returncode == 0
    assert wulf(tmp_path, "runs", "note", "first", "after the new cables").returncode == 0
    done = wulf(tmp_path, "runs", "tag", "first", "--", "-good", "checked")
    assert "tags: rack:1, checked" in done.stdout
    assert set(listed(tmp_path)) == {"first", "search", "linpack"}
    assert set(listed(tmp_path, "--tag", "rack:1", "--tag", "good")) == {"search"}
    assert listed(tmp_path)["first"]["note"] == "after the new cables"
    table = wulf(tmp_path, "runs", "list").stdout
    assert "rack:1, checked: after the new cables" in " ".join(table.split())
    assert "after the new cables" in wulf(tmp_path, "runs", "note", "first").stdout
    assert "note" not in wulf(tmp_path, "runs", "note", "first", "").stdout
    assert wulf(tmp_path, "runs", "tag", "first", "no tag").returncode == 2


def test_damaged_labels_do_not_make_a_run_damaged(tmp_path: Path, runs: Path) -> None:
    before = listed(tmp_path)["first"]["launches"]
    (runs / "first" / "labels.json").write_text("{")
    entry = listed(tmp_path)["first"]
    assert (entry["note"], entry["launches"]) == ("labels.json is damaged", before)
    done = wulf(tmp_path, "runs", "tag", "first", "good")
    assert done.returncode == 1 and "remove it to begin anew" in " ".join(done.stderr.split())


@pytest.mark.root
def test_a_run_that_nobody_can_write_to_is_packed(tmp_path: Path, runs: Path) -> None:
    # A file system of its own, which is read-only, in a mount namespace that goes with the command.
    script = """
        mount --bind runs runs && mount -o remount,bind,ro runs || exit 99
        "$0" -m wulf.face.cli.main runs archive first -o first.tar.gz || exit
        "$0" -m wulf.face.cli.main runs rename first second
    """
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "first.tar.gz").is_file(), done.stderr
    assert done.returncode == 1 and "cannot rename runs/first: Read-only file system" in done.stderr


def test_rename_and_delete(tmp_path: Path, runs: Path) -> None:
    assert wulf(tmp_path, "runs", "rename", "first", "before").returncode == 0
    assert set(listed(tmp_path)) == {"before", "search", "linpack"}
    for name in ("../out", "latest", "search"):
        assert wulf(tmp_path, "runs", "rename", "before", name).returncode == 2
    unsaid = wulf(tmp_path, "runs", "delete", "before")
    assert (unsaid.returncode, (runs / "before").is_dir()) == (2, True)
    assert wulf(tmp_path, "runs", "delete", "bef", "--yes").returncode == 2
    assert wulf(tmp_path, "runs", "delete", "latest", "--yes").returncode == 2
    assert wulf(tmp_path, "runs", "delete", str(tmp_path), "--yes").returncode == 1  # it is not a run
    assert wulf(tmp_path, "runs", "delete", "before", "search", "linpack", "--yes").returncode == 0
    assert list(runs.iterdir()) == []


def test_a_run_that_is_written_stays(tmp_path: Path, runs: Path) -> None:
    import fcntl

    with (runs / "first" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (["rename", "first", "x"], ["delete", "first", "--yes"], ["archive", "first"]):
            done = wulf(tmp_path, "runs", *words)
            assert done.returncode == 1
            assert "being written" in done.stderr


@pytest.mark.parametrize("run", ["first", "search", "linpack"])
def test_there_and_back(tmp_path: Path, runs: Path, run: str) -> None:
    wulf(tmp_path, "runs", "tag", run, "moved")
    before = contents(runs / run)
    assert wulf(tmp_path, "runs", "archive", run).returncode == 0
    archive = tmp_path / f"{run}.tar.gz"
    assert wulf(tmp_path, "runs", "archive", run).returncode == 1  # no file is written over
    shutil.rmtree(runs / run)
    done = wulf(tmp_path, "runs", "import", archive.name)
    assert done.returncode == 0, done.stderr
    assert contents(runs / run) == before
    assert wulf(tmp_path, "runs", "import", archive.name).returncode == 1
    assert wulf(tmp_path, "runs", "import", archive.name, "--as", "again").returncode == 0
    assert contents(runs / "again") == before
    assert listed(tmp_path)["again"]["tags"] == ["moved"]
    # Without wulf:
    (tmp_path / "x").mkdir()
    subprocess.run(["tar", "xzf", archive, "-C", tmp_path / "x"], check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "x" / run, check=True)


def contents(path: Path) -> dict[str, bytes]:
    return {
        part.relative_to(path).as_posix(): part.read_bytes()
        for part in path.rglob("*")
        if part.is_file() and part.name != "lock"
    }


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def packed(*members: tuple[tarfile.TarInfo, bytes], sums: bool = True) -> bytes:
    """Return an archive whose checksums are right, whatever else it is."""
    lines = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {info.name.partition('/')[2]}\n"
        for info, content in members
        if info.isreg()
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in [*members, *([member("run/SHA256SUMS", lines.encode())] if sums else [])]:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


HEAD = (GOLDEN / "manifest.json").read_bytes()
GOOD = member("run/manifest.json", HEAD)


def bomb() -> bytes:
    """Return an archive that says of a file that it is a tebibyte."""
    info = tarfile.TarInfo("run/x")
    info.size = 1 << 40
    return gzip.compress(info.tobuf() + b"\0" * 10240)


def flipped(archive: bytes) -> bytes:
    raw = bytearray(gzip.decompress(archive))
    raw[700] ^= 1  # in the first file
    return gzip.compress(bytes(raw))


def unlisted() -> bytes:
    sums = f"{hashlib.sha256(HEAD).hexdigest()}  manifest.json\n".encode()
    return packed(GOOD, member("run/more", b"x"), member("run/SHA256SUMS", sums), sums=False)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a path upwards": lambda: packed(GOOD, member("run/../../evil", b"x")),
    "an absolute path": lambda: packed(GOOD, member("/tmp/wulf-evil", b"x")),
    "a symbolic link": lambda: packed(GOOD, member("run/output", type=tarfile.SYMTYPE, linkname="/tmp")),
    "a hard link": lambda: packed(GOOD, member("run/x", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "a device": lambda: packed(GOOD, member("run/x", type=tarfile.CHRTYPE)),
    "two directories": lambda: packed(GOOD, member("other/x", b"x")),
    "a hidden name": lambda: packed(member(".run/manifest.json", HEAD)),
    "a file twice": lambda: packed(GOOD, GOOD),
    "no checksums": lambda: packed(GOOD, sums=False),
    "no run": lambda: packed(member("run/notes.txt", b"x")),
    "a run that cannot be read": lambda: packed(member("run/manifest.json", b"{}")),
    "a newer run": lambda: packed(member("run/manifest.json", b'{"schema_version": 99}')),
    "a name of two lines": lambda: packed(GOOD, member("run/a\nb", b"x")),
    "too much": bomb,
    "no archive": lambda: b"nothing of the kind",
    "half an archive": lambda: packed(GOOD)[:200],
    "a bit that has changed": lambda: flipped(packed(GOOD)),
    "a file that its sums do not have": unlisted,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_damaged_or_hostile_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.tar.gz").write_bytes(HOSTILE[name]())
    done = wulf(tmp_path, "runs", "import", "a.tar.gz")
    assert done.returncode == 1, done.stdout
    assert "a.tar.gz" in done.stderr or "manifest.json" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) in (["a.tar.gz"], ["a.tar.gz", "runs"])
    assert not (tmp_path / "runs").exists() or list((tmp_path / "runs").iterdir()) == []
    assert not Path("/tmp/wulf-evil").exists()


def test_what_no_run_has_is_not_packed(tmp_path: Path, runs: Path) -> None:
    (runs / "first" / "link").symlink_to("/etc/passwd")
    done = wulf(tmp_path, "runs", "archive", "first")
    assert done.returncode == 1
    assert "link" in done.stderr
    assert not list(tmp_path.glob("*.tar.gz"))
