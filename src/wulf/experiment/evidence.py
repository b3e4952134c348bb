"""What all trials so far say of settings: one robust linear model of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wulf.experiment.costs import Costs
from wulf.records import Trial, Values
from wulf.stats.linear import Contrast, Fit, SingularError, fit

Floats = NDArray[np.float64]
#: Knob and value.
Arm = tuple[str, str]
#: Two arms whose effects do not add up.
Joint = frozenset[Arm]

#: A covariate is used where so many trials have it, and so many have it not.
FEW = 3
#: Standard errors from zero beyond which a trial is said to resemble the one before.
RESEMBLING = 2.0
#: Trials for each cause beyond which all causes are fitted at once.
ROOMY = 1.8
#: Standard errors beyond which an arm is taken into the model of the others where there is no room for all.
STRONG = 2.5
#: Column of the objective.
OBJECTIVE = (0,)
#: Trials from which it can be told whether an arm moves the reference.
ENOUGH = 8
#: p value at which an arm is said to move the reference.
MOVES = 0.01


@dataclass(frozen=True)
class Row:
    """A trial that gave a value."""

    index: int
    setting: Values
    #: Log costs: the objective, then every metric. Shape (1 + metrics,).
    costs: Floats
    #: Log time of the node-local reference; NaN where there was none.
    reference: float
    contaminated: bool
    #: Whether it belongs to the confirmation.
    fresh: bool


@dataclass(frozen=True)
class Series:
    """A fit of trials in time order, of which each may resemble the one before."""

    fit: Fit
    #: What a trial has of the one before, shape (n,).
    share: Floats

    def addition(self, cause: Floats) -> Contrast:
        """Effect of one more cause. Shape (n,)."""
        return self.fit.addition(_innovations(cause[:, None], self.share)[:, 0])


@dataclass(frozen=True)
class Model:
    """Effects of arms on one figure, in logarithms."""

    #: With the reference as a covariate, and without; the same where there is none.
    adjusted: Series
    plain: Series
    columns: Mapping[Arm | Joint, int]
    #: Arms that move the reference themselves: a figure that is adjusted by it hides what they do.
    local: frozenset[Arm]
    #: Trials that it is made of.
    rows: Sequence[Row]
    #: Column of what is added to trials of the confirmation under the confirmed setting; 0 where there are none.
    fresh: int = 0

    @property
    def scale(self) -> float:
        """Scatter of a trial, as a difference of logarithms."""
        return self.adjusted.fit.scale

    def contrast(self, tried: Values, base: Values) -> Contrast:
        """Effect of one setting against another, as a difference of log costs."""
        return self._read(self._row(tried) - self._row(base), touched(tried, base))

    def confirmed(self, tried: Values) -> Contrast:
        """Effect of the confirmed setting against the original, from the trials of the confirmation alone."""
        weights = np.zeros(1 + self.fresh)
        weights[self.fresh] = 1.0
        return self._read(weights, touched(tried, {}))

    def effect(self, setting: Values) -> float:
        """Effect of a setting against the original."""
        return self.contrast(setting, {}).value

    def addition(self, key: Arm | Joint) -> Contrast:
        """Effect of one more arm, or of what a pair does beyond its parts."""
        chosen = self.plain if self.local & _arms(key) else self.adjusted
        return chosen.addition(_column(self.rows, key))

    def _read(self, weights: Floats, arms: frozenset[Arm]) -> Contrast:
        chosen = (self.plain if arms & self.local else self.adjusted).fit
        # Covariates are the last columns.
        return chosen.contrast(np.pad(weights, (0, len(chosen.coefficients) - len(weights))))

    def _row(self, setting: Values) -> Floats:
        row = np.zeros(1 + len(self.columns))
        for key, column in self.columns.items():
            row[column] = _has(setting, key)
        return row


def touched(first: Values, second: Values) -> frozenset[Arm]:
    """Arms of either setting that the other one does not have."""
    return frozenset(set(first.items()) ^ set(second.items()))


class Evidence:
    """Trials in time order."""

    def __init__(self, costs: Costs, local: frozenset[str] = frozenset()) -> None:
        self.costs = costs
        self.rows: list[Row] = []
        #: Knobs that change what a node does by itself.
        self._local = local
        #: Number of trials, and the arms that moved the reference in them.
        self._moved: tuple[int, frozenset[Arm]] = (0, frozenset())

    def take(self, trial: Trial) -> bool:
        """Take a trial; return whether it has an objective."""
        if trial.status != "ok":
            return False
        costs = self.costs.of(trial)
        if not math.isfinite(costs[0]):
            return False
        reference = trial.reference
        self.rows.append(
            Row(
                index=trial.index,
                setting=trial.setting,
                costs=costs,
                reference=math.log(reference) if reference else math.nan,
                contaminated=bool(trial.contamination),
                fresh=trial.phase == "confirmation",
            )
        )
        return True

    def _rows(self, figure: Sequence[int] = OBJECTIVE, confirming: Values | None = None) -> list[Row]:
        fresh = [] if confirming is None else [confirming, {}]
        return [
            row
            for row in self.rows
            if (not row.fresh or row.setting in fresh)
            and all(math.isfinite(row.costs[column]) for column in figure)
        ]

    def count(self, arm: Arm) -> int:
        """Trials of the search in which an arm was set."""
        return sum(_has(row.setting, arm) for row in self._rows())

    def counts(self, setting: Values, *, fresh: bool) -> tuple[int, int]:
        """Trials, of the search or of the confirmation, in which all of a setting was set, and in which it was not."""
        rows = [row for row in self.rows if row.fresh == fresh]
        having = sum(all(_has(row.setting, arm) for arm in setting.items()) for row in rows)
        return having, len(rows) - having

    def model(
        self,
        arms: Sequence[Arm],
        joints: Sequence[Joint] = (),
        figure: Sequence[int] = OBJECTIVE,
        confirming: Values | None = None,
    ) -> Model | None:
        """Fit a figure by arms and pairs of them; None where the trials cannot tell them apart.

        Parameters
        ----------
        figure
            Columns of the log costs whose mean it is.
        confirming
            The setting that the confirmation compares with the original: its effect there is then a cause of its
            own, so that only the scatter is taken from the other trials. Without it the trials of the confirmation
            are left out.
        """
        rows = self._rows(figure, confirming)
        if not rows:
            return None
        causes, columns, fresh = _causes(rows, arms, joints, confirming)
        values = np.array([float(np.mean(row.costs[list(figure)])) for row in rows])
        reference = np.array([row.reference for row in rows])
        local = self._moving() & set(arms)
        try:
            if not _varies(reference):
                plain = _fit(rows, causes, values)
                return Model(plain, plain, columns, frozenset(), rows, fresh)
            adjusted = _fit(rows, np.column_stack([causes, reference - np.median(reference)]), values)
            plain = _fit(rows, causes, values) if local else adjusted
        except SingularError:
            return None
        return Model(adjusted, plain, columns, frozenset(local), rows, fresh)

    def screen(self, arms: Sequence[Arm], figure: Sequence[int] = OBJECTIVE) -> dict[Arm, Contrast]:
        """Effect of every arm alone, the others taken out of the scatter as far as the number of trials allows."""
        trials = len(self._rows(figure))
        known = [arm for arm in arms if 0 < self.count(arm) < trials]
        whole = self.model(known, (), figure) if trials >= ROOMY * (len(known) + 3) else None
        if whole is not None:
            return {arm: whole.contrast(dict([arm]), {}) for arm in known}
        chosen: list[Arm] = []
        found: dict[Arm, Contrast] = {}
        # Where there is no room for all, the strong ones explain what they can.
        while (model := self.model(chosen, (), figure)) is not None:
            found = {
                arm: model.contrast(dict([arm]), {}) if arm in chosen else model.addition(arm)
                for arm in known
            }
            rest = {arm: one for arm, one in found.items() if arm not in chosen}
            strongest = max(rest, key=lambda arm: abs(rest[arm].t), default=None)
            if strongest is None or abs(rest[strongest].t) < STRONG or len(chosen) + 1 > trials / 4:
                break
            chosen.append(strongest)
        return found

    def _moving(self) -> frozenset[Arm]:
        """Arms that move the reference."""
        rows = self._rows()
        if self._moved[0] != len(rows):
            self._moved = len(rows), self._find_moving(rows)
        return self._moved[1]

    def _find_moving(self, rows: Sequence[Row]) -> frozenset[Arm]:
        arms = list({arm: None for row in rows for arm in row.setting.items()})
        named = frozenset(arm for arm in arms if arm[0] in self._local)
        reference = np.array([row.reference for row in rows])
        if not _varies(reference) or len(rows) < ENOUGH:
            return named
        base = _fit(rows, np.ones((len(rows), 1)), reference)
        return named | {arm for arm in arms if base.addition(_column(rows, arm)).p_value() < MOVES}


def _causes(
    rows: Sequence[Row], arms: Sequence[Arm], joints: Sequence[Joint], confirming: Values | None
) -> tuple[Floats, dict[Arm | Joint, int], int]:
    """Return the columns of the model, which of them is which, and that of the confirmed setting."""
    causes = [np.ones(len(rows))]
    columns: dict[Arm | Joint, int] = {}
    fresh = np.array([confirming is not None and row.fresh for row in rows], dtype=float)
    keys: list[Arm | Joint] = [*arms, *joints]
    for key in keys:
        columns[key] = len(causes)
        causes.append((1 - fresh) * _column(rows, key))
    if confirming is not None:
        causes.append(fresh * np.array([row.setting == confirming for row in rows]))
        confirmed = len(causes) - 1
        causes.append(fresh)
    else:
        confirmed = 0
    suspect = np.array([row.contaminated for row in rows], dtype=float)
    if FEW <= suspect.sum() <= len(rows) - FEW:
        causes.append(suspect)
    return np.column_stack(causes), columns, confirmed


def _fit(rows: Sequence[Row], causes: Floats, values: Floats) -> Series:
    """Fit; where a trial resembles the one before, what it has of that one is taken out first.

    Cochrane and Orcutt (1949), JASA 44, 32–61, with the first trial kept as Prais and Winsten do.
    """
    found = fit(causes, values)
    resemblance = found.lag_one()
    if resemblance * math.sqrt(found.degrees) < RESEMBLING:
        return Series(found, np.zeros(len(rows)))
    gaps = np.diff([row.index for row in rows])
    share = np.concatenate([[0.0], resemblance**gaps])
    return Series(fit(_innovations(causes, share), _innovations(values[:, None], share)[:, 0]), share)


def _innovations(columns: Floats, share: Floats) -> Floats:
    """Return what is new in each row, scaled to the same scatter. Shape (n, columns)."""
    before = np.concatenate([columns[:1], columns[:-1]])
    return np.asarray((columns - share[:, None] * before) / np.sqrt(1 - share[:, None] ** 2))


def _column(rows: Sequence[Row], key: Arm | Joint) -> Floats:
    return np.array([_has(row.setting, key) for row in rows], dtype=float)


def _arms(key: Arm | Joint) -> frozenset[Arm]:
    return key if isinstance(key, frozenset) else frozenset([key])


def _varies(reference: Floats) -> bool:
    return bool(reference.size) and bool(np.all(np.isfinite(reference))) and float(np.ptp(reference)) > 0


def _has(setting: Values, key: Arm | Joint) -> bool:
    if isinstance(key, tuple):  # most often by far, and for every trial at every step
        knob, value = key
        return setting.get(knob) == value
    return all(setting.get(knob) == value for knob, value in key)
