"""Where ranks stand in the picture of a pattern, and what it says of who sends to whom."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import msgspec
import pytest

from wulf.base.records.emulated import EmulatedPattern
from wulf.node.cluster import inventory
from wulf.node.replay import patterns
from wulf.page.drawing import narrow, spec
from wulf.tools.emulate import work
from wulf.tools.emulate.request import EmulateRequest
from wulf.tools.measure.page import pattern_figures
from wulf.tools.measure.page.pattern_layout import around, places


def performed(tmp_path: Path, source: str, ranks: int) -> EmulatedPattern:
    config = inventory.local()
    request = EmulateRequest(source, config, ranks=ranks)
    with work._prepared(request) as (_, pattern):
        return pattern


@pytest.mark.parametrize("name", patterns.gallery())
@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_no_rank_stands_on_another(tmp_path: Path, name: str, ranks: int) -> None:
    for program in few_iterations(tmp_path, name, ranks).programs:
        points = places(program)
        assert len(points) == len(program.ranks)
        closest = min((math.dist(*two) for two in itertools.combinations(points, 2)), default=1.0)
        assert closest > 0.15, (name, program.layout)


def few_iterations(tmp_path: Path, name: str, ranks: int) -> EmulatedPattern:
    file = tmp_path / f"{name}.toml"
    lines = patterns.named(name).splitlines()
    file.write_text("\n".join("iterations = 1" if line.startswith("iterations") else line for line in lines))
    return performed(tmp_path, str(file), ranks)


def test_what_leaves_a_mesh_comes_in_at_its_other_side(tmp_path: Path) -> None:
    (torus,) = few_iterations(tmp_path, "halo-2d", 16).programs
    assert torus.dims == [4, 4]
    assert around(torus, 0, 1) is None and around(torus, 0, 5) is None
    assert around(torus, 0, 3) == (-1.0, 0.0) and around(torus, 3, 0) == (1.0, 0.0)
    assert around(torus, 0, 12) == (0.0, 1.0)
    (ladder,) = few_iterations(tmp_path, "halo-2d", 8).programs
    assert ladder.dims == [4, 2]
    # It lies, so that its long side goes across; of two ranks in a direction none is around the other.
    assert around(ladder, 0, 6) == (-1.0, 0.0) and around(ladder, 0, 1) is None


def test_a_picture_counts_what_the_pattern_sends(tmp_path: Path) -> None:
    pattern = few_iterations(tmp_path, "two-programs", 8)
    figure = pattern_figures.picture(pattern)
    assert figure is not None
    main = figure.variants[0].datasets["main"]
    assert sum(main["messages"]) == pattern.messages == 4 * 4 + 4 * 3
    assert sum(main["bytes"]) == pattern.bytes == 16 * 8192 + 12 * 262144
    assert set(main["program"]) == {"halo", "stream"}
    assert "8 KiB to 256 KiB" in figure.variants[0].caption
    for drawn in (spec(figure), narrow(figure)):
        assert drawn is not None and drawn["height"] > 50


def test_arrows_are_for_what_goes_one_way(tmp_path: Path) -> None:
    for name, arrows in (("token-ring", 8), ("pipeline", 7), ("halo-1d", 0)):
        figure = pattern_figures.picture(few_iterations(tmp_path, name, 8))
        assert figure is not None and len(figure.variants[0].datasets["arrows"]["x"]) == arrows, name


def test_too_many_edges_are_not_drawn(tmp_path: Path) -> None:
    pattern = msgspec.structs.replace(few_iterations(tmp_path, "all-to-all", 4), edges=None)
    assert pattern_figures.picture(pattern) is None
