"""What all trials so far say of settings: one robust linear model of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.base.records import Trial, Values
from wulf.node.trials.experiment.costs import Costs
from wulf.stats.core.linear import Contrast, Fit, SingularError, fit, least_squares

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
#: Trials from which it can be told whether what was set before matters, and the p value of it over all arms.
CARRYING, CARRIED = 24, 0.002
#: p value at which the trials of the confirmation are said to scatter more than those of the search.
STORMY = 0.1
#: Column of the objective.
OBJECTIVE = (0,)
#: Trials from which it can be told whether an arm moves the reference.
ENOUGH = 8
#: p value at which an arm is said to move the reference.
MOVES = 0.01
#: One-sided chance at which a gain has to show where every trial counts in full.
AGREED = 0.05
#: Share of an adjusted gain that the figure without the reference has to show in the end, and before it is confirmed;
#: and the one-sided chance at which it is called clear.
HALF, PLAINLY = 0.5, 0.25
UNCLEAR = 0.1
#: Differences within launches are weighed so often, each time at most so many times more or less than before.
_WEIGHINGS, _MOST = 3, 30.0


@dataclass(frozen=True, eq=False)
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
    #: The setting that was measured in turn with it within the same launches: the row is then the difference to that
    #: one, which knows nothing of the level.
    other: Values | None = None
    #: What `level` has found so far: it is asked for every arm in every model.
    _levels: dict[Arm | Joint, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def settings(self) -> tuple[Values, ...]:
        """Settings that were measured."""
        return (self.setting,) if self.other is None else (self.setting, self.other)

    def level(self, key: Arm | Joint) -> float:
        """How often an arm or a pair of them is in what the row is the value of: 0 or 1, or −1 in a difference."""
        found = self._levels.get(key)
        if found is None:
            found = float(_has(self.setting, key)) - float(self.other is not None and _has(self.other, key))
            self._levels[key] = found
        return found


class Rows(list[Row]):
    """Trials that are asked for together again and again, with the columns that they have given."""

    def __init__(self, rows: Iterable[Row]) -> None:
        super().__init__(rows)
        self.columns: dict[Arm | Joint, Floats] = {}
        #: 1 for a trial and 0 for a difference, which has no level. Shape (n,).
        self.levels = np.array([float(row.other is None) for row in self])

    def column(self, key: Arm | Joint) -> Floats:
        """Return how often an arm or a pair of them is in each row. Shape (n,)."""
        found = self.columns.get(key)
        if found is None:
            found = self.columns[key] = np.array([row.level(key) for row in self])
        return found


@dataclass(frozen=True)
class Series:
    """A fit of trials in time order, of which each may resemble the one before."""

    fit: Fit
    #: What a trial has of the one before, shape (n,).
    share: Floats
    #: How many times less than trials differences within launches scatter, shape (n,); 1 for trials.
    weights: Floats
    #: Of the same rows, every trial counted in full.
    whole: Callable[[], Fit]

    def addition(self, cause: Floats) -> Contrast:
        """Effect of one more cause. Shape (n,)."""
        return self.fit.addition(_innovations((self.weights * cause)[:, None], self.share)[:, 0])


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
    rows: Rows
    #: Column of what is added to trials of the confirmation under the confirmed setting; 0 where there are none.
    fresh: int = 0
    #: Fits without the reference.
    unadjusted: Callable[[], Series] | None = None

    @property
    def scale(self) -> float:
        """Scatter of a trial, as a difference of logarithms."""
        return self.adjusted.fit.scale

    @property
    def within_scale(self) -> float | None:
        """The same of one of two trials that share their launches; None where there are none."""
        apart = self.adjusted.weights[self.rows.levels == 0]
        return self.scale / float(apart[0]) / math.sqrt(2) if apart.size else None

    def contrast(self, tried: Values, base: Values) -> Contrast:
        """Effect of one setting against another, as a difference of log costs."""
        return self._read(self._series(touched(tried, base)).fit, self._row(tried) - self._row(base))

    def agrees(self, tried: Values, base: Values, nearer: float) -> bool:
        """Whether a gain is also one where every trial counts in full, and where the reference is left out.

        Huber's fit takes trials that go badly because of a setting for outliers, and a reference that a setting slows
        makes a gain of nothing.

        Parameters
        ----------
        nearer
            Share of the adjusted gain that the figure without the reference has to show. Of half of it both are
            equally likely: that the setting helps, and that it slows the reference.
        """
        whole = self._read(self._series(touched(tried, base)).whole(), self._row(tried) - self._row(base))
        if whole.value >= 0 or whole.p_value() / 2 > AGREED:
            return False
        raw = self._raw(tried, base)
        return raw is None or raw.value <= nearer * self.contrast(tried, base).value

    def is_clear(self, tried: Values, base: Values) -> bool:
        """Whether more trials would hardly change what `agrees` says of the reference."""
        raw = self._raw(tried, base)
        if raw is None:
            return True
        half = HALF * self.contrast(tried, base).value
        return raw.upper(UNCLEAR) <= half or raw.lower(UNCLEAR) >= half

    def _raw(self, tried: Values, base: Values) -> Contrast | None:
        """Return an effect without the reference; None where that has no part in it."""
        if self.unadjusted is None or touched(tried, base) & self.local:
            return None
        return self._read(self.unadjusted().fit, self._row(tried) - self._row(base))

    def confirmed(self, tried: Values) -> Contrast:
        """Effect of the confirmed setting against the original, from the trials of the confirmation alone."""
        weights = np.zeros(1 + self.fresh)
        weights[self.fresh] = 1.0
        chosen = self._series(touched(tried, {})).fit
        found = self._read(chosen, weights)
        part = np.array([row.fresh for row in self.rows])
        if part.sum() <= FEW:
            return found
        # Calm trials of the search say nothing of a storm in which it is confirmed.
        louder, degrees = chosen.scatter(part) / chosen.scale, int(part.sum()) - 2
        stormy = scipy.stats.f.sf(louder**2, degrees, found.degrees) < STORMY
        return found.scattered(max(louder, 1.0), degrees if stormy else found.degrees)

    def effect(self, setting: Values) -> float:
        """Effect of a setting against the original."""
        return self.contrast(setting, {}).value

    def addition(self, key: Arm | Joint) -> Contrast:
        """Effect of one more arm, or of what a pair does beyond its parts."""
        chosen = self.plain if self.local & _arms(key) else self.adjusted
        return chosen.addition(self.rows.column(key))

    def _series(self, arms: frozenset[Arm]) -> Series:
        return self.plain if arms & self.local else self.adjusted

    def _read(self, chosen: Fit, weights: Floats) -> Contrast:
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
        #: How often it was begun anew.
        self.begun = 0
        #: The first of two trials that share their launches.
        self._first: Row | None = None
        #: Knobs that change what a node does by itself.
        self._local = local
        #: Number of trials, and the arms that moved the reference in them.
        self._moved: tuple[int, frozenset[Arm]] = (0, frozenset())
        #: Number of rows, and in how many of the search each arm was set.
        self._counted: tuple[int, Counter[Arm]] = (0, Counter())
        #: Number of rows, and those that were asked for: by figure, confirmed setting, and whether all are.
        self._selected: tuple[int, dict[tuple[tuple[int, ...], frozenset[Arm] | None, bool], Rows]] = (0, {})

    def take(self, trial: Trial) -> bool:
        """Take a trial; return whether it has an objective."""
        if trial.status != "ok":
            return False
        costs = self.costs.of(trial)
        if not math.isfinite(costs[0]):
            return False
        reference = trial.reference
        row = Row(
            index=trial.index,
            setting=trial.setting,
            costs=costs,
            reference=math.log(reference) if reference else math.nan,
            contaminated=bool(trial.contamination),
            fresh=trial.phase == "confirmation",
        )
        if trial.within is None:
            self.rows.append(row)
        elif trial.within == trial.index:
            self._first = row
        elif self._first is not None and self._first.index == trial.within:
            self.rows.append(_difference(self._first, row))
        return True

    def _rows(
        self, figure: Sequence[int] = OBJECTIVE, confirming: Values | None = None, *, every: bool = False
    ) -> Rows:
        if self._selected[0] != len(self.rows):
            self._selected = len(self.rows), {}
        tried = None if confirming is None else frozenset(confirming.items())
        found = self._selected[1].get((tuple(figure), tried, every))
        if found is None:
            fresh = [] if confirming is None else [confirming, {}]
            found = self._selected[1][tuple(figure), tried, every] = Rows(
                row
                for row in self.rows
                if (every or not row.fresh or all(setting in fresh for setting in row.settings))
                and all(math.isfinite(row.costs[column]) for column in figure)
            )
        return found

    def count(self, arm: Arm) -> int:
        """Trials of the search in which an arm was set."""
        if self._counted[0] != len(self.rows):
            found = Counter(arm for row in self._rows() for arm in _changed(row))
            self._counted = len(self.rows), found
        return self._counted[1][arm]

    def counts(self, setting: Values, *, fresh: bool) -> tuple[int, int]:
        """Trials, of the search or of the confirmation, in which all of a setting was set, and in which it was not."""
        made = [one for row in self.rows if row.fresh == fresh for one in row.settings]
        having = sum(all(_has(one, arm) for arm in setting.items()) for one in made)
        return having, len(made) - having

    def model(
        self,
        arms: Sequence[Arm],
        joints: Sequence[Joint] = (),
        figure: Sequence[int] = OBJECTIVE,
        confirming: Values | None = None,
        *,
        every: bool = False,
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
        every
            Whether the trials of the confirmation count as those of the search do.
        """
        rows = self._rows(figure, confirming, every=every)
        if not rows:
            return None
        causes, columns, fresh = _causes(rows, arms, joints, confirming)
        values = np.array([float(np.mean(row.costs[list(figure)])) for row in rows])
        covariates = _covariates(rows)
        local = self._moving() & set(arms)
        try:
            if not covariates:
                plain = _fit(rows, causes, values)
                return Model(plain, plain, columns, frozenset(), rows, fresh)
            adjusted = _fit(rows, np.column_stack([causes, *covariates]), values)
            unadjusted = cache(partial(_fit, rows, causes, values))
            plain = unadjusted() if local else adjusted
        except SingularError:
            return None
        return Model(adjusted, plain, columns, frozenset(local), rows, fresh, unadjusted)

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

    def carried(self, arms: Sequence[Arm]) -> list[Arm]:
        """Return the arms whose effect comes late, or stays: a trial shows which were set in the one before it."""
        model = self.model(arms) or self.model([])
        if model is None or len(model.rows) < CARRYING:
            return []
        before = [None, *model.rows[:-1]]
        follows = [
            last is not None and last.index + 1 == row.index and row.other is None is last.other
            for last, row in zip(before, model.rows, strict=True)
        ]
        found = []
        for arm in arms:
            column = np.array(
                [
                    last.level(arm) if last is not None and after else 0.0
                    for last, after in zip(before, follows, strict=True)
                ]
            )
            if 0 < column.sum() < sum(follows) and model.adjusted.addition(column).p_value() < CARRIED / len(
                arms
            ):
                found.append(arm)
        return found

    def forget(self) -> None:
        """Begin anew: what the trials so far show is not what they were made for."""
        self.rows.clear()
        self.begun += 1
        self._counted, self._moved, self._selected = (0, Counter()), (0, frozenset()), (0, {})

    def _moving(self) -> frozenset[Arm]:
        """Arms that move the reference."""
        rows = self._rows()
        if self._moved[0] != len(rows):
            self._moved = len(rows), self._find_moving(rows)
        return self._moved[1]

    def _find_moving(self, rows: Rows) -> frozenset[Arm]:
        arms = list({arm: None for row in rows for one in row.settings for arm in one.items()})
        named = frozenset(arm for arm in arms if arm[0] in self._local)
        reference = np.array([row.reference for row in rows])
        if not _varies(reference) or len(rows) < ENOUGH:
            return named
        base = _fit(rows, rows.levels[:, None], reference)
        return named | {arm for arm in arms if base.addition(rows.column(arm)).p_value() < MOVES}


def _causes(
    rows: Rows, arms: Sequence[Arm], joints: Sequence[Joint], confirming: Values | None
) -> tuple[Floats, dict[Arm | Joint, int], int]:
    """Return the columns of the model, which of them is which, and that of the confirmed setting."""
    causes = [rows.levels]
    columns: dict[Arm | Joint, int] = {}
    fresh = np.array([confirming is not None and row.fresh for row in rows], dtype=float)
    keys: list[Arm | Joint] = [*arms, *joints]
    for key in keys:
        columns[key] = len(causes)
        causes.append((1 - fresh) * rows.column(key))
    if confirming is not None:
        tried = [float(row.setting == confirming) - float(row.other == confirming) for row in rows]
        causes.append(fresh * np.array(tried))
        confirmed = len(causes) - 1
        level = fresh * rows.levels
        if level.any():
            causes.append(level)
    else:
        confirmed = 0
    suspect = np.array([row.contaminated for row in rows], dtype=float)
    if FEW <= suspect.sum() <= rows.levels.sum() - FEW:
        causes.append(suspect)
    return np.column_stack(causes), columns, confirmed


def _fit(rows: Rows, causes: Floats, values: Floats) -> Series:
    """Fit; where a trial resembles the one before, what it has of that one is taken out first.

    Cochrane and Orcutt (1949), JASA 44, 32–61, with the first trial kept as Prais and Winsten do.
    """
    weights = _weights(rows, causes, values)
    causes, values = weights[:, None] * causes, weights * values
    found = fit(causes, values)
    resemblance = found.lag_one()
    # What is common to neighbours is not in differences within launches.
    if resemblance * math.sqrt(found.degrees) < RESEMBLING or not np.all(rows.levels):
        return Series(found, np.zeros(len(rows)), weights, partial(least_squares, causes, values))
    gaps = np.diff([row.index for row in rows])
    share = np.concatenate([[0.0], resemblance**gaps])
    causes, values = _innovations(causes, share), _innovations(values[:, None], share)[:, 0]
    return Series(fit(causes, values), share, weights, partial(least_squares, causes, values))


def _weights(rows: Rows, causes: Floats, values: Floats) -> Floats:
    """Return how many times less than trials differences within launches scatter. Shape (n,)."""
    weights = np.ones(len(rows))
    apart = rows.levels == 0
    if min(apart.sum(), (~apart).sum()) < FEW:
        return weights
    for _ in range(_WEIGHINGS):
        found = fit(weights[:, None] * causes, weights * values)
        scatter = [found.scatter(part) for part in (~apart, apart)]
        weights[apart] *= min(max(scatter[0] / scatter[1], 1 / _MOST), _MOST)
    return weights


def _covariates(rows: Rows) -> list[Floats]:
    """Return the reference of trials, and that of differences within launches, which are not alike. Shape (n,)."""
    levels = rows.levels
    found = []
    for part in (levels == 1, levels == 0):
        reference = np.array([row.reference for row in rows])[part]
        if reference.size >= FEW and _varies(reference):
            column = np.zeros(len(rows))
            column[part] = reference - (np.median(reference) if levels[part][0] else 0.0)
            found.append(column)
    return found


def _difference(first: Row, second: Row) -> Row:
    return Row(
        index=second.index,
        setting=first.setting,
        costs=first.costs - second.costs,
        reference=first.reference - second.reference,
        contaminated=False,
        fresh=first.fresh,
        other=second.setting,
    )


def _innovations(columns: Floats, share: Floats) -> Floats:
    """Return what is new in each row, scaled to the same scatter. Shape (n, columns)."""
    before = np.concatenate([columns[:1], columns[:-1]])
    return np.asarray((columns - share[:, None] * before) / np.sqrt(1 - share[:, None] ** 2))


def _changed(row: Row) -> frozenset[Arm]:
    """Arms that have a level in a row."""
    return touched(row.setting, row.other or {})


def _arms(key: Arm | Joint) -> frozenset[Arm]:
    return key if isinstance(key, frozenset) else frozenset([key])


def _varies(reference: Floats) -> bool:
    return bool(reference.size) and bool(np.all(np.isfinite(reference))) and float(np.ptp(reference)) > 0


def _has(setting: Values, key: Arm | Joint) -> bool:
    if isinstance(key, tuple):  # most often by far, and for every trial at every step
        knob, value = key
        return setting.get(knob) == value
    return all(setting.get(knob) == value for knob, value in key)
