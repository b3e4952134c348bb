"""Kill, cut, fill and reboot at every step of a change: a node ends in its old state or in the confirmed new one.

Changes of several kinds are made on a virtual cluster. A good run, one that is given up and one that is abandoned are
recorded first: what the guard notes and what the controller announces are the steps. Then every step meets faults:
the controller or the guard dies, the connection or the cable is cut, the disk is full, the node is switched off. After
each case all facts, settings and files of the node are compared with the two states it may be in, the journal must
say which of them it is, and nothing of the guard may be left at work. Before these, orders of events are gone through
that once left a node changed without a word (`bench.faults.orders`).

``--state=FILE``: goes on where FILE says that it was ended, with the same guard.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.common import Figure, finish
from bench.faults import course, orders
from bench.faults.cases import WAYS, Case, Points, cases, in_order, once, quick, thorough
from bench.faults.changes import CHANGES
from bench.faults.judge import Verdict
from bench.faults.node import Site, faulty_program
from bench.faults.team import PLANT, Team
from bench.faults.workers import spread
from wulf.node import lab

NODES = 8
QUICK_NODES = 4
#: A run ends then, unless it is to be the whole [s].
LIMIT_S = 2700.0
#: Share of the time for the cases on one node; what is left is for those on two.
_SINGLE_SHARE = 0.92
_SAY_EVERY = 50
#: Of the orders of a short run, every third is in the shortest one.
_EVERY_ORDER = 3


class State(msgspec.Struct):
    """What is known of a run that was ended."""

    #: SHA-256 of the guard that was tried.
    guard: str
    points: dict[str, Points] = {}
    verdicts: list[Verdict] = []
    seconds: float = 0.0


class Log:
    """The verdicts of a run, those of its beginning among them; kept in a file where there is one."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        digest = hashlib.sha256(faulty_program()).hexdigest()
        self.state = State(digest)
        if path is not None and path.exists():
            self.state = msgspec.json.decode(path.read_bytes(), type=State)
            if self.state.guard != digest:
                raise SystemExit(f"bench: {path} is of another guard: remove it to begin anew")
        self._begin = time.monotonic() - self.state.seconds

    def keep(self) -> None:
        """Write down what is known."""
        self.state.seconds = time.monotonic() - self._begin
        if self._path is not None:
            new = self._path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(self.state))
            new.rename(self._path)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    few = run_once if "--once" in arguments else run_quick if "--quick" in arguments else None
    named = dict(word.removeprefix("--").partition("=")[::2] for word in arguments)
    only, nodes, limit = (named.get(name, "") for name in ("only", "nodes", "limit"))
    log = Log(Path(named["state"]) if "state" in named else None)
    if lab.current() is not None:
        raise SystemExit(
            "bench: this maltreats the nodes: take the virtual cluster down first (wulf lab down)"
        )
    raised, _ = lab.up(int(nodes or (QUICK_NODES if few else NODES)))
    try:
        if few:
            verdicts, seconds = few(raised)
        elif "--orders" in arguments:
            verdicts, seconds = run_orders(raised, only, log, float(limit or math.inf))
        else:
            limit_s = math.inf if "--whole" in arguments else float(limit or LIMIT_S)
            verdicts, seconds = run(raised, only, limit_s, log)
    finally:
        raised.down()
    return report(verdicts, seconds)


def run(
    raised: lab.Lab, only: str = "", limit_s: float = LIMIT_S, log: Log | None = None
) -> tuple[list[Verdict], float]:
    """Run as many cases as there is time for, those first that meet everything once.

    Parameters
    ----------
    only
        Text that cases must have in them: for looking into one of them.

    Returns
    -------
        The verdicts, and the time that they took [s].
    """

    def choose(points: Mapping[str, Points]) -> list[Case]:
        every = [case for case in cases(points) if only in str(case)]
        first, rest = in_order(every, thorough)
        events = [case for case in orders.orders() if only in str(case)]
        print(f"{len(events)} orders of events, {len(every)} cases, {len(first)} of them first", flush=True)
        return events + first + rest

    return _run(raised, course.record, choose, limit_s, log)


def run_orders(
    raised: lab.Lab, only: str = "", log: Log | None = None, limit_s: float = math.inf
) -> tuple[list[Verdict], float]:
    """Go through the orders of events alone, for which no steps have to be known."""
    events = [case for case in orders.orders() if only in str(case)]
    return _run(raised, lambda _team, _change: Points(), lambda _: events, limit_s, log)


def run_quick(raised: lab.Lab) -> tuple[list[Verdict], float]:
    """Run few cases, in which every fault, every change and every kind of step are met."""

    def record_some(team: Team, change: str) -> Points:
        # The kinds of step are the same in all of them.
        return course.record(team, change, WAYS if change in ("all", "rollback") else WAYS[:1])

    return _run(
        raised, record_some, lambda points: [*orders.few(), *in_order(cases(points), quick)[0]], LIMIT_S
    )


def run_once(raised: lab.Lab) -> tuple[list[Verdict], float]:
    """Run every fault once, at some step of a small change or of a large one, and the kinds of orders of events."""
    changes = ("all", "sysctl")

    def record_some(team: Team, change: str) -> Points:
        return (
            course.record(team, change, WAYS if change == "sysctl" else WAYS[:1])
            if change in changes
            else Points()
        )

    def choose(points: Mapping[str, Points]) -> list[Case]:
        return [*orders.few()[::_EVERY_ORDER], *in_order(cases(points), once)[0]]

    return _run(raised, record_some, choose, LIMIT_S)


def _run(
    raised: lab.Lab,
    record: Callable[[Team, str], Points],
    choose: Callable[[Mapping[str, Points]], list[Case]],
    limit_s: float,
    log: Log | None = None,
) -> tuple[list[Verdict], float]:
    begin = time.monotonic()
    log = log or Log()
    state = log.state
    # ssh's sockets are in it, whose names must be short.
    with tempfile.TemporaryDirectory(prefix="wf-", dir="/tmp") as scratch:
        plant(raised)
        single, pairs = _teams(raised, Path(scratch))
        state.points = points = state.points or _points(single, pairs, record)
        log.keep()
        steps = sum(len(notes) for found in points.values() for notes in found.guard.values())
        print(f"{steps} steps in {len(points)} changes ({time.monotonic() - begin:.0f} s)", flush=True)
        chosen = choose(points)
        done = {verdict.case for verdict in state.verdicts}

        def take(_: Case, verdict: Verdict) -> None:
            state.verdicts.append(verdict)
            log.keep()
            _say(verdict, state.verdicts, len(chosen), time.monotonic() - begin)

        for teams, two, share in ((single, False, _SINGLE_SHARE), (pairs, True, 1.0)):
            some = [case for case in chosen if (case.change == "two nodes") is two and case not in done]
            spread(
                teams,
                some,
                lambda team, case: course.attempt(team, case, points),
                take,
                begin + share * limit_s,
            )
        log.keep()
        return state.verdicts, state.seconds


def _say(verdict: Verdict, verdicts: Sequence[Verdict], total: int, seconds: float) -> None:
    if verdict.wrong:
        lines = [f"  {line[:1500]}" for line in verdict.wrong]
        print("\n".join(["", f"FAILED {verdict.case}", *lines]), flush=True)
    if len(verdicts) % _SAY_EVERY == 0:
        print(f"{len(verdicts)}/{total} {_bad(verdicts)[1]} failed {seconds:.0f} s", flush=True)


def plant(raised: lab.Lab) -> None:
    """Give all nodes what the changes work on, and boot them with it."""
    for name in raised.layout.names():
        Site(raised, name).shell(PLANT)
    for name in raised.layout.names():
        raised.kill(name)
    raised.start_all(lambda _: None)


def _teams(raised: lab.Lab, scratch: Path) -> tuple[list[Team], list[Team]]:
    """Return a team for each node, and one for every two, who know the nodes as they are now."""
    names = raised.layout.names()
    single = [Team(raised, [name], scratch / name) for name in names]
    pairs = [Team(raised, names[n : n + 2], scratch / f"pair{n}") for n in range(0, len(names), 2)]
    whole = Team(raised, names, scratch / "all")
    whole.look()
    for team in (*single, *pairs):
        team.pristine = dict(whole.pristine)
    return single, pairs


def _points(
    single: Sequence[Team], pairs: Sequence[Team], record: Callable[[Team, str], Points]
) -> dict[str, Points]:
    """Record the steps of all changes."""
    points: dict[str, Points] = {}
    longest_first = sorted(CHANGES, key=lambda change: -len(CHANGES[change]))
    spread(single, [change for change in longest_first if change != "two nodes"], record, points.__setitem__)
    spread(pairs[:1], ["two nodes"], record, points.__setitem__)
    return {change: points[change] for change in CHANGES}


def report(verdicts: Sequence[Verdict], seconds: float) -> int:
    """Print the table and the last line."""
    rows: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        rows.setdefault((verdict.case.change, f"{verdict.case.side}: {verdict.case.fault}"), []).append(
            verdict
        )
    print("\n| change | fault | cases | old state | new state | both | not met | failed | mean [s] |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (change, fault), some in sorted(rows.items()):
        states = ["/".join(sorted(set(one.states))) for one in some]
        counts = [len(some), states.count("old"), states.count("new"), states.count("new/old"), *_bad(some)]
        seconds_each = sum(one.seconds for one in some) / len(some)
        print(f"| {change} | {fault} | " + " | ".join(map(str, counts)) + f" | {seconds_each:.1f} |")
    missed, failed = _bad(verdicts)
    print(f"\n{len(verdicts)} cases in {seconds:.0f} s; in {missed} of them the step was not come to")
    for verdict in verdicts:
        if not verdict.hit:
            print(f"  not come to: {verdict.case}")
    name = f"failed-of-{len(verdicts)}-in-{seconds:.0f}-s"
    return finish("faults", [Figure(name=name, value=failed, goal=0)])


def _bad(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """Return in how many the step was not come to, and how many failed."""
    return sum(not one.hit for one in verdicts), sum(bool(one.wrong) for one in verdicts)
