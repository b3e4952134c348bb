"""A change without faults, to know its steps; and with one, to judge what comes of it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial

from bench.faults import orders
from bench.faults.cases import SIDE, WAYS, Case, Points
from bench.faults.changes import CUTTING
from bench.faults.judge import Verdict, difference, judge
from bench.faults.node import wait_for
from bench.faults.team import RETIRE_S, Team

#: The names of a change and of a node, which are others in each case.
_NAMES = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}|\bnode\d+\b")


def record(team: Team, change: str, ways: Sequence[str] = WAYS) -> Points:
    """Run a change without faults in several ways; return its steps and what it changes."""
    found = Points()
    known: set[str] = set()
    for way in ways if change not in CUTTING else ("keep",):
        case = Case(change, way, "none", "", "")
        team.set_out(case)
        team.victim.record()
        team.run(case)
        late = team.settle(case)
        if late:
            raise SystemExit(f"bench: {change}, {way}: {late[0]} does not settle: {team.log()}")
        notes = (_NAMES.sub("*", note) for note in team.victim.recorded() if "error:" not in note)
        steps = list(dict.fromkeys(notes))
        found.guard[way] = [step for step in steps if step not in known]
        known.update(steps)
        found.watch[way] = team.controller.announced()
        if way == "keep":
            _record_new_state(team, change, found)
        left = team.clean_up(case)
        if left:
            raise SystemExit(f"bench: {change}, {way}: not clean afterwards: {left}")
    rest = difference(team.pristine[team.victim.name], team.victim.facts())
    if rest:
        raise SystemExit(f"bench: {change}: not clean afterwards: {rest}")
    return found


def _record_new_state(team: Team, change: str, found: Points) -> None:
    states = team.victim.states()
    if change not in CUTTING and set(states) != {"confirmed"}:
        outcome = team.controller.outcome()
        said = outcome.reason if outcome is not None else "nothing"
        raise SystemExit(f"bench: {change}: the good run ends as {states}, {said}: {team.log()}")
    pristine = team.pristine[team.victim.name]
    found.new.update(difference(pristine, team.victim.facts()))
    if change in ("all", "two nodes"):
        team.boot("Reboot")
        found.new_after_boot.update(difference(pristine, team.victim.facts()))


def attempt(team: Team, case: Case, points: Mapping[str, Points]) -> Verdict:
    """Run one case and judge it; afterwards the nodes are as before."""
    if case.side == SIDE:
        return _order(team, case)
    verdict = Verdict(case)
    begin = time.monotonic()
    try:
        team.set_out(case)
        verdict.hit = team.run(case)
        late = team.settle(case)
        verdict.wrong += [f"{name} does not settle" for name in late]
        judge(team, case, points, verdict)
    except Exception as error:
        verdict.wrong.append(f"{type(error).__name__}: {error}")
    if verdict.wrong:
        verdict.wrong += team.log()
        verdict.wrong += [f"{site.name} journal: {site.journal()}" for site in team.sites]
    try:
        left = team.clean_up(case)
        if "new" in verdict.states or verdict.wrong or case.change == "rollback":
            left += _restored(team)
        verdict.wrong += left
    except Exception as error:
        verdict.wrong.append(f"afterwards: {type(error).__name__}: {error}")
        with contextlib.suppress(Exception):
            team.start_anew()
    verdict.seconds = time.monotonic() - begin
    return verdict


def _order(team: Team, case: Case) -> Verdict:
    """Go through an order of events; afterwards the node is as before all."""
    verdict = Verdict(case, hit=True)
    begin = time.monotonic()
    site = team.victim
    team.booted = False
    try:
        verdict.wrong += orders.run(case, site, team.pristine[site.name], team.boot)
    except Exception as error:
        verdict.wrong.append(f"{type(error).__name__}: {error}")
    if verdict.wrong:
        verdict.wrong += [*team.log(), f"{site.name} journal: {site.journal()}"]
    try:
        orders.tidy(site)
        if not verdict.wrong and not wait_for(lambda: orders.is_free(site), orders.PATIENCE_S):
            verdict.wrong += [f"{site.name}: {what} is left" for what in site.leftovers()]
        site.wipe()
        rest = difference(team.pristine[site.name], site.facts())
        if rest:
            verdict.wrong.append(f"{site.name} differs from how it was before all: {rest}")
            verdict.wrong.append(f"{site.name} failed units: {site.failed_units()}")
    except Exception as error:
        verdict.wrong.append(f"afterwards: {type(error).__name__}: {error}")
    if verdict.wrong:
        team.start_anew()
    verdict.states = ["old"]
    verdict.seconds = time.monotonic() - begin
    return verdict


def _restored(team: Team) -> list[str]:
    """Return what differs after the rollback; the next case gets a clean node all the same."""
    for site in team.sites:
        # The guard's processes have just retired, and systemd forgets their units a little later.
        wait_for(partial(orders.is_free, site), RETIRE_S)
    rest = [(site, difference(team.pristine[site.name], site.facts())) for site in team.sites]
    if any(change for _, change in rest):
        team.start_anew()
    return [f"after the rollback {site.name} differs: {change}" for site, change in rest if change]
