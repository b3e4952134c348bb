"""How much latency and bandwidth a program bears, against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.unit.predict_fixture import prediction
from wulf.base.records import BandwidthPoint, CurveLine
from wulf.stats.prediction import curves, words
from wulf.stats.prediction.network import Link, Network, Piece
from wulf.tools.predict.page import figures, view

EACH_NS, LATENCY_NS, WHOLE_S, ON_WIRE_S = 8.0, 20_000.0, 10.0, 2.0


def base(each=EACH_NS):
    link = Link(LATENCY_NS, 65536, (Piece(0, 0, 0),), (Piece(0, 0, 0),), (Piece(0, 0, each),))
    return Network(link, None)


def times(one):
    """Of a program that has 8 s besides its 2 s on the wire."""
    return [WHOLE_S - ON_WIRE_S + ON_WIRE_S * other.between.wire[0].per_byte_ns / EACH_NS for other in one]


def test_bandwidth_that_is_borne_is_that_of_the_formula():
    curve = curves.by_bandwidth(base(), times(curves.with_bandwidths(base())))
    assert [one.factor for one in curve] == sorted(curves.FACTORS)
    assert curve[0].bandwidth == pytest.approx(1e9 / EACH_NS / 16)
    sampled = [base(EACH_NS * factor) for factor in (0.9, 1.1)]
    found = curves.needs(curve, base(), sampled, np.array([WHOLE_S, WHOLE_S, WHOLE_S]))
    for need in found:
        # 2 s grow by so much of 10 s.
        slower = 1 + need.slower * WHOLE_S / ON_WIRE_S
        assert need.bandwidth.value == pytest.approx(1e9 / EACH_NS / slower)
        assert need.bandwidth.low < need.bandwidth.value < need.bandwidth.high


def test_what_is_borne_is_never_said_to_be_more_than_it_is():
    """Between places of the grid the time is convex: here it bends in the middle of two of them."""
    bend = 1.2

    def time(factor):
        return 10 + max(0.0, 1 / factor - bend) * 5

    curve = [BandwidthPoint(factor=f, bandwidth=f * 1e8, time_s=time(f)) for f in curves.FACTORS]
    for need in curves.needs(curve, base(10.0), [base(10.0)], np.array([10.0, 10.0])):
        truth = 1e8 / (bend + need.slower * 10 / 5)
        assert need.bandwidth.value >= truth


def test_where_more_bytes_take_no_time_there_is_no_curve():
    free = base(0.0)
    assert curves.with_bandwidths(free) == []
    assert curves.by_bandwidth(free, []) == []
    assert curves.needs([], free, [], np.array([1.0])) == []


def test_a_program_that_bears_all_that_was_looked_at():
    flat = curves.by_bandwidth(base(), [1.0 for _ in curves.FACTORS])
    found = curves.needs(flat, base(), [base()], np.array([1.0, 1.0]))
    assert [one.bandwidth for one in found] == [None] * 3
    assert found[0].below == flat[0].bandwidth
    line = [CurveLine(latency_s=0.0, time_s=1.0, hops=0)]
    assert [one.latency for one in curves.tolerances(line, 1e-3, base(), [base()], np.array([1.0, 1.0]))] == [
        None
    ] * 3


def told(**changes):
    return list(words.conclusion(replace(prediction(), **changes)))


def verdict(one, said, change):
    return replace(one, verdict=said, change=replace(one.change, value=change, low=change, high=change))


def test_the_answer_comes_first():
    of = prediction()
    assert told()[0].startswith("A faster network helps: on 25gbe-roce the program takes ")
    assert "−30 %" in told()[0]
    none = [verdict(one, "no difference", 1.0) for one in of.scenarios]
    assert told(scenarios=none)[0].startswith("None of the networks asked about helps this program: the best")
    bound = verdict(of.bound, "no difference", 0.995)
    assert told(scenarios=none, bound=bound)[0].startswith("Do not buy a network for this program")
    unsure = [verdict(one, "cannot be told", 0.97) for one in of.scenarios]
    assert told(scenarios=unsure)[0].startswith("Cannot tell whether another network helps: on ")


def test_what_no_network_exceeds_and_what_is_not_answered_is_said():
    said = told(refused={"latency=x4": "latency=x4 is not answered: RUN does not tell the latency"})
    assert said[1] == "latency=x4 is not answered: RUN does not tell the latency."
    assert any("No network brings more than −38 %" in line for line in said)
    nothing = told(own_s=1.0, gap=replace(prediction().base.change, value=0.3, low=0.2, high=0.4))
    assert nothing[0].startswith("Cannot tell what another network does to this program: ")


def test_nothing_firm_is_said_of_parameters_that_the_calibration_does_not_tell():
    of = prediction()
    why = {"latency": "RUN does not tell the latency", "bandwidth": "RUN does not tell the bandwidth"}
    unknown = replace(of, not_told=why)

    def shown(found):
        tables = (view._tolerance(found), view._needs(found))
        return [table.rows[0][1].text for table in tables], [table.note for table in tables]

    now, notes = shown(of)
    assert "not told" not in now and not any("not told" in note for note in notes)
    now, notes = shown(unknown)
    assert now == ["not told"] * 2 and "What it is now is not told" in notes[0]
    assert (
        "does not tell" not in view._paths(of).note and "does not tell latency" in view._paths(unknown).note
    )
    for chart in (figures.curve, figures.by_bandwidth):
        labels = [chart(one).variants[0].datasets["marks"]["label"] for one in (of, unknown)]
        assert "now" in labels[0] and "now" not in labels[1]
    (path,) = (line for line in words.conclusion(unknown) if line.startswith("On the longest path"))
    assert "the calibration does not tell apart" in path and path.count("% latency") == 1
    none = [verdict(one, "no difference", 1.0) for one in of.scenarios]
    # Of a network that is not answered for nobody says that it does not help.
    assert told(scenarios=none, refused={"latency=x0.5": "not answered"})[0].startswith(
        "None of those networks asked about that can be told helps this program"
    )
