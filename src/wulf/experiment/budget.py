"""What fits into the time: how many blocks, and which candidates."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.experiment.power import Rules, fewest_blocks, wanted_blocks
from wulf.records import Candidate, Phase, TunePlan

#: Blocks of the control: its spread is then known to a fifth.
CONTROL_BLOCKS = 10
#: Share of the time that the control may take.
CONTROL_SHARE = 0.15
#: Pairs after which a useless arm has left, and the share of arms that stay to the end (`bench/tune_sim.py`).
USELESS_PAIRS = 4.5
STAYING = 0.3
#: Rounds of forward selection, and settings in the backward check, that are planned for.
ROUNDS = 1.5
BACKWARD_SETTINGS = 3
CONFIRMATION_SETTINGS = 2


def control_blocks(plan: TunePlan) -> int:
    """Blocks of the A/A control: ten if they take no more than their share of the time; never fewer than the least."""
    affordable = int(plan.budget_s * CONTROL_SHARE / (2 * plan.trial_s))
    return min(max(plan.min_blocks, min(CONTROL_BLOCKS, affordable)), plan.max_blocks)


def arms(candidates: Sequence[Candidate]) -> int:
    """Count the knob-and-value pairs."""
    return sum(len(candidate.values) for candidate in candidates)


def expected_s(candidates: Sequence[Candidate], blocks: int, trial_s: float) -> float:
    """Time that everything after the control probably takes [s]."""
    pairs = USELESS_PAIRS + max(blocks - USELESS_PAIRS, 0) * STAYING
    screening = sum(len(candidate.values) * (trial_s + candidate.toggle_s) for candidate in candidates)
    forward = sum(trial_s + candidate.toggle_s for candidate in candidates)
    bases = (1 + ROUNDS + BACKWARD_SETTINGS + CONFIRMATION_SETTINGS) * blocks * trial_s
    return (screening + ROUNDS * forward) * pairs + bases


def least_s(plan: TunePlan) -> float:
    """Time in which all candidates can be tested, when nothing is noisy [s]."""
    blocks = fewest_blocks(plan, arms(plan.candidates))
    control_s = 2 * control_blocks(plan) * plan.trial_s
    return control_s + expected_s(plan.candidates, blocks, plan.trial_s)


def affordable_blocks(rules_: Rules, phase: Phase, settings: int, left_s: float, trial_s: float) -> int:
    """Blocks that a comparison may go on for: those planned, or more where time turns out to be left.

    Only settings that are still undecided use them.
    """
    if phase == "confirmation":
        staying, later = 1.0, 0
    elif phase == "backward":
        staying, later = float(settings), CONFIRMATION_SETTINGS
    else:
        staying, later = max(STAYING * settings, 1.0), BACKWARD_SETTINGS + CONFIRMATION_SETTINGS
    left_s -= later * rules_.blocks * trial_s
    return min(max(int(left_s / trial_s / (1 + staying)), rules_.blocks), rules_.plan.max_blocks)


def promising_first(candidates: Sequence[Candidate], trial_s: float) -> list[Candidate]:
    """Order by expected effect per time."""

    def worth(candidate: Candidate) -> float:
        return candidate.effect / (max(len(candidate.values), 1) * (trial_s + candidate.toggle_s))

    return sorted(candidates, key=worth, reverse=True)


def fit(plan: TunePlan, noise: float, left_s: float, trial_s: float) -> tuple[Rules, list[Candidate]]:
    """Choose the blocks of a comparison and the candidates that fit into the time that is left.

    Blocks are given up first, down to the fewest that can prove anything; then candidates, the least promising
    first. One candidate always remains: whether it can be finished shows.

    Returns
    -------
    (rules, candidates)
        Candidates in the plan's order.
    """
    chosen = promising_first(plan.candidates, trial_s)
    while True:
        comparisons = max(arms(chosen), 1)
        least = fewest_blocks(plan, comparisons)
        blocks = wanted_blocks(plan, noise, comparisons)
        while blocks > least and expected_s(chosen, blocks, trial_s) > left_s:
            blocks -= 1
        if len(chosen) <= 1 or expected_s(chosen, blocks, trial_s) <= left_s:
            break
        chosen.pop()
    names = {candidate.knob for candidate in chosen}
    kept = [candidate for candidate in plan.candidates if candidate.knob in names]
    return Rules(plan=plan, blocks=blocks, comparisons=comparisons, noise=noise), kept


def fitting(candidates: Sequence[Candidate], blocks: int, left_s: float, trial_s: float) -> list[Candidate]:
    """Return as many of the candidates as fit into the time that is left, the most promising first."""
    chosen: list[Candidate] = []
    for candidate in promising_first(candidates, trial_s):
        if expected_s([*chosen, candidate], blocks, trial_s) <= left_s:
            chosen.append(candidate)
    return chosen
