"""What follows from launches of HPL, how they are stored and shown, and when one is cut."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from tests.unit.pages import figure, said, table
from tests.unit.test_hpl_output import output
from wulf.base import hpl_output
from wulf.base.errors import StoreError
from wulf.base.records import SCHEMA_VERSION
from wulf.page.page import html
from wulf.page.terminal import print_page
from wulf.tools.hpl import page as report
from wulf.tools.hpl import session
from wulf.tools.hpl.launching import Limit
from wulf.tools.hpl.page import view
from wulf.tools.hpl.record import HplLaunch, HplManifest, HplPlan, HplSetting, Peak
from wulf.tools.hpl.result import conclude
from wulf.tools.hpl.store import HplWriter, load_hpl

CHOSEN = HplSetting(nb=128, p=1, q=2, threads=1, bcast=1, depth=1, swap=2)
OTHER = HplSetting(nb=64, p=2, q=1, threads=1, bcast=0, depth=0, swap=0)
RATES = (80.0, 82.0, 81.0, 79.0, 83.0, 81.5)


def manifest(**more):
    plan = HplPlan(
        program="/usr/bin/xhpl",
        kind="xhpl",
        nodes=["node01", "node02"],
        cpus=1,
        memory_bytes=2**34,
        largest_n=40_000,
        time_s=600.0,
        repeats=6,
        seed=1,
        values={"nb": ["64", "128"], "layout": ["1×2", "2×1"]},
        price=2490.0,
        watts=900.0,
        peak=Peak(gflops=162.5),
    )
    return HplManifest(
        schema_version=SCHEMA_VERSION,
        id="run",
        created_at="2026-11-23T13:00:00+00:00",
        updated_at="2026-11-23T13:10:00+00:00",
        status="complete",
        wulf_version="0.1.0",
        command_line=["wulf", "hpl"],
        operations=[],
        cluster="",
        software={},
        plan=msgspec.structs.replace(plan, **more),
        records=[],
    )


def launch(index, phase, n, gflops, setting=CHOSEN, **more):
    fields = {
        "status": "ok",
        "time_s": hpl_output.operations(n) / gflops / 1e9 if gflops else None,
        "gflops": gflops,
        "residual": 0.004 if gflops else None,
        **more,
    }
    return HplLaunch(
        index=index,
        phase=phase,
        n=n,
        setting=setting,
        started_at="2026-11-23T13:01:00+00:00",
        wall_s=10.0,
        **fields,
    )


def launches():
    found = [
        launch(0, "size", 1024, 40.0),
        launch(1, "search", 2048, 60.0),
        launch(2, "search", 2048, 30.0, OTHER),
    ]
    found += [launch(3, "search", 2048, 20.0, OTHER, status="cut", reason="1.5 × slower", residual=None)]
    # The luckiest launch of all is one of the search.
    found += [launch(4, "large", 3072, 99.0), launch(5, "large", 3072, 70.0), launch(6, "large", 3072, 69.0)]
    return found + [launch(7 + place, "confirm", 20_000, rate) for place, rate in enumerate(RATES)]


def test_the_figure_is_the_median_of_fresh_launches_alone():
    found = conclude(manifest(), launches())
    assert found.gflops.value == 81.25 and found.gflops.n == 6
    assert found.gflops.low >= min(RATES) and found.gflops.high <= max(RATES)
    assert (found.n, found.setting, found.cut, found.failed) == (20_000, CHOSEN, 1, 0)
    assert found.launches == {"size": 1, "search": 3, "large": 3, "confirm": 6} and found.settings == 4
    assert found.forecast.time.low < found.time.value * 3


def test_what_it_is_worth_has_its_interval_the_right_way_round():
    found = conclude(manifest(), launches())
    assert found.of_peak.value == pytest.approx(0.5)
    assert found.mflops_per_watt.value == pytest.approx(81_250 / 900)
    price = found.price_per_gflops
    assert price.value == pytest.approx(2490 / 81.25)
    assert price.low == pytest.approx(2490 / found.gflops.high) and price.low < price.value < price.high


def test_what_is_unknown_is_not_made_up():
    found = conclude(
        manifest(price=None, watts=None, peak=None, peak_unknown="a CPU nobody knows"), launches()
    )
    assert (found.of_peak, found.price_per_gflops, found.mflops_per_watt) == (None, None, None)
    assert "a CPU nobody knows" in found.notes


def test_without_fresh_launches_there_is_no_figure():
    found = conclude(manifest(), launches()[:7])
    assert (found.gflops, found.n, found.standings, found.last_list) == (None, None, [], None)
    assert "there is no figure yet" in found.notes[0]


def test_a_fresh_launch_that_failed_is_told_and_no_part_of_the_figure():
    failed = launch(13, "confirm", 20_000, None, status="failed", reason="the result is wrong: residual 99")
    found = conclude(manifest(), [*launches()[:-1], failed])
    assert (found.gflops.n, found.gflops.low, found.failed) == (5, None, 1)
    assert any("residual 99" in note for note in found.notes) and any(
        "takes 6" in note for note in found.notes
    )


def test_an_order_that_time_has_limited_is_told():
    notes = conclude(manifest(), launches()).notes
    assert notes == [
        "the order 20000 is limited by time: 40000 would fill 80 % of the memory, and is faster as a rule"
    ]
    assert conclude(manifest(largest_n=20_000), launches()).notes == []


def test_a_run_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "run"
    with HplWriter.create(path, manifest()) as writer:
        for one in launches()[:3]:
            writer.append(one)
    with (path / "launches.jsonl").open("ab") as log:
        log.write(b'{"index": 3, "pha')
    run = load_hpl(path)
    with HplWriter(path, run.manifest) as again:
        again.append(launches()[3])
        again.conclude(conclude(again.manifest, launches()))
    assert run.launches == launches()[:3]
    assert load_hpl(path).launches == launches()[:4]
    assert load_hpl(path).result == conclude(manifest(), launches())
    with pytest.raises(StoreError, match="exists already"):
        HplWriter.create(path, manifest())
    (path / "launches.jsonl").write_text("{}\n")
    with pytest.raises(StoreError, match=r"launches\.jsonl, line 1 is damaged"):
        load_hpl(path)


def test_the_page_and_the_terminal_say_the_same():
    head = manifest()
    found = conclude(head, launches())
    out = io.StringIO()
    print_page(report.build(head, launches(), found), Console(file=out, width=100))
    text, page = out.getvalue(), html(report.build(head, launches(), found))
    for words in ("81.2", "1×2, 1 thread, NB 128, 1ringM, depth 1, mix", "MFLOPS/W", "Top500"):
        assert words in text and words in page
    assert "Block size and process grid" in page and "Rate by the order" in page


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (14.53, "fast enough for the list of June 1998, whose 500th had 13.4 GFLOPS"),
        (300.0, "whose 500th had 196 GFLOPS; the 500th of June 2003 to November 2004 is not known"),
        (40_000.0, "at least until the list of November 2010"),
        (40_000.0, "; the 500th of June 2011 is not known"),
    ],
)
def test_lists_that_are_not_known_are_said_beside_the_last_that_is(rate, words):
    found = conclude(manifest(), [launch(index, "confirm", 20_000, rate) for index in range(6)])
    (line,) = [line for line in said(view.build(manifest(), [], found)) if "500th" in line]
    assert words in line


def test_charts_have_what_was_launched_and_no_more():
    shown = view.build(manifest(), launches(), conclude(manifest(), launches()))
    path = figure(shown, "path").variants[0].datasets["main"]
    assert path["launch"] == list(range(1, 14)) and path["status"].count("cut: at most") == 1
    assert path["best"][:4] == [None, 60.0, 60.0, 60.0] and path["best"][-1] is None
    surface = figure(shown, "surface").variants[0].datasets["main"]
    assert list(zip(surface["layout"], surface["nb"], surface["rate"], strict=True)) == [
        ("1×2, 1 thread", 128, 60.0),
        ("2×1, 1 thread", 64, 30.0),
    ]
    assert [row[0].text for row in table(shown, "Settings").rows] == [CHOSEN.shown]


def test_a_run_without_any_launch_has_a_page():
    head = manifest()
    assert "no figure yet" in html(report.build(head, [], conclude(head, [])))


def test_a_launch_is_judged_by_where_the_best_was_and_not_by_its_first_panels():
    steps = output("progress.txt").rows[1].progress
    best = [(step.fraction, step.gflops) for step in steps]
    limit = Limit(time_s=1.0, beside_s=1.0, best=best, factor=1.5)
    slow = [msgspec.structs.replace(step, gflops=step.gflops / 1.6) for step in steps]
    fair = [msgspec.structs.replace(step, gflops=step.gflops / 1.4) for step in steps]
    assert [limit.too_slow(step) for step in slow] == [step.fraction >= 0.2 for step in steps]
    assert not any(limit.too_slow(step) for step in fair)
    mute = Limit(time_s=1.0, beside_s=1.0, factor=1.5)
    assert not any(mute.too_slow(step) for step in slow)


FAST, SLOW = {"LD_LIBRARY_PATH": "/usr/lib/openblas"}, {"LD_LIBRARY_PATH": "/usr/lib/atlas"}
LIBRARIES = {"openblas": FAST, "atlas": SLOW}


def with_libraries(slow=20.0, **more):
    """Return a manifest, and launches in which two libraries took turns before all else."""
    turns = [
        launch(place, "blas", 1024, (slow if env is SLOW else 40.0) + 0.1 * (place // 2), env=env, **more)
        for place, env in enumerate([FAST, SLOW, SLOW, FAST] * 5)
    ]
    # The same setting with what the program found by itself, before the library was chosen.
    early = launch(20, "size", 3072, 5.0)
    later = [msgspec.structs.replace(one, index=21 + place, env=FAST) for place, one in enumerate(launches())]
    return manifest(libraries=LIBRARIES, libraries_left_out={"blis": "a path is built in"}), [
        *turns,
        early,
        *later,
    ]


def test_blas_libraries_are_ranked_by_launches_that_took_turns():
    head, made = with_libraries()
    found = session.conclude(head, made)
    assert [(one.library, one.verdict) for one in found.blas] == [
        ("openblas", "fastest"),
        ("atlas", "slower"),
    ]
    assert found.blas[1].ratio.high < 0.6 and found.library == "openblas"
    # Neither turns nor what came before them are in the model of the time.
    assert found.model == conclude(manifest(), launches()).model
    shown = Console(file=io.StringIO(), width=120)
    print_page(report.build(head, made, found), shown)
    said = shown.file.getvalue()
    assert "BLAS library: openblas, proven" in said and "blis is left out: a path is built in" in said
    assert "BLAS libraries, by HPL at N 1024" in said and "slower" in said
    assert "BLAS libraries, by HPL" in html(report.build(head, made, found))


def test_a_library_with_which_a_launch_failed_is_not_ranked():
    head, made = with_libraries()
    spoilt = [
        msgspec.structs.replace(one, status="failed", gflops=None) if one.index == 3 else one for one in made
    ]
    assert [one.library for one in session.conclude(head, spoilt).blas] == ["atlas"]
    alike, same = with_libraries(slow=40.0)
    assert [one.verdict for one in session.conclude(alike, same).blas] == ["fastest", "no difference"]
    assert session.conclude(manifest(), launches()).blas == []
