"""Study files, their designs, and what follows from their runs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import NoReturn, cast

import msgspec
import pytest

from tests.cli.command import wulf
from tests.unit import study_fixture
from wulf.base import user_files
from wulf.base.errors import ConfigError, UsageError
from wulf.base.tool import Progress
from wulf.tools.study import checking, design, file, performing, work
from wulf.tools.study.conclude import conclude
from wulf.tools.study.metrics import filled
from wulf.tools.study.record import StudyFactor, StudyLevel
from wulf.tools.study.request import StudyRequest
from wulf.tools.study.store import create_study

GOOD = """
title = "x"

[[factor]]
name = "mtu"
knob = "nic.mtu"
values = ["original", 9000]

[[factor]]
name = "solver"
command = ["./a", "./b"]

[[metric]]
name = "run"
command = "{solver} input"
match = "rate ([0-9.]+)"
unit = "GFLOPS"
better = "higher"

[[metric]]
name = "latency"
op = "tcp_rr"
sizes = ["64", "1KiB"]

[[published]]
metric = "latency"
sizes = [64]
values = [0.3]
unit = "ms"
levels = { mtu = 9000 }
"""


def factors(*counts: int) -> list[StudyFactor]:
    return [
        StudyFactor(name=f"f{number}", levels=[StudyLevel(name=str(level)) for level in range(count)])
        for number, count in enumerate(counts)
    ]


def test_a_file_says_what_is_varied_and_measured() -> None:
    found = file.read(GOOD, "x.toml", "x")
    mtu, solver = found.factors
    assert [level.set for level in mtu.levels] == [{}, {"nic.mtu": "9000"}]
    assert filled(found.metrics[0].command, {"solver": solver.levels[1]}) == "./b input"
    assert found.metrics[1].figures == [("latency 64 B", 64), ("latency 1024 B", 1024)]
    (published,) = found.published
    assert (published.figure, published.levels) == ("latency 64 B", {"mtu": "9000"})
    assert published.value == pytest.approx(0.3e-3)


def test_a_published_value_at_the_only_size_is_of_the_figure_that_is_measured() -> None:
    found = file.read(GOOD.replace('["64", "1KiB"]', '["64"]'), "x.toml", "x")
    assert [(figure, size) for figure, size in found.metrics[1].figures] == [("latency", 64)]
    assert [one.figure for one in found.published] == ["latency"]


def test_braces_of_the_shell_and_of_awk_name_no_factor() -> None:
    command = "{solver} ${HOME}/in | awk '{ print }'"
    found = file.read(GOOD.replace("{solver} input", command), "x.toml", "x")
    levels = {"solver": found.factors[1].levels[1]}
    assert filled(found.metrics[0].command, levels) == "./b ${HOME}/in | awk '{ print }'"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('knob = "nic.mtu"', 'knob = "nic.mtuu"', r"x.toml:6: factor\[0\].knob: .*nic.mtuu"),
        ("9000]", "9]", r"x.toml:7: factor\[0\].values: .*9"),
        ('values = ["original", 9000]', 'values = ["original"]', r"x.toml:4: factor\[0\]: .*two levels"),
        ("9000]", '9000, "9000"]', r"x.toml:4: factor\[0\]: .*twice"),
        (
            'command = ["./a", "./b"]',
            'command = ["./a", "./b"]\nmpi = ["a", "b"]',
            r"x.toml:9: .*takes one of",
        ),
        (
            "{solver} input",
            "{sover} input",
            r"x.toml:15: metric\[0\].command: .*sover.*did you mean 'solver'.*write a space: '\{ sover \}'",
        ),
        ("{solver} input", "./c input", r"x.toml:9: factor\[1\]: .*solver"),
        (
            "sizes = [64]\nvalues = [0.3]",
            "value = 0.3",
            r"x.toml:27: published\[0\].value: 'latency' is measured at several sizes",
        ),
        ("rate ([0-9.]+)", "rate [0-9.]+", r"x.toml:16: metric\[0\].match: one group"),
        (
            'op = "tcp_rr"',
            'op = "tcp_rr"\nenergy = "cpu"',
            r"x.toml:23: metric\[1\].energy: .*about a command",
        ),
        (
            'op = "tcp_rr"',
            'op = "tcp_rr"\nmatch = "(x)"',
            r"x.toml:23: metric\[1\].match: an operation has no match; match is about a command$",
        ),
        (
            'op = "tcp_rr"',
            'op = "tcp_rr"\ntakes = "3s"',
            r"x.toml:23: .* about a command or HPL or a mix of jobs",
        ),
        (
            'op = "tcp_rr"',
            'op = "tcp_rr"\nshort = { n = 64 }',
            r"x.toml:23: metric\[1\].short.n: .*about HPL",
        ),
        ('better = "higher"', 'quantity = "bandwidth"', r"x.toml:18: metric\[0\].quantity: .*an operation"),
        (
            'better = "higher"',
            "short = { sizes = [4] }",
            r"x.toml:18: metric\[0\].short.sizes: a command has",
        ),
        ('match = "rate ([0-9.]+)"', "", r"x.toml:17: metric\[0\].unit: .*number that match finds"),
        (
            'op = "tcp_rr"\nsizes = ["64", "1KiB"]',
            "hpl = { n = 640 }\nshort = { n = 8 }",
            r"x.toml:23: metric\[1\].short.n: .*64",
        ),
        ('op = "tcp_rr"', 'op = "tcp_rr"\ncommand = "x"', r"x.toml:20: metric\[1\]: .*takes one of"),
        (
            '["64", "1KiB"]',
            '"rfc254"',
            r"x.toml:23: metric\[1\].sizes: .*no ladder 'rfc254'; did you mean 'rfc2544'",
        ),
        ("9000]", "1.5]", r"x.toml:7: .*expected a whole number or text in quotes, got a number"),
        ('"1KiB"]', '"1QiB"]', r"x.toml:23: metric\[1\].sizes: .*1QiB"),
        ("values = [0.3]", "values = [0.3, 4]", r"x.toml:28: published\[0\].values: 2 values of 1 size"),
        ('unit = "ms"', 'unit = "parsec"', r"x.toml:29: published\[0\].unit: .*none of"),
        (
            "mtu = 9000 }",
            "mtu = 9001 }",
            r"x.toml:30: published\[0\].levels: .*9001.* there are: original, 9000$",
        ),
        ("mtu = 9000 }", "mtuu = 9000 }", r"x.toml:30: published\[0\].levels: .*did you mean 'mtu'"),
        (
            'metric = "latency"',
            'metric = "latancy"',
            r"x.toml:26: published\[0\].metric: .*latancy.*did you mean 'latency'",
        ),
        (
            'better = "higher"\n\n[[metric]]\nname = "latency"',
            'energy = "cpu"\n\n[[metric]]\nname = "run"',
            r"x.toml:21: metric\[1\].name: there is another metric 'run'$",
        ),
        (
            'name = "run"',
            'name = "latency 64 B"',
            r"metric\[1\].name: there is another metric 'latency 64 B'",
        ),
        ('title = "x"', 'titel = "x"', r"x.toml:2: titel: unknown key; did you mean 'title'"),
        ('name = "solver"', 'name = "mtu"', r"x.toml:10: factor\[1\].name: there is another factor"),
        ('better = "higher"', 'better = "hiher"', r"x.toml:18: metric\[0\].better: .*higher, lower"),
        (
            'title = "x"',
            'title = "x"\nwatts = "9"',
            r"x.toml:3: watts: expected a number, got text in quotes",
        ),
        ('title = "x"', 'title = "x', r"x.toml:2: not TOML"),
        ('["64", "1KiB"]', "[-1]", r"x.toml:23: metric\[1\].sizes: -1 is not a size"),
        (
            'knob = "nic.mtu"\nvalues = ["original", 9000]',
            'pairs = ["ring", "wireless"]',
            r"x.toml:6: factor\[0\].pairs: 'wireless' is not one of cabled, switched",
        ),
        (
            'knob = "nic.mtu"\nvalues = ["original", 9000]',
            'interface = ["eth0", "eth 1"]',
            r"x.toml:6: factor\[0\].interface: 'eth 1' is not the name of a network interface",
        ),
        (GOOD, f'{GOOD}[design]\nkind = "fractional"\n', r"x.toml:32: design.kind: .* three factors or more"),
        (GOOD, f'{GOOD}[design]\nkind = "fractional"\nruns = 1\n', r"x.toml:33: design.runs: .* three"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_line_and_key(old: str, new: str, says: str) -> None:
    assert GOOD.count(old)
    with pytest.raises(ConfigError, match=says):
        file.read(GOOD.replace(old, new, 1), "x.toml", "x")


def test_a_level_that_cannot_be_had_leaves_its_factor() -> None:
    written = file.read(GOOD, "x.toml", "x")
    wanted = checking.reduced(written, {"mtu: original": "no"})
    assert [[level.name for level in factor.levels] for factor in wanted.factors] == [
        ["9000"],
        ["./a", "./b"],
    ]
    assert "only '9000' can be had" in wanted.left_out["factor mtu"]


def test_of_a_lost_base_it_is_said_what_the_base_is_now() -> None:
    longer = GOOD.replace('"original", 9000', '"original", 3000, 9000')
    wanted = checking.reduced(file.read(longer, "x.toml", "x"), {"mtu: original": "no"})
    assert "compared with '3000'" in wanted.left_out["mtu: original"]


def test_a_metric_whose_command_names_a_lost_factor_is_lost() -> None:
    written = file.read(GOOD, "x.toml", "x")
    wanted = checking.reduced(written, {"solver: ./a": "no", "solver: ./b": "no"})
    assert [metric.name for metric in wanted.metrics] == ["latency"]
    assert wanted.left_out["factor solver"] == "none of its levels can be had"
    assert "{solver}" in wanted.left_out["run"]


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (["mtu: original", "solver: ./a"], "nothing is left to compare"),
        (["mtu: 9000", "solver: ./a", "solver: ./b"], "nothing is left to compare"),
        (["run", "latency"], "none of its metrics"),
    ],
)
def test_a_study_of_which_nothing_is_left_is_refused(lost: list[str], says: str) -> None:
    written = file.read(GOOD, "x.toml", "x")
    with pytest.raises(UsageError, match=f"{says}.*{lost[0]}: it is not here"):
        checking.reduced(written, dict.fromkeys(lost, "it is not here"))


def test_what_only_the_nodes_tell_is_named() -> None:
    written = file.read(
        GOOD.replace(
            'knob = "nic.mtu"\nvalues = ["original", 9000]', 'blas = ["opnblas-pthread", "/x/libblas.so"]'
        ).replace("levels = { mtu = 9000 }", ""),
        "x.toml",
        "x",
    )
    assert checking.at_the_run(written.factors, written.metrics) == [
        "BLAS libraries: opnblas-pthread (did you mean 'openblas-pthread'?), /x/libblas.so",
        "commands: run",
    ]


def test_two_factors_that_set_the_same_are_refused() -> None:
    again = '\n[[factor]]\nname = "other"\nknob = "nic.mtu"\nvalues = [1500, 3000]\n'
    with pytest.raises(ConfigError, match=r"x.toml:13: factor\[2\]: .*both set nic.mtu"):
        file.read(GOOD.replace("\n[[metric]]", again + "\n[[metric]]", 1), "x.toml", "x")


@pytest.mark.parametrize("short", [False, True])
def test_the_shipped_studies_are_studies(short: bool) -> None:
    names = [source.id for source in user_files.sources("studies") if source.owner == "wulf"]
    assert len(names) >= 5
    for name in names:
        found = file.named(name, short=short)
        assert design.combinations(found.factors, found.design.kind, found.design.runs).cells


def test_every_page_of_studies_names_its_file() -> None:
    names = {source.id for source in user_files.sources("studies") if source.owner == "wulf"}
    pages = [
        page for page in (Path(__file__).parents[2] / "docs/studies").glob("*.md") if page.stem != "README"
    ]
    said = {name for name in names for page in pages if f"wulf bench study {name}" in page.read_text()}
    assert said == names
    assert len(pages) <= len(names)


def test_a_full_design_has_every_combination_and_the_base_first() -> None:
    made = design.combinations(factors(2, 3, 2), "full")
    assert made.cells[0] == ["0", "0", "0"]
    assert len({tuple(cell) for cell in made.cells}) == 12


def test_one_at_a_time_has_each_level_once() -> None:
    made = design.combinations(factors(2, 3), "one at a time")
    assert made.cells == [["0", "0"], ["1", "0"], ["0", "1"], ["0", "2"]]


@pytest.mark.parametrize(
    ("count", "runs", "resolution"), [(3, 4, 3), (4, 8, 4), (5, 16, 5), (7, 8, 3), (6, 16, 4)]
)
def test_a_fraction_is_balanced_and_of_the_known_resolution(count: int, runs: int, resolution: int) -> None:
    made = design.combinations(factors(*[2] * count), "fractional", runs)
    assert len(made.cells) == runs
    assert made.cells[0] == ["0"] * count
    # In a design of resolution R any R − 1 factors have all combinations of their levels equally often.
    for chosen in itertools.combinations(range(count), resolution - 1):
        found = Counter(tuple(cell[number] for number in chosen) for cell in made.cells)
        assert set(found.values()) == {runs >> (resolution - 1)}
    assert bool(made.aliases) == (resolution < 5)


@pytest.mark.parametrize(
    ("counts", "runs", "says"),
    [((2, 3, 2), 4, "f1"), ((2, 2), 2, "three factors"), ((2,) * 7, 4, "7 factors")],
)
def test_a_fraction_that_cannot_be_is_refused(counts: tuple[int, ...], runs: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        design.combinations(factors(*counts), "fractional", runs)


def test_every_replication_has_every_combination_once_in_its_own_order() -> None:
    turns = list(design.turns(5, 20, 1))
    orders = [[turn.cell for turn in turns if turn.replication == number] for number in range(20)]
    assert all(sorted(order) == [1, 2, 3, 4] for order in orders)
    assert len({tuple(order) for order in orders}) > 5
    assert 20 < sum(turn.base_first for turn in turns) < 60
    assert [turn.cell for turn in design.turns(1, 3, 1)] == [0, 0, 0]


def test_planted_effects_and_the_interaction_are_found() -> None:
    found = study_fixture.done().result
    assert found is not None
    effects = {(one.figure, tuple(one.levels.values())): one for one in found.effects}
    both = effects["HPL", ("9000", "b")]
    assert both.ratio is not None
    assert both.ratio.value == pytest.approx(study_fixture.INTERACTION, rel=0.02)
    assert both.verdict == "better"
    # Averaged over the three libraries, of which one brings more with it.
    mtu = effects["HPL", ("9000",)]
    assert mtu.ratio is not None
    assert mtu.ratio.value == pytest.approx(1.1 * study_fixture.INTERACTION ** (1 / 3), rel=0.02)
    latency = effects["latency 64 B", ("9000",)]
    assert latency.ratio is not None
    assert latency.verdict == "better"
    assert latency.ratio.value == pytest.approx(0.8, rel=0.02)
    assert effects["latency 64 B", ("c",)].verdict in ("no difference", "no decision")


def test_lines_costs_and_published_values_stand_beside_each_other() -> None:
    found = study_fixture.done().result
    assert found is not None
    own, *_ = found.lines
    assert own.slope.value == pytest.approx(1e-9, rel=0.3)
    (published,) = [one for one in found.lines if one.of]
    assert published.slope.value == pytest.approx(3e-7)
    assert published.r_squared == pytest.approx(1.0)
    then = next(one for one in found.costs if one.price == "then")
    assert then.value.value == pytest.approx(2490 / 12.0, rel=0.2)
    by_level = {tuple(cell.levels.values()): cell for cell in found.cells}
    figures = {figure.figure: figure for figure in by_level["1500", "b"].figures}
    assert figures["HPL"].published == 13.26


def test_one_at_a_time_says_that_it_knows_no_interactions() -> None:
    found = study_fixture.done("one at a time").result
    assert found is not None
    assert all(len(one.levels) == 1 for one in found.effects)
    assert "one factor at a time" in found.no_interactions


def test_a_level_that_never_worked_leaves_the_effects_of_the_others() -> None:
    plan = study_fixture.plan("one at a time")
    made = [one for one in study_fixture.trials(plan) if one.is_base or one.cell != 1]
    found = conclude(study_fixture.manifest(plan), made)
    effects = {(one.figure, *one.levels.values()): one for one in found.effects}
    assert "no pair of runs" in effects["HPL", "9000"].reason
    assert effects["HPL", "b"].ratio is not None
    assert effects["HPL", "b"].ratio.value == pytest.approx(1.5, rel=0.02)


def test_intervals_of_effects_hold_what_is_planted() -> None:
    plan = study_fixture.plan("full", 4)
    held = total = 0
    for seed in range(60):
        found = conclude(study_fixture.manifest(plan), study_fixture.trials(plan, seed, 0.05))
        for one in found.effects:
            if one.figure == "HPL" and one.levels == {"BLAS": "b", "MTU": "9000"} and one.ratio is not None:
                total += 1
                assert one.ratio.low is not None
                assert one.ratio.high is not None
                held += one.ratio.low <= study_fixture.INTERACTION <= one.ratio.high
    assert total == 60
    assert held >= 60 * 0.95 - 3 * math.sqrt(60 * 0.95 * 0.05)


def test_a_dry_run_looks_at_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(GOOD)
    ran = wulf(tmp_path, "study", "x.toml", "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert "48 runs" in ran.stdout
    assert not (tmp_path / "runs").exists()


def test_the_short_form_is_the_same_command(tmp_path: Path) -> None:
    assert wulf(tmp_path, "study", "--list").stdout == wulf(tmp_path, "bench", "study", "--list").stdout
    assert "\n  study" not in wulf(tmp_path, "--help").stdout


def test_what_goes_on_does_so_on_the_nodes_that_it_was_begun_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = study_fixture.manifest(study_fixture.plan(), "interrupted")
    cluster = '[cluster]\nname = "x"\nnodes = "node[01-04]"\n'
    with create_study(tmp_path / "a", msgspec.structs.replace(begun, cluster=cluster), ""):
        pass
    asked: list[performing.Asked] = []

    def opened(one: performing.Asked, _: object) -> NoReturn:
        asked.append(one)
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "opened", opened)
    with pytest.raises(KeyboardInterrupt):
        work.study(StudyRequest(resume=tmp_path / "a"), cast("Progress", None), cast("performing.Hpl", None))
    (one,) = asked
    assert performing.nodes_of(one.config, one.nodes) == ["node01", "node02"]
