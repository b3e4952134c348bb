"""Whether the figures of a tuning run hold is only said where a loss that matters would have been seen."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from wulf.base.errors import AnalysisError
from wulf.base.records import Estimate
from wulf.face.cli.verification import Verification
from wulf.face.cli.verify import _answer, _figures
from wulf.tools.tune import verify


def figures(spread, factor=1.0, smallest=0.03):
    rng = np.random.default_rng(3)
    base, now = (list(np.exp(spread * rng.standard_normal(10))) for _ in range(2))
    against = verify.ratio(base, [factor * one for one in now])
    return verify.Figures(
        against_kept=against,
        against_original=against,
        smallest_effect=smallest,
        costs=now,
        holds=against.low <= 1 + smallest,
        visible=verify._visible(against, smallest),
    )


def told(found):
    return _answer(Verification(settings=[], figures=found, holds=found.holds))


def test_quiet_figures_hold():
    found = figures(0.02)
    assert found.holds and not found.untold
    assert 0.03 < found.visible < 0.1
    assert told(found) == "everything holds"


def test_a_loss_does_not_hold_however_much_is_seen():
    found = figures(0.02, 1.3)
    assert not found.holds and not found.untold
    assert told(found).startswith("not everything holds")


def test_wild_figures_cannot_be_told():
    found = figures(0.8)
    assert found.holds and found.untold
    assert told(found).startswith("cannot tell whether the figures hold: only a loss of +")


@pytest.mark.parametrize("low", [None, 0.0, 1e-320])
def test_without_an_interval_nothing_is_seen(low):
    one = Estimate(value=1.0, low=low, high=math.inf, confidence=0.95, unit="ratio", n=1, method="x")
    assert verify._visible(one, 0.03) is None


def test_without_figures_that_is_said():
    found = Verification(settings=[], figures=None, holds=True)
    assert _answer(found) == "everything holds (no figures were measured)"


def test_the_latest_search_that_kept_nothing_leaves_values_and_files_to_be_verified(
    tmp_path, monkeypatch, capsys
):
    nothing = SimpleNamespace(path=tmp_path, result=SimpleNamespace(confirmation=None, control=None))
    monkeypatch.setattr("wulf.base.store.runs.list_runs", lambda *_: [tmp_path])
    monkeypatch.setattr("wulf.base.store.find_run", lambda *_: tmp_path)
    monkeypatch.setattr("wulf.base.store.tuning.load_tuning", lambda _: nothing)
    assert _figures("latest", tmp_path) is None
    assert "values and files are verified, no figures" in capsys.readouterr().err.replace("\n", " ")
    with pytest.raises(AnalysisError, match="without a RUN"):
        verify.measure(nothing, None, None)
