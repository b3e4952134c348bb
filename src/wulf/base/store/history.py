"""The history of a watch: one SQLite file that any program can read, written by one process at a time.

The tables are described in docs/howto/watch.md. Their version is the file's ``user_version``: the number of the steps
in `_STEPS` that it has been through, of which the first makes all tables. There is no write-ahead log: it needs memory
that all readers share, which a network file system does not have.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from wulf.base.errors import StoreError
from wulf.base.records.watched import Alarm, FactChange, WatchedTime, WatchRun
from wulf.base.store.files import take_lock
from wulf.base.text import printable

NAME = "history.sqlite"
#: Kinds of file systems that other machines may write to at the same time.
NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "lustre",
        "beegfs",
        "ceph",
        "gpfs",
        "cifs",
        "smb3",
        "afs",
        "9p",
        "glusterfs",
        "fuse.sshfs",
    }
    | {"fuse.glusterfs", "fuse.ceph", "pvfs2", "panfs"}
)
#: A reader waits so long for the writer [s].
_PATIENCE_S = 30.0
#: Runs on either side of a change that are kept whole.
_KEPT_AROUND = 30

#: No time is longer [s], and no text in the file [characters].
_LONGEST_S = 1e9
_LONGEST_TEXT = 1 << 20
#: Which kinds of values the columns of a table have, where the file is sound; of times `History.times` says it.
_COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "runs": {
        **dict.fromkeys(("run", "utc_offset_s", "pairs"), ("integer",)),
        **dict.fromkeys(("at", "status", "reason", "wulf_version"), ("text",)),
        "seconds": ("real", "integer"),
    },
    "skipped": {"run": ("integer",), "node": ("text",), "reason": ("text",)},
    "times": {
        **dict.fromkeys(("run", "size_bytes", "launches", "disturbed"), ("integer",)),
        **dict.fromkeys(("op", "node", "peer"), ("text",)),
    },
    "facts": {"run": ("integer",), "node": ("text",), "fact": ("text",), "value": ("text", "null")},
    "suspects": {"node": ("text",), "peer": ("text",)},
}
#: What SQLite raises; where a damaged name is in its own message, Python cannot even read that.
_FAILS = (sqlite3.Error, UnicodeDecodeError)
#: What to do about a damaged file.
_MEND = "restore it from a copy, or move it away: then 'wulf watch run' begins a new one"

_STEPS = (
    """
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY, at TEXT NOT NULL, utc_offset_s INTEGER NOT NULL, status TEXT NOT NULL,
        reason TEXT NOT NULL, seconds REAL NOT NULL, pairs INTEGER NOT NULL, wulf_version TEXT NOT NULL
    );
    CREATE TABLE skipped (
        run INTEGER NOT NULL, node TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (run, node)
    ) WITHOUT ROWID;
    CREATE TABLE times (
        run INTEGER NOT NULL, op TEXT NOT NULL, size_bytes INTEGER NOT NULL,
        node TEXT NOT NULL, peer TEXT NOT NULL,
        time_s REAL NOT NULL, launches INTEGER NOT NULL, disturbed INTEGER NOT NULL,
        PRIMARY KEY (run, op, size_bytes, node, peer)
    ) WITHOUT ROWID;
    CREATE TABLE facts (
        run INTEGER NOT NULL, node TEXT NOT NULL, fact TEXT NOT NULL, value TEXT,
        PRIMARY KEY (node, fact, run)
    ) WITHOUT ROWID;
    CREATE TABLE alarms (
        alarm INTEGER PRIMARY KEY, level TEXT NOT NULL, op TEXT NOT NULL, size_bytes INTEGER NOT NULL,
        node TEXT NOT NULL, peer TEXT NOT NULL, kind TEXT NOT NULL, direction TEXT NOT NULL,
        ratio REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
        before_run INTEGER NOT NULL, after_run INTEGER NOT NULL, found_run INTEGER NOT NULL,
        state TEXT NOT NULL, closed_at TEXT, note TEXT NOT NULL
    );
    CREATE TABLE suspects (node TEXT NOT NULL, peer TEXT NOT NULL, place INTEGER NOT NULL);
    """,
)
VERSION = len(_STEPS)


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one operation at one size, as columns."""

    op: str
    size_bytes: int
    run: list[int]
    node: list[str]
    peer: list[str]
    time_s: list[float]


class History:
    """A history that is open; `writing` makes this process the one that may write."""

    def __init__(self, directory: Path, *, writing: bool = False) -> None:
        self.path = directory / NAME
        self._lock = None
        if writing:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"cannot make {directory}: {error.strerror}") from None
            self._lock = take_lock(directory)
        elif not self.path.is_file():
            raise StoreError(f"there is no history in {directory}: 'wulf watch run' begins one")
        # An older file is brought up to this version by whoever opens it first.
        try:
            self._connection = self._opened(writing)
        except BaseException:
            if self._lock is not None:
                self._lock.close()
            raise

    def _opened(self, writing: bool) -> sqlite3.Connection:
        if self.path.is_file() and not self.path.stat().st_size:
            raise StoreError(f"{self.path} is damaged: it is empty; {_MEND}")
        uri = f"{self.path.absolute().as_uri()}?mode={'rwc' if writing else 'ro'}"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE_S, isolation_level=None)
        except _FAILS as error:
            raise StoreError(f"{self.path} cannot be read: {printable(str(error), 200)}; {_MEND}") from None
        connection.text_factory = _text
        try:
            version = self._version(connection)
            if version < VERSION and writing:
                _migrate(connection, version)
            if version == VERSION:
                self._check(connection)
        except BaseException:
            connection.close()
            raise
        if version < VERSION and not writing:
            connection.close()
            return self._opened(writing=True)
        return connection

    def _version(self, connection: sqlite3.Connection) -> int:
        try:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        except _FAILS as error:
            raise StoreError(f"{self.path} cannot be read: {printable(str(error), 200)}; {_MEND}") from None
        if version < 0 or (version == 0 and self._has_tables(connection)):
            raise StoreError(f"{self.path} is damaged: its version is {version}; {_MEND}")
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer wulf (version {version}, this one reads up to {VERSION}): "
                "upgrade wulf"
            )
        return version

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        try:
            return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
        except _FAILS as error:
            raise StoreError(f"{self.path} cannot be read: {printable(str(error), 200)}; {_MEND}") from None

    def close(self) -> None:
        """Close the file, and let others write."""
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a table with values of another kind than its columns are: SQLite takes anything anywhere."""
        for table, columns in _COLUMNS.items():
            wrong = " OR ".join(
                f"typeof({name}) NOT IN ({', '.join(map(repr, kinds))})" for name, kinds in columns.items()
            )
            try:
                found = connection.execute(f"SELECT * FROM {table} WHERE {wrong} LIMIT 1").fetchone()  # noqa: S608
            except _FAILS as error:
                raise StoreError(
                    f"{self.path} cannot be read: {printable(str(error), 200)}; {_MEND}"
                ) from None
            if found is not None:
                said = printable(", ".join(map(str, found)), 200)
                raise StoreError(f"{self.path} is damaged: {table} has the row {said}; {_MEND}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing.

        Raises
        ------
        StoreError
            The disk refuses; nothing was written.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except _FAILS as error:
            raise StoreError(f"cannot write to {self.path}: {error}; what was there before is kept") from None

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except _FAILS as error:
            raise StoreError(f"{self.path} cannot be read: {printable(str(error), 200)}; {_MEND}") from None

    def runs(self) -> list[WatchRun]:
        """Return all runs in time order."""
        skipped: dict[int, dict[str, str]] = {}
        for run, node, reason in self._rows("SELECT run, node, reason FROM skipped"):
            skipped.setdefault(run, {})[node] = reason
        query = "SELECT run, at, utc_offset_s, status, reason, seconds, pairs, wulf_version FROM runs ORDER BY run"
        found = [
            WatchRun(
                number=run,
                at=at,
                utc_offset_s=offset,
                status=status,
                reason=reason,
                seconds=seconds,
                pairs=pairs,
                skipped=skipped.get(run, {}),
                wulf_version=version,
            )
            for run, at, offset, status, reason, seconds, pairs, version in self._rows(query)
        ]
        for one in found:
            try:
                datetime.fromisoformat(one.at)
            except (TypeError, ValueError):
                raise StoreError(
                    f"{self.path} is damaged: run {one.number} was at {one.at!r}; {_MEND}"
                ) from None
        return found

    def nodes(self) -> list[str]:
        """Return all nodes that the history knows, whether measured or left out."""
        query = (
            "SELECT node FROM facts UNION SELECT node FROM skipped UNION SELECT node FROM times "
            "UNION SELECT peer FROM times ORDER BY node"
        )
        return [node for (node,) in self._rows(query) if node]

    def next_number(self) -> int:
        """Return the number of the next run."""
        return int(self._rows("SELECT coalesce(max(run), 0) + 1 FROM runs")[0][0])

    def add(
        self, run: WatchRun, times: Iterable[WatchedTime], facts: Mapping[str, Mapping[str, str | None]]
    ) -> None:
        """Keep a run with all that it has measured and seen; of the facts only those that are new.

        Parameters
        ----------
        facts
            Node → facts; a fact that a node had and that is not among these is not known any more.
        """
        changed = [row for node, known in facts.items() for row in self._changed(run.number, node, known)]
        with self._transaction() as database:
            database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.number,
                    run.at,
                    run.utc_offset_s,
                    run.status,
                    run.reason,
                    run.seconds,
                    run.pairs,
                    run.wulf_version,
                ),
            )
            database.executemany(
                "INSERT INTO skipped VALUES (?, ?, ?)",
                [(run.number, node, reason) for node, reason in run.skipped.items()],
            )
            database.executemany(
                "INSERT INTO times VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        run.number,
                        one.op,
                        one.size_bytes,
                        *_both(one.nodes),
                        one.time_s,
                        one.launches,
                        one.disturbed,
                    )
                    for one in times
                ],
            )
            database.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", changed)

    def _changed(
        self, run: int, node: str, known: Mapping[str, str | None]
    ) -> Iterator[tuple[int, str, str, str | None]]:
        before = self.facts_of(node)
        for fact, value in known.items():
            if fact not in before or before[fact] != value:
                yield run, node, fact, value
        for fact, value in before.items():
            if fact not in known and value is not None:
                yield run, node, fact, None

    def facts_of(self, node: str) -> dict[str, str | None]:
        """Return what was last known of a node."""
        # SQLite takes the other columns from the row that has the maximum.
        query = "SELECT fact, value, max(run) FROM facts WHERE node = ? GROUP BY fact"
        return {fact: value for fact, value, _ in self._rows(query, node)}

    def fact_changes(self, nodes: Sequence[str], after_run: int, until_run: int) -> list[FactChange]:
        """Return the facts of these nodes that changed after one run and until another; the rarest first."""
        found: dict[tuple[str, str | None, str | None, int], list[str]] = {}
        times: dict[str, int] = {}
        for node in nodes:
            for fact, count in self._rows(
                "SELECT fact, count(*) - 1 FROM facts WHERE node = ? GROUP BY fact HAVING max(run) > ?",
                node,
                after_run,
            ):
                times[fact] = max(times.get(fact, 0), count)
            query = """
                SELECT fact, value, run,
                    (SELECT value FROM facts b WHERE b.node = a.node AND b.fact = a.fact AND b.run < a.run
                     ORDER BY b.run DESC LIMIT 1),
                    EXISTS (SELECT 1 FROM facts b WHERE b.node = a.node AND b.run < a.run)
                FROM facts a WHERE node = ? AND run > ? AND run <= ?"""
            for fact, after, run, before, seen in self._rows(query, node, after_run, until_run):
                if seen:
                    found.setdefault((fact, before, after, run), []).append(node)
        changes = [
            FactChange(fact=fact, nodes=there, before=before, after=after, run=run, times=times[fact])
            for (fact, before, after, run), there in found.items()
        ]
        return sorted(changes, key=lambda one: (one.times, -len(one.nodes), one.fact))

    def times(self, after_run: int = 0) -> list[Rows]:
        """Return what runs after one have measured, by operation and size; runs in time order."""
        found: dict[tuple[str, int], Rows] = {}
        query = "SELECT op, size_bytes, run, node, peer, time_s FROM times WHERE run > ? ORDER BY op, size_bytes, run"
        for op, size, run, node, peer, time_s in self._rows(query, after_run):
            rows = found.get((op, size))
            if rows is None:
                rows = found[op, size] = Rows(op=op, size_bytes=size, run=[], node=[], peer=[], time_s=[])
            rows.run.append(run)
            rows.node.append(node)
            rows.peer.append(peer)
            rows.time_s.append(time_s)
        for (op, size), rows in found.items():
            for run, time_s in zip(rows.run, rows.time_s, strict=True):
                if not (isinstance(time_s, float) and 0 < time_s < _LONGEST_S):
                    raise StoreError(
                        f"{self.path} is damaged: run {run} has measured {time_s!r} s of {op} at {size} B; {_MEND}"
                    )
        return list(found.values())

    def disturbed(self) -> set[tuple[int, str, int, str, str]]:
        """Return what was measured under other load in more than half of its launches."""
        query = "SELECT run, op, size_bytes, node, peer FROM times WHERE 2 * disturbed > launches"
        return set(self._rows(query))

    def count_times(self) -> int:
        """Return how much was measured."""
        return int(self._rows("SELECT count(*) FROM times")[0][0])

    def last_measured(self) -> dict[tuple[str, str], int]:
        """Return for each pair of nodes the last run that has measured it."""
        return {
            (node, peer): run
            for node, peer, run in self._rows(
                "SELECT node, peer, max(run) FROM times WHERE peer <> '' GROUP BY node, peer"
            )
        }

    def alarms(self) -> list[Alarm]:
        """Return all alarms, the oldest first."""
        at = dict(self._rows("SELECT run, at FROM runs"))
        query = """SELECT alarm, level, op, size_bytes, node, peer, kind, direction, ratio, low, high, before_run,
            after_run, found_run, state, closed_at, note FROM alarms ORDER BY alarm"""
        found = []
        for row in self._rows(query):
            try:
                found.append(_alarm(row, at))
            except (msgspec.ValidationError, TypeError, ValueError) as error:
                why = printable(str(error), 120)
                raise StoreError(f"{self.path} is damaged: alarm {row[0]}: {why}; {_MEND}") from None
        return found

    def put_alarms(self, alarms: Iterable[Alarm]) -> None:
        """Keep alarms, new ones and those whose state is another."""
        with self._transaction() as database:
            database.executemany(
                "INSERT OR REPLACE INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_alarm_row(alarm) for alarm in alarms],
            )

    def suspects(self) -> list[tuple[str, str]]:
        """Return the pairs that the last run wants to be measured again."""
        return [(node, peer) for node, peer in self._rows("SELECT node, peer FROM suspects ORDER BY place")]

    def put_suspects(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Keep the pairs that the next run is to measure again."""
        with self._transaction() as database:
            database.execute("DELETE FROM suspects")
            database.executemany(
                "INSERT INTO suspects VALUES (?, ?, ?)", [(*pair, place) for place, pair in enumerate(pairs)]
            )

    def thin(self, before: str) -> int:
        """Take what was measured before a time (ISO 8601, UTC) away, but for one run of each week.

        Runs around a change are kept whole. Returns how many runs were thinned.
        """
        query = """
            SELECT run FROM runs WHERE at < ?1 AND status = 'measured'
            AND run NOT IN (SELECT min(run) FROM runs WHERE at < ?1 AND status = 'measured'
                            GROUP BY strftime('%Y-%W', at))
            AND NOT EXISTS (SELECT 1 FROM alarms WHERE abs(alarms.after_run - runs.run) <= ?2)
            AND EXISTS (SELECT 1 FROM times WHERE times.run = runs.run)"""
        runs = self._rows(query, before, _KEPT_AROUND)
        with self._transaction() as database:
            database.executemany("DELETE FROM times WHERE run = ?", runs)
        return len(runs)


def _text(raw: bytes) -> str:
    """Return a text of the file, which anybody may have written, safe to show."""
    return printable(raw, _LONGEST_TEXT)


def _both(nodes: Sequence[str]) -> tuple[str, str]:
    return (nodes[0] if nodes else "", nodes[1] if len(nodes) > 1 else "")


def _alarm(row: tuple[Any, ...], at: Mapping[int, str]) -> Alarm:
    number, level, op, size, node, peer, kind, direction, ratio, low, high = row[:11]
    before_run, after_run, found_run, state, closed_at, note = row[11:]
    return msgspec.convert(
        {
            "id": number,
            "level": level,
            "op": op,
            "size_bytes": size,
            "nodes": [name for name in (node, peer) if name],
            "kind": kind,
            "direction": direction,
            "change": {
                "value": ratio,
                "low": low,
                "high": high,
                "confidence": 0.95,
                "unit": "ratio",
                "n": max(found_run - after_run + 1, 1),
                "method": "median of the window ÷ median before",
            },
            "before_run": before_run,
            "before_at": at.get(before_run, ""),
            "after_run": after_run,
            "after_at": at.get(after_run, ""),
            "found_run": found_run,
            "found_at": at.get(found_run, ""),
            "state": state,
            "closed_at": closed_at,
            "note": note,
        },
        Alarm,
    )


def _alarm_row(alarm: Alarm) -> tuple[object, ...]:
    return (
        alarm.id,
        alarm.level,
        alarm.op,
        alarm.size_bytes,
        *_both(alarm.nodes),
        alarm.kind,
        alarm.direction,
        alarm.change.value,
        alarm.change.low,
        alarm.change.high,
        alarm.before_run,
        alarm.after_run,
        alarm.found_run,
        alarm.state,
        alarm.closed_at,
        alarm.note,
    )


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    try:
        for number in range(version, VERSION):
            connection.executescript(f"BEGIN; {_STEPS[number]} PRAGMA user_version = {number + 1}; COMMIT;")
    except _FAILS as error:
        raise StoreError(f"the history cannot be brought up to this version: {error}; {_MEND}") from None


def network_file_system(path: Path) -> str | None:
    """Return the kind of file system that a path is on, where other machines may have it too; None elsewhere."""
    there = str(path.resolve())
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        point = words[4].replace("\\040", " ")
        inside = there == point or there.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, words[words.index("-") + 1]
    return kind if kind in NETWORK_FILE_SYSTEMS else None
