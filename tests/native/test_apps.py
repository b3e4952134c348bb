"""The shipped applications, built with each MPI library of this machine; and the product of matrices."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.native import programs
from tests.native.conftest import EACH_FAMILY
from tests.native.programs import SOURCE
from tests.tiers import mostly_thorough, thorough
from wulf.node.programs.shipped import SHIPPED

TIMEOUT_S = 120
BLAS = Path("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3")


class Application(msgspec.Struct, frozen=True):
    """Programs built with one MPI library, and how ranks of them are started here."""

    family: str
    #: The program of a name.
    path: Callable[[str], Path]

    def run(
        self, name: str, ranks: int, *words: str, preload: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        launch = [str(shutil.which(f"mpirun.{self.family}"))]
        if self.family == "openmpi":
            launch += ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
            # The loopback: a bare system has no other interface.
            launch += ["--mca", "mpi_yield_when_idle", "1"]
            launch += ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
        else:
            launch += ["-launcher", "fork"]
        between = ["env", f"LD_PRELOAD={preload}"] if preload else []
        # MPI libraries leave memory behind.
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        argv = [*launch, "-np", str(ranks), *between, str(self.path(name)), *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return what a program said, by name."""
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


@pytest.fixture(params=EACH_FAMILY)
def application(request: pytest.FixtureRequest) -> Application:
    family = request.param
    programs.required(family)
    return Application(family, lambda name: programs.program(SHIPPED[name].program, family))


@pytest.fixture
def sanitized() -> Application:
    return Application(programs.sanitized_family(), lambda name: programs.sanitized(SHIPPED[name].program))


@pytest.fixture
def dgemm() -> Path:
    return programs.sanitized("wulf-dgemm")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "columns"),
    [(1, 33), (4, 33), *(thorough(ranks, columns) for ranks in (1, 2, 4) for columns in (1, 2))],
)
def test_heat_decays_as_the_equation_says(application: Application, ranks: int, columns: int) -> None:
    done = application.run("heat", ranks, "--rows", "203", "--columns", str(columns), "--steps", "30")
    assert done.returncode == 0, done.stderr
    said = figures(done)
    assert said["result"] == "right" and said["ranks"] == str(ranks)
    assert 0 < float(said["error"]) <= float(said["tolerance"]) < 0.02
    messages = 2 * 30 * ranks if ranks > 1 else 0
    assert int(said["messages"]) == messages and int(said["bytes"]) == messages * columns * 8
    found = re.search(SHIPPED["heat"].match, done.stdout)
    assert found and float(found[1]) > 0
    assert 0 <= float(said["communication_s"]) <= float(found[1])


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", mostly_thorough([1, 2, 4], 4))
def test_farm_gets_every_task_back(application: Application, ranks: int) -> None:
    done = application.run("farm", ranks, "--tasks", "57", "--task-us", "50", "--bytes", "4096")
    assert done.returncode == 0, done.stderr
    said = figures(done)
    assert said["result"] == "right" and said["wrong"] == "0"
    # A task and its result each, and to every worker that there is no more.
    messages = 2 * 57 + ranks - 1 if ranks > 1 else 0
    assert int(said["messages"]) == messages and int(said["bytes"]) == messages * 4096


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["ep", "is", "cg"])
@pytest.mark.parametrize(
    ("letter", "ranks"),
    [("S", 3), *(thorough("S", ranks) for ranks in (1, 2)), thorough("W", 2), thorough("A", 2)],
)
def test_kernels_have_the_values_of_their_specification(
    application: Application, name: str, letter: str, ranks: int
) -> None:
    done = application.run(name, ranks, "--class", letter)
    assert done.returncode == 0, done.stderr
    said = figures(done)
    assert said["result"] == "right" and (said["class"], said["ranks"]) == (letter, str(ranks))
    assert float(said["run_time_s"]) > 0 and int(said["messages"]) > 0


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", mostly_thorough([1, 3], 3))
def test_a_search_finds_what_was_planted_wherever_the_database_is(
    application: Application, ranks: int, tmp_path: Path
) -> None:
    database, queries = tmp_path / "db.fa", tmp_path / "queries.fa"
    files = ("--database", str(database), "--queries", str(queries))
    few = ("--sequences", "60", "--count", "5")
    assert application.run("search", 1, "--make", *files, *few).returncode == 0
    hits = []
    # Pieces that are smaller than a sequence, that end within one, and one for all.
    for words in (
        few,
        *(
            (*files, "--read", read, "--piece", piece)
            for read in ("mpi-io", "own")
            for piece in ("1024", "5000", "1000000")
        ),
    ):
        done = application.run("search", ranks, *words)
        assert done.returncode == 0, done.stderr
        said = figures(done)
        assert (said["result"], said["known"], said["wrong"]) == ("right", "5", "0"), words
        hits.append([line for line in done.stdout.splitlines() if line.startswith("hit ")])
    assert all(one == hits[0] for one in hits)


@pytest.mark.mpi
def test_another_program_searches_the_pieces(application: Application, tmp_path: Path) -> None:
    database, queries = tmp_path / "db.fa", tmp_path / "queries.fa"
    files = ("--database", str(database), "--queries", str(queries))
    assert application.run("search", 1, "--make", *files, "--sequences", "40", "--count", "1").returncode == 0
    known = queries.read_text().partition("known=")[2].split()[0]
    found = f"""grep -q '^>{known}$' "$CHUNK" && test -s "$QUERIES" && echo q0 {known} 9 || true"""
    done = application.run("search", 2, *files, "--command", found)
    assert done.returncode == 0 and figures(done)["result"] == "right", done.stderr
    # What is not found, and a command that fails, are no result.
    for command in ("true", "exit 3"):
        done = application.run("search", 2, *files, "--command", command)
        assert done.returncode != 0 and "result right" not in done.stdout


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--database", "/none"], "go together"),
        thorough(["--database", "/none", "--queries", "/none"], "/none has no sequences"),
        thorough(["--read", "tape"], "--read takes"),
        thorough(["--make"], "--make and --command take"),
    ],
)
def test_a_search_says_what_it_lacks(application: Application, words: list[str], complaint: str) -> None:
    done = application.run("search", 2, *words)
    assert done.returncode != 0 and complaint in done.stderr
    assert "result" not in figures(done)


@pytest.mark.mpi
def test_a_row_that_is_not_what_was_sent_is_seen(application: Application) -> None:
    shim = programs.shim("spoiled_row", application.family)
    done = application.run("heat", 2, "--rows", "200", "--steps", "30", preload=shim)
    assert done.returncode == 1
    assert figures(done)["result"] == "wrong" and "away from the analytic solution" in done.stderr


@pytest.mark.mpi
def test_a_result_that_is_not_what_was_sent_is_seen(application: Application) -> None:
    shim = programs.shim("corrupting", application.family)
    done = application.run("farm", 2, "--tasks", "20", preload=shim)
    assert done.returncode == 1
    assert figures(done)["result"] == "wrong" and "results are wrong" in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "words", "complaint"),
    [
        ("heat", ["--steps", "0"], "--steps takes a number from 1"),
        thorough("heat", ["--step", "1"], "there is no option --step"),
        thorough("heat", ["--rows"], "--rows takes a number"),
        ("farm", ["--bytes", "8"], "--bytes takes a number from 24"),
    ],
)
def test_wrong_usage_is_said_once(
    application: Application, name: str, words: list[str], complaint: str
) -> None:
    done = application.run(name, 2, *words)
    assert done.returncode == 2
    assert done.stderr.count(complaint) == 1
    assert "result" not in figures(done)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("heat", ["--rows", "37", "--columns", "19", "--steps", "20"]),
        thorough("heat", ["--rows", "16", "--columns", "1", "--steps", "20"]),
        thorough("farm", ["--tasks", "9", "--task-us", "0", "--bytes", "24"]),
    ],
)
def test_the_sanitizers_find_nothing(sanitized: Application, name: str, words: list[str]) -> None:
    for ranks in (1, 2, 4):
        done = sanitized.run(name, ranks, *words)
        assert done.returncode == 0, done.stderr
        assert "runtime error" not in done.stderr and "AddressSanitizer" not in done.stderr


def multiply(dgemm: Path, *words: object) -> subprocess.CompletedProcess[str]:
    # The library is not built with the sanitizers, and keeps its buffers.
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
    argv = [dgemm, *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)


def test_a_product_is_timed_and_checked(dgemm: Path) -> None:
    if not BLAS.exists():
        pytest.skip("libblas3 is not installed")
    done = multiply(dgemm, BLAS, "--size", 101, "--products", 4, "--for-ms", 0)
    assert done.returncode == 0, done.stderr
    library, *products = map(json.loads, done.stdout.splitlines())
    assert library == {"type": "library", "path": str(BLAS.resolve()), "version": ""}
    assert len(products) == 4
    for product in products:
        assert product["gflops"] == pytest.approx(2e-9 * 101**3 / product["time_s"], rel=1e-3)
        assert 0 <= product["residual"] < 1 and product["busy_cpus"] > 0


def test_a_product_that_is_wrong_is_seen(dgemm: Path, tmp_path: Path) -> None:
    """A library whose products lack one summand of one element."""
    source = tmp_path / "wrong.c"
    source.write_text(
        "#include <stddef.h>\n"
        "void dgemm_(const char *a, const char *b, const int *m, const int *n, const int *k, const double *p,\n"
        "            const double *x, const int *i, const double *y, const int *j, const double *q, double *z,\n"
        "            const int *l) {\n"
        "    for (int c = 0; c < *n; c++)\n"
        "        for (int r = 0; r < *m; r++) {\n"
        "            double s = 0;\n"
        "            for (int h = r == 7 && c == 9 ? 1 : 0; h < *k; h++) s += x[h * *i + r] * y[c * *j + h];\n"
        "            z[c * *l + r] = s;\n"
        "        }\n"
        "}\n"
    )
    library = tmp_path / "libwrong.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=TIMEOUT_S)
    done = multiply(dgemm, library, "--size", 64, "--products", 1, "--for-ms", 0)
    assert done.returncode == 1 and "a product is wrong" in done.stderr


def test_what_is_no_library_is_refused(dgemm: Path, tmp_path: Path) -> None:
    for path, complaint in ((tmp_path / "none.so", "cannot open"), ("libm.so.6", "has no dgemm_")):
        done = multiply(dgemm, path)
        assert done.returncode == 2 and complaint in done.stderr


def test_every_shipped_program_has_its_source() -> None:
    assert all((SOURCE / program.source).is_file() for program in SHIPPED.values())
