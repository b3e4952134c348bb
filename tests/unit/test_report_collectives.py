"""What is shown of collectives: the verdict says whether the file is in effect, the map which algorithm wins where."""

from __future__ import annotations

import re

import msgspec
import pytest

from wulf.base.records import SCHEMA_VERSION, Estimate
from wulf.page.page import html
from wulf.page.pictures import pictures
from wulf.page.terminal import plain, print_page
from wulf.tools.collectives import page as collectives
from wulf.tools.collectives.page import view
from wulf.tools.collectives.record import (
    OWN,
    CollectiveTuning,
    HeldOut,
    HeldOutFailure,
    RuleEffect,
    StruckOut,
    TunedCell,
)


def ratio(value: float, width: float = 0.03) -> Estimate:
    return Estimate(
        value=value,
        low=value - width,
        high=value + width,
        confidence=0.95,
        unit="ratio",
        n=12,
        method="made for a test",
    )


def cell(collective: str, ranks: int, size: int, algorithm: str, value: float, kept: bool) -> TunedCell:
    return TunedCell(
        collective=collective,
        ranks=ranks,
        size_bytes=size,
        algorithm=algorithm,
        segment_bytes=8192 if algorithm == "pipeline" else 0,
        ratio=ratio(value),
        control=ratio(1.0),
        limit=1.04,
        kept=kept,
        reason="" if kept else "not proven to be faster",
    )


FOUND = CollectiveTuning(
    schema_version=SCHEMA_VERSION,
    library="Open MPI 4.1.4",
    format="classic-1",
    nodes=["node01", "node02", "node03", "node04"],
    seed=1,
    cells=[
        cell("bcast", 2, 8, "binomial", 0.99, False),
        cell("bcast", 2, 4096, "basic_linear", 0.81, True),
        cell("bcast", 2, 65536, "pipeline", 0.72, True),
        cell("bcast", 4, 8, "binary_tree", 0.88, True),
        cell("bcast", 4, 4096, "basic_linear", 0.97, False),
        cell("bcast", 4, 65536, "pipeline", 0.65, True),
        cell("allreduce", 4, 8, "recursive_doubling", 1.01, False),
    ],
    struck_out=[StruckOut(collective="bcast", ranks=4, algorithm="chain", reason="wrong data arrived")],
    effects=[
        RuleEffect(
            collective="bcast",
            ranks=4,
            size_bytes=8,
            state="in effect",
            evidence="with the file rank 0 sends 3 messages to 3 ranks, all send 3",
        )
    ],
    held_out=[
        HeldOut(
            collective="bcast",
            ranks=4,
            size_bytes=16384,
            ratio=ratio(0.8),
            control=ratio(1.0),
            limit=1.04,
            ruled=True,
        )
    ],
    mean=ratio(0.85),
    mean_control=ratio(0.99),
    mean_ruled=ratio(0.8),
    mean_ruled_control=ratio(1.02),
    text="1 # collectives\n",
    tried=True,
    path="rules.conf",
    environment={"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"},
    launches=321,
    lasted_s=500.0,
)


def shown(found: CollectiveTuning) -> str:
    return " ".join(plain(lambda console: print_page(collectives.build(found), console)).split())


def test_the_text_says_what_wins_and_that_it_is_in_effect() -> None:
    text = shown(FOUND)
    assert "4 of 7 cells better than the library's own decision; the file is in effect" in text
    assert "pipeline, parts of 8 KiB" in text
    assert re.search(
        r"−15 % \(.*\) in the geometric mean \(95 % interval\); the default against itself: −1", text
    )
    assert re.search(
        r"At the 1 size of them with a rule: −20 % \(.*\); the default against itself: \+2", text
    )
    assert "chain" in text
    assert "export OMPI_MCA_coll_tuned_use_dynamic_rules=1" in text


@pytest.mark.parametrize("state", ["not in effect", "unknown", "alike"])
def test_a_file_without_effect_is_said_to_have_none(state: str) -> None:
    effects = [msgspec.structs.replace(FOUND.effects[0], state=state)]
    found = msgspec.structs.replace(FOUND, effects=effects)
    assert not found.effective
    assert "NOT in effect" in shown(found)


def test_a_slower_size_is_said() -> None:
    slow = msgspec.structs.replace(FOUND.held_out[0], ratio=ratio(1.2))
    found = msgspec.structs.replace(FOUND, held_out=[slow])
    assert found.slower == [slow]
    assert "slower at some intermediate sizes" in shown(found)


def test_a_file_that_was_not_judged_is_said() -> None:
    found = msgspec.structs.replace(FOUND, held_out=[], mean=None)
    assert "no intermediate size was measured" in shown(found)


@pytest.mark.parametrize(
    ("failure", "verdict", "line"),
    [
        (
            HeldOutFailure(
                collective="bcast", ranks=4, with_file=1, judged=True, reason="wrong data arrived"
            ),
            "launches with it FAIL",
            "1 launch with the file failed: wrong data arrived",
        ),
        (
            HeldOutFailure(collective="bcast", ranks=4, without_file=16, judged=False, reason="it hung"),
            "not all intermediate sizes could be judged",
            "16 launches without the file failed, it is not judged: it hung",
        ),
    ],
)
def test_held_out_sizes_that_fail_are_said(failure: HeldOutFailure, verdict: str, line: str) -> None:
    found = msgspec.structs.replace(FOUND, held_out_failures=[failure])
    assert found.unjudged == [failure]
    assert verdict in shown(found)
    assert line in shown(found)


def test_a_file_that_was_not_tried_is_said() -> None:
    assert "not tried" in shown(msgspec.structs.replace(FOUND, tried=False, effects=[]))


def test_collectives_that_are_missing_are_said() -> None:
    dropped = msgspec.structs.replace(FOUND, dropped={"reduce": "Segmentation fault"})
    assert "collectives are missing" in shown(dropped)
    assert "reduce is left out of the file: Segmentation fault" in shown(dropped)
    own = StruckOut(collective="reduce", ranks=4, algorithm=OWN, reason="it hung")
    missed = msgspec.structs.replace(FOUND, struck_out=[own])
    assert missed.not_searched == [own]
    assert "reduce of 4 ranks was not searched to the end" in shown(missed)


def test_cells_without_enough_launches_are_said() -> None:
    short = [msgspec.structs.replace(one, judged=False, kept=False, reason="3 blocks") for one in FOUND.cells]
    some = shown(msgspec.structs.replace(FOUND, cells=[*FOUND.cells[:4], *short[4:]]))
    assert "there was no time for all cells" in some
    assert (
        "3 of 7 cells cannot be judged, as there was no time to launch all algorithms often enough: give more"
        in some
    )
    none = shown(msgspec.structs.replace(FOUND, cells=short, text="", effects=[], held_out=[], path=""))
    assert "Cannot tell whether anything is better" in none
    assert "Nothing is proven" not in none


def test_nothing_better_is_said() -> None:
    found = msgspec.structs.replace(FOUND, text="", path="", effects=[], held_out=[], mean=None)
    assert "Nothing is proven to be better" in shown(found)
    refused = msgspec.structs.replace(found, refused="bcast of 4 ranks: Segmentation fault")
    assert "Segmentation fault" in shown(refused)


def test_the_map_has_a_field_for_every_size_and_number_of_ranks() -> None:
    bcast, allreduce = view.build(FOUND).figures
    main = bcast.variants[0].datasets["main"]
    assert list(zip(main["ranks"], main["size"], main["wins"], strict=True))[:3] == [
        ("2", "8 B", view.DEFAULT),
        ("2", "4 KiB", "basic_linear"),
        ("2", "64 KiB", "pipeline, parts of 8 KiB"),
    ]
    assert main["gain"][2] == "−28 %"
    (_, drawn), *_ = pictures([("bcast", bcast)], "svg")
    assert b"basic_linear" in drawn
    assert set(allreduce.variants[0].datasets["main"]["wins"]) == {view.DEFAULT}


def test_the_page_needs_nothing_else() -> None:
    page = html(collectives.build(FOUND))
    assert "Which algorithm wins where" in page
    assert "http://" not in page.replace("http://www.w3.org", "").split("<script")[0]


def test_the_record_is_read_as_it_was_written() -> None:
    assert msgspec.json.decode(msgspec.json.encode(FOUND), type=CollectiveTuning) == FOUND
