"""The reference of a launch, from the probe's line to the trial of a tuning run."""

import msgspec
import pytest

from tests.unit.make_records import PAIR, operation, plan, result, workload
from tests.unit.test_execute import HELLO, launch
from wulf.base.errors import ProbeError
from wulf.base.records import LaunchResult, Reference
from wulf.base.store.columns import launch_rows
from wulf.node.probe import budget, parse
from wulf.node.trials.bench import TrialRunner

LINE = (
    b'{"type":"reference","medians_ns":[[2000.0,2500.0,9000.0],[1600.0,1500.0,1700.0]],"at_us":[100,200,300]}'
)


def reference(near_ns, far_ns, place=PAIR):
    return Reference(place=place, medians_ns=[[near_ns], [far_ns]], at_us=[100])


def with_references(index, *references):
    return msgspec.structs.replace(result(index), references=list(references))


def test_a_line_is_the_medians_of_every_rank():
    found = parse.reference(parse.message(LINE), PAIR)
    assert found.place == PAIR
    assert found.time_s == pytest.approx((2500e-9 * 1600e-9) ** 0.5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"[100,200,300]", b"[100,200]"),
        (b"[100,200,300]", b"[]"),
        (b"1500.0", b"0.0"),
        (b"1500.0", b"-1.0"),
        (b",[1600.0,1500.0,1700.0]", b""),
        (b'"at_us"', b'"ranks":[0,7],"at_us"'),
    ],
)
def test_a_line_that_cannot_be_is_refused(old, new):
    with pytest.raises(ProbeError):
        parse.reference(parse.message(LINE.replace(old, new)), PAIR)


def test_pairs_at_once_have_references_of_their_own():
    four = ("a", "b", "c", "d")
    line = parse.message(LINE.replace(b'"at_us"', b'"ranks":[2,3],"at_us"'))
    assert parse.reference(line, four).place == ("c", "d")
    both = with_references(0, reference(1000, 1000, ("a", "b")), reference(4000, 4000, ("c", "d")))
    assert both.reference_s == pytest.approx(2e-6)


def test_a_launch_stores_its_reference(tmp_path):
    end = '{"type":"end","elapsed_s":1.0}'
    found = launch(tmp_path, f"echo '{HELLO}'; echo '{LINE.decode()}'; echo '{end}'", reference_us=1000)
    assert "--reference-us" in found.launch.argv
    again = msgspec.json.decode(msgspec.json.encode(found), type=LaunchResult)
    assert again.reference_s == pytest.approx(2e-6)
    assert launch_rows([again])[0]["reference_s"] == again.reference_s


def test_a_launch_of_an_old_run_has_none():
    raw = msgspec.to_builtins(result(0))
    del raw["references"]
    assert msgspec.convert(raw, LaunchResult).reference_s is None


def test_the_budget_knows_of_it():
    without, beside = (
        budget.assumed(plan(reference_us=length), "net", [64, 128], 0.1).launch_s([64, 128])
        for length in (0, 1000)
    )
    assert beside - without == pytest.approx(5 * 2 * 2e-3)  # sweeps × sizes, on both sides


def read(*results):
    """What a trial reads whose launches give these results, one after the other."""
    waiting = list(results)
    op = operation()
    runner = TrialRunner(None, None, None, lambda _: waiting.pop(0), [], {op.name: op})  # type: ignore[arg-type]
    pairs = [PAIR, ("node03", "node04")][: len(results)]
    return runner.measure(workload(pairs=pairs, reference_us=1000), [], 1)


def test_a_trial_has_the_mean_of_its_launches():
    found = read(with_references(0, reference(1000, 1000)), with_references(1, reference(4000, 4000)))
    assert found.reference == pytest.approx(2e-6)


def test_a_trial_without_a_reference_has_none():
    assert read(result(0)).reference is None
