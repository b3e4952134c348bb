"""Whatever a file, an archive or a word says: each reader takes it or refuses it, within its time and memory."""

from __future__ import annotations

import gzip
import io
import resource
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import field
from tests.unit import (
    test_characters,
    test_contended,
    test_hpl_given_problems,
    test_tune_objective,
    test_worth,
)
from tests.unit.predict_fixture import ring
from wulf.base import locations, networks, store
from wulf.base.errors import WulfError
from wulf.base.importing import formats
from wulf.base.pattern import language
from wulf.base.records.profiled import MpiProfile
from wulf.base.records.watched import WatchedTime, WatchRun
from wulf.base.store import archive
from wulf.base.store.history import NAME, History
from wulf.base.store.kinds import kind_of
from wulf.base.trace.export.operations import exported
from wulf.base.trace.imported import goal, smpi
from wulf.base.trace.reader import read as read_trace
from wulf.base.trace.summary import summary
from wulf.node.change import steps
from wulf.node.measuring.imported import import_run, read_files
from wulf.node.probe import suites
from wulf.node.trials.experiment import objective
from wulf.stats.prediction import uplinks
from wulf.tools.application import profile
from wulf.tools.hpl import given_problems, program
from wulf.tools.study import file as study_file
from wulf.tools.worth import money

pytestmark = pytest.mark.thorough
IMPORTS = field.IMPORTS
TRACES = IMPORTS.parent / "traces/field"
#: No reader takes more for a file of kilobytes [B]: it is what a process has that reads one, with the interpreter.
MEMORY = 2 << 30
FUZZ = settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
EDGES = [
    "0", "-1", "--1", "1e400", "-0.0", "nan", "inf", "1_000", "٣", "0x10", "4294967296", "9223372036854775808",
    "9" * 30, "9" * 5000, "1e18", "\x1b[31m", "\x00", "\u2028", "../../x", "=1+1", "<script>", "#", "/*", '"', "{" * 50,
    "[" * 2000,
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """Return one of some inputs with words, lines and bytes changed."""
    lines = draw(st.sampled_from(seeds)).split(b"\n")
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 5)):
            case 0 | 1:
                words = lines[place].split(b" ")
                word = draw(st.integers(0, len(words) - 1))
                words[word] = draw(st.sampled_from(EDGES) | st.text(max_size=8)).encode("utf-8", "replace")
                lines[place] = b" ".join(words)
            case 2:
                del lines[place]
            case 3:
                lines.insert(place, draw(st.sampled_from(lines)))
            case 4:
                lines[place] = draw(st.binary(max_size=20)) + lines[place]
            case _:
                lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
        lines = lines or [b""]
    return b"\n".join(lines)


FLIPS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([1, 2, 4, 8]),
        st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]),
    ),
    min_size=1,
    max_size=12,
)
#: What is left of a file.
KEPT = st.sampled_from([1.0, 1.0, 1.0, 0.9, 0.5, 0.01])


def flipped(seed: bytes, flips: list[tuple[float, int, int]], kept: float) -> bytes:
    """Return bytes of which some are others, and the end is gone."""
    raw = bytearray(seed)
    for where, width, value in flips:
        place = int(where * len(raw))
        raw[place : place + width] = bytes([value]) * width
    return bytes(raw[: int(kept * len(seed))])


def refused_or_taken(read: Callable[[], object]) -> None:
    """Call a reader; what it refuses it says in a line that can be shown."""
    try:
        read()
    except WulfError as error:
        assert str(error) and len(str(error)) < 4000


def small(folder: Path, *endings: str) -> list[bytes]:
    files = [one for one in sorted(folder.glob("**/*")) if one.is_file() and one.stat().st_size < 8000]
    return [one.read_bytes() for one in files if not endings or one.suffix in endings]


@FUZZ
@given(mutated(small(IMPORTS, ".txt", ".json", ".out")))
def test_outputs_of_other_benchmarks(raw):
    def read() -> None:
        for launch in formats.read(formats.decoded(raw, "f"), "f", []):
            for series in launch:
                assert series.times_s and all(0 < one <= 1e9 for one in series.times_s.values())
                assert all(0 <= size <= 1 << 50 for size in series.times_s)
                assert "\x1b" not in series.name

    refused_or_taken(read)


@FUZZ
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_outputs_of_nothing_that_is_known(text):
    refused_or_taken(lambda: formats.read(text, "f"))


def as_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@FUZZ
@given(mutated(small(TRACES, ".goal")))
def test_goal(raw):
    refused_or_taken(lambda: goal.streams(as_text(raw), "f"))


@FUZZ
@given(
    mutated(small(TRACES, ".txt")),
    st.sampled_from([1e9, 1e-300, 1e300, 0.0, float("inf"), float("nan"), -1.0]),
)
def test_smpi(raw, speed):
    refused_or_taken(lambda: smpi.streams({"f": as_text(raw)}, speed))


@FUZZ
@given(mutated([test_hpl_given_problems.SEVERAL.encode()]))
def test_hpl_dat(raw):
    def read() -> None:
        found = given_problems.parse(as_text(raw), "HPL.dat").problems
        assert 1 <= len(found) <= given_problems.PROBLEMS_MOST
        # What is written of a problem that was taken is that problem.
        one = found[0]
        assert given_problems.parse(program.hpl_dat([one.n], one.setting), "HPL.dat").problems == [one]

    refused_or_taken(read)


@FUZZ
@given(mutated([one.read_bytes() for one in Path(language.__file__).parents[2].glob("data/patterns/*.toml")]))
def test_patterns(raw):
    refused_or_taken(lambda: language.parse(as_text(raw), "f"))


@FUZZ
@given(FLIPS, KEPT)
def test_traces(tmp_path, flips, kept):
    path = tmp_path / "t.wtrace"
    if not (tmp_path / "ring.wtrace").exists():
        ring(tmp_path / "ring.wtrace", run_ns=1_000_000)
    path.write_bytes(flipped((tmp_path / "ring.wtrace").read_bytes(), flips, kept))
    refused_or_taken(lambda: summary(read_trace(path)))


@FUZZ
@given(FLIPS, KEPT)
def test_archives(tmp_path, flips, kept):
    if not (tmp_path / "run.tar").exists():
        run, _ = import_run(read_files([IMPORTS / "osu.txt"]), ["c1", "c2"], tmp_path / "run")
        archive.pack(run.path, tmp_path / "run.tar.gz")
        (tmp_path / "run.tar").write_bytes(gzip.decompress((tmp_path / "run.tar.gz").read_bytes()))
    raw = flipped((tmp_path / "run.tar").read_bytes(), flips, kept)
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(raw, 1))
    runs = tmp_path / "runs"
    refused_or_taken(lambda: archive.unpack(tmp_path / "x.tar.gz", runs, "x"))
    assert not any(one.name not in ("run", "runs") for one in tmp_path.iterdir() if one.is_dir())


@FUZZ
@given(st.data())
def test_records_of_runs(tmp_path, data):
    if not (tmp_path / "run").exists():
        import_run(read_files([IMPORTS / "osu.txt"]), ["c1", "c2"], tmp_path / "run")
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    names = ("manifest.json", "records.jsonl")
    chosen = data.draw(st.sampled_from(names))
    for name in names:
        raw = (tmp_path / "run" / name).read_bytes()
        if name == chosen:
            raw = data.draw(
                mutated([raw.replace(b",", b" , ").replace(b":", b" : ").replace(b" , ", b"\n,\n")])
            )
            raw = raw.replace(b"\n,\n", b" , ") if name == "records.jsonl" else raw
        (work / name).write_bytes(raw)
    refused_or_taken(lambda: kind_of(work) and store.load(work))


@FUZZ
@given(FLIPS, KEPT)
def test_histories(tmp_path, flips, kept):
    if not (tmp_path / "whole").exists():
        write_history(tmp_path / "whole")
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (work / NAME).write_bytes(flipped((tmp_path / "whole" / NAME).read_bytes(), flips, kept))
    refused_or_taken(lambda: read_history(work))


def write_history(folder: Path) -> None:
    with History(folder, writing=True) as history:
        for number in range(1, 30):
            run = WatchRun(
                number=number, at=f"2026-01-{number:02d}T00:00:00+00:00", utc_offset_s=0, status="measured", reason="",
                seconds=1.0, pairs=1, skipped={"n3": "it does not answer"}, wulf_version="1",
            )  # fmt: skip
            time = WatchedTime(op="tcp_rr", size_bytes=1, nodes=("n1", "n2"), time_s=1e-5, launches=3)
            history.add(run, [time], {"n1": {"kernel.release": str(number // 10)}})


def read_history(folder: Path) -> None:
    with History(folder) as history:
        history.runs(), history.nodes(), history.times(), history.alarms(), history.suspects()
        history.disturbed(), history.last_measured(), history.count_times()


def networks_of(raw: bytes, folder: Path) -> object:
    (folder / "n.toml").write_bytes(raw)
    return networks.read(folder / "n.toml")


def profiles_of(raw: bytes, _: Path) -> object:
    return [profile.character("run", "./a", one) for one in profile.read(raw, "f")]


def uplinks_of(raw: bytes, _: Path) -> object:
    return uplinks.text(uplinks.read(as_text(raw), "f"), ["node01", "node02"], "f")


PROFILE = msgspec.json.encode(
    MpiProfile(
        version="1",
        ranks=[test_characters.rank(5, point=5)] * 2,
        messages=[test_characters.messages(2000, 1 << 20), test_characters.messages(8, 8, "collective")],
    )
)
PROFILE = PROFILE.replace(b",", b" , ").replace(b":", b" : ")
DATA = Path(language.__file__).parents[2] / "data"
#: Files that people or nodes write, one after the other → what reads them, and good ones.
FILES: dict[str, tuple[Callable[[bytes, Path], object], list[bytes]]] = {
    "plans": (lambda raw, _: suites.parse(as_text(raw), "f"), small(DATA / "suites")),
    "studies": (lambda raw, _: study_file.read(as_text(raw), "f", "f"), small(DATA / "studies")),
    "objectives": (
        lambda raw, _: objective.from_toml(raw, "f", test_tune_objective.known),
        [test_tune_objective.FILE],
    ),
    "networks": (networks_of, small(DATA / "networks")),
    "mixes of jobs": (
        lambda raw, _: money.read_jobs(raw, "f"),
        [money.JOBS.encode(), test_worth.JOBS.encode()],
    ),
    "prices": (lambda raw, _: money.read_prices(raw, "f"), [money.PRICES.encode()]),
    "switches": (uplinks_of, [test_contended.CONF.encode()]),
    "profiles": (profiles_of, [PROFILE]),
    "own defaults": (lambda raw, _: locations.table(as_text(raw), "f"), [b"[measure]\nrounds = 3\n"]),
}


@pytest.mark.parametrize("name", FILES)
@FUZZ
@given(data=st.data())
def test_files_that_people_write(tmp_path, name, data):
    read, seeds = FILES[name]
    assert seeds
    raw = data.draw(mutated(seeds))
    refused_or_taken(lambda: read(raw, tmp_path))


NAMES = [path.stem for path in Path(language.__file__).parents[2].glob("data/knobs/*.toml")]


@FUZZ
@given(st.sampled_from(NAMES), st.sampled_from(EDGES) | st.text(max_size=12) | st.integers().map(str))
def test_values_of_settings(name, value):
    def read() -> None:
        for wanted in steps.parse([f"{name}={value}"]):
            assert wanted.value.isascii() and wanted.value.isprintable()
            assert not wanted.value.startswith("@") and ".." not in wanted.value

    refused_or_taken(read)


LOUD = {
    "num_ranks": ("goal", b"num_ranks 131072\n"),
    "ranks that are not there": ("goal", b"num_ranks 99999999999\n"),
    "comments": ("goal", b"/*" * 500_000),
    "a rank far away": ("smpi", b"131071 init\n"),
    "a long number": ("smpi", b"0 compute " + b"9" * 1_000_000 + b"\n"),
    "lists in lists": ("pattern", b"x = " + b"[" * 100_000),
    "ranks of a pattern": ("pattern", b'title="t"\nranks=1000000000\n[[program]]\nname="p"\niterations=1\n'),
    "a long line": ("import", b"# OSU MPI Latency Test v7\n# Size  Avg Latency(us)\n" + b"1 " * 1_000_000),
    "JSON without end": ("import", b'{"start": {"test_start": {"blksize":' + b"[" * 200_000),
    "many ranks": (
        "import",
        b"# Benchmarking Bcast\n# #processes = 131072\n#bytes #repetitions t[usec]\n 1 1 1\n",
    ),
    "numbers alone": ("import", b"1 2 3\n" * 500_000),
    "colours": ("import", b"\x1b[" * 500_000 + b"# OSU \n"),
}
READ = """
import resource, sys
from pathlib import Path
from wulf.base.errors import WulfError
from wulf.base.importing import formats
from wulf.base.pattern import language
from wulf.base.trace.export.operations import exported
from wulf.base.trace.imported import goal, smpi
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]), int(sys.argv[3])))
raw = Path(sys.argv[2]).read_bytes()
text = raw.decode("utf-8", "replace")
read = {
    "goal": lambda: goal.streams(text, "f"),
    "smpi": lambda: smpi.streams({"f": text}, 1e9),
    "pattern": lambda: language.parse(text, "f"),
    "import": lambda: formats.read(formats.decoded(raw, "f"), "f"),
}[sys.argv[1]]
try:
    read()
except WulfError as error:
    print(str(error)[:200])
"""


@pytest.mark.parametrize("name", LOUD)
def test_little_does_not_become_much(name, tmp_path):
    """An input of a megabyte takes at most the stated memory, and no minutes."""
    reader, raw = LOUD[name]
    (tmp_path / "f").write_bytes(raw)
    argv = [sys.executable, "-W", "error", "-c", READ, reader, str(tmp_path / "f"), str(MEMORY)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert resource.RLIM_INFINITY != MEMORY


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_large_header_of_an_archive_is_not_read(tmp_path, kind):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        head = tarfile.TarInfo("run/x")
        head.type, head.size = kind, 1 << 20
        made.addfile(head, io.BytesIO(bytes(1 << 20)))
    (tmp_path / "x.tar.gz").write_bytes(out.getvalue())
    with pytest.raises(WulfError, match="a header of 1048576 bytes"):
        archive.unpack(tmp_path / "x.tar.gz", tmp_path / "runs", "x")


def test_knobs_are_fuzzed():
    assert len(NAMES) > 50 and tomllib


@FUZZ
@given(FLIPS)
def test_exports_of_traces(tmp_path, flips):
    if not (tmp_path / "ring.wtrace").exists():
        ring(tmp_path / "ring.wtrace", run_ns=1_000_000)
    (tmp_path / "t.wtrace").write_bytes(flipped((tmp_path / "ring.wtrace").read_bytes(), flips, 1.0))
    refused_or_taken(lambda: exported(read_trace(tmp_path / "t.wtrace")))
