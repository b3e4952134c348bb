"""What a watch keeps of its runs, and what it says of them."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record

WatchLevel = Literal["cluster", "node", "link"]


class WatchRun(Record, frozen=True, kw_only=True):
    """One time that it was a watch's turn."""

    #: From 1.
    number: int
    #: ISO 8601, UTC: when it began.
    at: str
    #: Local time of the controller then, minus UTC [s].
    utc_offset_s: int
    #: ``measured``; ``skipped``: the nodes were not idle; ``failed``: something went wrong.
    status: Literal["measured", "skipped", "failed"]
    #: Why nothing was measured; empty where something was.
    reason: str = ""
    #: How long it took [s].
    seconds: float = 0.0
    #: Pairs of nodes that were measured.
    pairs: int = 0
    #: Node → why it was left out.
    skipped: dict[str, str] = {}
    #: Version that made it.
    wulf_version: str = ""


class WatchedTime(Record, frozen=True, kw_only=True):
    """What one run has measured of one operation at one size between two nodes, or on one."""

    op: str
    size_bytes: int
    #: Two nodes, the first measured; or one.
    nodes: tuple[str, ...]
    #: Median of the launches [s].
    time_s: float
    #: Of these.
    launches: int
    #: How many of them ran under other load.
    disturbed: int = 0


class FactChange(Record, frozen=True, kw_only=True):
    """A fact that was another one in the run before."""

    fact: str
    nodes: list[str]
    #: Null where it was not known.
    before: str | None
    #: Null where it is not known any more.
    after: str | None
    #: Number of the first run that saw it.
    run: int
    #: How often it has changed on these nodes in the whole history: what changes often explains little.
    times: int


class Alarm(Record, frozen=True, kw_only=True):
    """A level that has changed, with what else changed then."""

    #: Number, from 1.
    id: int
    #: ``cluster``: all nodes; ``node``: one; ``link``: what is between two, beside what these do.
    level: WatchLevel
    op: str
    size_bytes: int
    #: One, two, or none for the cluster.
    nodes: list[str]
    #: ``step`` from one run to the next, or a ``drift`` over weeks.
    kind: Literal["step", "drift"]
    #: What the time has become.
    direction: Literal["slower", "faster"]
    #: Time after ÷ before, with its 95 % interval, as it was when it was found.
    change: Estimate
    #: Number and time (ISO 8601, UTC) of the last run before it …
    before_run: int
    before_at: str
    #: … and of the first one after it.
    after_run: int
    after_at: str
    #: When it was found.
    found_run: int
    found_at: str
    #: ``open``: it calls for somebody. ``accepted`` by a person; ``returned`` to what it was; ``aged``: nobody has
    #: accepted it for so long that it is what is usual now; ``noted``: it became faster, which calls for nobody.
    state: Literal["open", "accepted", "returned", "aged", "noted"]
    #: When it was closed; null while it is open.
    closed_at: str | None = None
    #: What the person who accepted it has said.
    note: str = ""
    #: Facts of these nodes that changed between the runs before and after it; the rarest first.
    changed: list[FactChange] = []


class Shown(Record, frozen=True, kw_only=True):
    """The smallest change that a watch would find soon."""

    level: WatchLevel
    op: str
    size_bytes: int
    #: Time after ÷ before, less 1: a step of this is found within three runs in 95 of 100 cases, on the usual series of
    #: this level.
    smallest: float


class Coverage(Record, frozen=True, kw_only=True):
    """How much of a cluster a watch has measured."""

    #: Pairs of nodes that there are.
    pairs: int
    #: How many of them have been measured at all.
    measured: int
    #: Age of the measurement that is oldest, of the newest ones of all measured pairs [days]; null where there is none.
    oldest_days: float | None


class WatchReport(Record, frozen=True, kw_only=True):
    """What a watch says."""

    schema_version: int
    name: str
    nodes: list[str]
    #: Path of the history.
    history: str
    #: Status of runs → how many there are.
    runs: dict[str, int]
    first_at: str | None
    last: WatchRun | None
    #: Why nothing is judged yet; empty where it is.
    learning: str
    #: Numbers of the alarms that the last run has found.
    new: list[int]
    #: Those that are open, the newest first.
    open: list[Alarm]
    #: Those that were closed in the last 90 days, and what became faster.
    closed: list[Alarm]
    shown: list[Shown]
    coverage: Coverage
    #: Findings of the last audit: severity → how many.
    findings: dict[str, int]
    #: Nodes of which no audit is known.
    unaudited: list[str] = []
    #: Checks whose findings would be serious and that the last audit could not make, of the node with most of them.
    unjudged: int = 0
    #: Why nobody can say that nothing has changed, in words; empty where somebody can.
    untold: list[str] = []
    #: False alarms that are to be expected, over all series together, if nothing changes [1/month].
    false_alarms_a_month: float


class WatchedSeries(Record, frozen=True, kw_only=True):
    """One level over time, against what is usual for it."""

    level: WatchLevel
    op: str
    size_bytes: int
    nodes: list[str]
    #: Number of each run.
    runs: list[int]
    #: Time ÷ the median before the last change, less 1.
    change: list[float]
