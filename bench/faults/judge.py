"""Whether a node ended in one of the two states it may be in, and its journal says in which."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from bench.faults.cases import Case, Points
from bench.faults.controller import FIRST
from bench.faults.node import Facts, Site
from bench.faults.team import Team
from wulf.node.change.guard import BUSY

#: What keeps the controller from giving a node back.
_OUT_OF_REACH = ("link", "client", "client dies", "sshd", "kill", "reboot")


class Verdict(msgspec.Struct):
    """What became of a case."""

    case: Case
    #: State of each node: old, new or neither.
    states: list[str] = []
    #: What is wrong; empty when all is as it must be.
    wrong: list[str] = []
    #: Whether the step of the fault was come to.
    hit: bool = False
    seconds: float = 0.0


def judge(team: Team, case: Case, points: Mapping[str, Points], verdict: Verdict) -> None:
    """Compare every node with the states that it may be in."""
    outcome = team.controller.outcome()
    told = {node.node: node.state for node in outcome.nodes} if outcome is not None else {}
    for site in team.sites:
        booted = team.booted and site is team.victim
        state = _state(team, site, case, points, verdict)
        verdict.states.append(state)
        if case.way != "keep" and state == "new":
            verdict.wrong.append(f"{site.name} has a change that was not kept")
        verdict.wrong += [f"{site.name}: {what} is left" for what in site.leftovers()]
        # A controller that lived to its end, and could reach the node, gives it back.
        if outcome is not None and case.fault.lower() not in _OUT_OF_REACH and site.owner().startswith(FIRST):
            verdict.wrong.append(f"{site.name}: the lock is left")
        pairs = (("confirmed", "old"), ("undone", "new"), ("untouched", "new"))
        if outcome is not None and (told[site.name], state) in pairs and not booted:
            verdict.wrong.append(
                f"the controller says of {site.name}: {told[site.name]}; it is in the {state} state"
            )
    code = team.controller.answer_to_second()
    held = case.fault == "second" and case.at not in ("install", "lock")
    # A node that has put itself back is free again.
    was_given_up = any("not confirmed in time" in state for state in team.victim.journal().values())
    if code is not None and held != (code == BUSY) and not was_given_up:
        verdict.wrong.append(f"the second controller got {code}")


def _state(team: Team, site: Site, case: Case, points: Mapping[str, Points], verdict: Verdict) -> str:
    """Return the state of a node by its facts; the journal must say the same."""
    change = points["two nodes"] if case.change == "rollback" else points[case.change]
    booted = team.booted and site is team.victim
    pristine = team.pristine[site.name]
    # It is booted before the change or after it.
    changed = [with_change(pristine, change.new)]
    if booted:
        changed.append(with_change(pristine, change.new_after_boot))
    # When a file was written is its own only where it was put back.
    written = {name for name in change.new if name.startswith("file ")}
    now = site.facts()
    is_pristine = now == pristine
    is_changed = any(timeless(now, written) == timeless(one, written) for one in changed)
    if not is_pristine and not is_changed:
        verdict.wrong.append(f"{site.name} differs from how it was before all: {difference(pristine, now)}")
        verdict.wrong += [
            f"{site.name} differs from how it was changed: {difference(one, now)}" for one in changed
        ]
        return "neither"
    if is_pristine and is_changed:  # a change that cuts the node off changes nothing that lasts
        return "old"
    state = "old" if is_changed == (case.change == "rollback") else "new"
    # The first is what a rollback is of; a second one that is confirmed is the rollback.
    journal = site.states()[1:] if case.change == "rollback" else site.states()
    said = "new" if journal.count("confirmed") == 1 else "old"
    if said != state:
        verdict.wrong.append(f"{site.name} is in the {state} state, and its journal says {journal}")
    return state


def difference(before: Facts, after: Facts) -> dict[str, str | None]:
    """Return what is different, with the values after; None where there is none any more."""
    return {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}


def timeless(facts: Facts, files: set[str]) -> Facts:
    """Return the facts without the time of some files."""
    return {
        name: re.sub(r" \d{10,} ", " ", value) if name in files else value for name, value in facts.items()
    }


def with_change(facts: Facts, change: Mapping[str, str | None]) -> Facts:
    """Return the facts with a change made to them."""
    found = {**facts, **{name: value for name, value in change.items() if value is not None}}
    return {name: value for name, value in found.items() if change.get(name, "") is not None}
