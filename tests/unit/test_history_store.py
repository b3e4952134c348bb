"""The history of a watch as a file: readable without wulf, one writer, old versions brought up."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from wulf.base.errors import StoreError
from wulf.base.records.watched import WatchedTime, WatchRun
from wulf.base.store import history
from wulf.base.store.history import History

FIRST = datetime(2025, 1, 6, 2, 30, tzinfo=UTC)


def run(number, status="measured", **more):
    at = (FIRST + timedelta(days=number - 1)).isoformat(timespec="seconds")
    return WatchRun(number=number, at=at, utc_offset_s=3600, status=status, pairs=1, wulf_version="1", **more)


def time(first="n1", second="n2", time_s=1e-5, **more):
    return WatchedTime(
        op="mpi_pingpong", size_bytes=64, nodes=(first, second), time_s=time_s, launches=3, **more
    )


def test_any_program_can_read_it(tmp_path):
    with History(tmp_path, writing=True) as kept:
        kept.add(run(1, skipped={"n3": "busy"}), [time(time_s=2e-5)], {"n1": {"kernel.release": "6.1"}})
    with sqlite3.connect(tmp_path / history.NAME) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (history.VERSION,)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        query = "SELECT runs.at, times.node, times.peer, times.time_s FROM times JOIN runs USING (run)"
        assert other.execute(query).fetchall() == [("2025-01-06T02:30:00+00:00", "n1", "n2", 2e-5)]
        assert other.execute("SELECT node, reason FROM skipped").fetchall() == [("n3", "busy")]
    other.close()


def test_what_was_kept_is_read_back(tmp_path):
    first, second = run(1, skipped={"n3": "busy"}, seconds=12.5), run(2, "skipped", reason="nobody idle")
    with History(tmp_path, writing=True) as kept:
        kept.add(first, [time()], {})
        kept.add(second, [], {})
    with History(tmp_path) as kept:
        assert kept.runs() == [first, second]
        assert kept.next_number() == 3
        (rows,) = kept.times()
        assert (rows.op, rows.run, rows.node, rows.peer, rows.time_s) == (
            "mpi_pingpong",
            [1],
            ["n1"],
            ["n2"],
            [1e-5],
        )
        assert kept.last_measured() == {("n1", "n2"): 1}
        assert kept.nodes() == ["n1", "n2", "n3"]


def test_there_is_one_writer_and_many_readers(tmp_path):
    with History(tmp_path, writing=True) as writer:
        writer.add(run(1), [time()], {})
        with pytest.raises(StoreError, match="is being written by process"):
            History(tmp_path, writing=True)
        with History(tmp_path) as reader:
            assert len(reader.runs()) == 1
            with pytest.raises(StoreError, match="what was there before is kept"):
                reader.put_suspects([("n1", "n2")])


def test_a_run_is_there_as_a_whole_or_not_at_all(tmp_path):
    with History(tmp_path, writing=True) as kept:
        with pytest.raises(StoreError):
            kept.add(run(1), [time(), time()], {})  # the same twice
        assert kept.runs() == [] and kept.times() == []


def test_a_newer_file_is_refused_and_named(tmp_path):
    History(tmp_path, writing=True).close()
    with sqlite3.connect(tmp_path / history.NAME) as other:
        other.execute(f"PRAGMA user_version = {history.VERSION + 1}")
    other.close()
    with pytest.raises(StoreError, match=r"history\.sqlite was written by a newer wulf"):
        History(tmp_path)


def test_an_older_file_is_brought_up_and_keeps_what_it_has(tmp_path, monkeypatch):
    with History(tmp_path, writing=True) as kept:
        kept.add(run(1), [time()], {})
    further = "ALTER TABLE runs ADD COLUMN watts REAL;"
    monkeypatch.setattr(history, "_STEPS", (*history._STEPS, further))
    monkeypatch.setattr(history, "VERSION", history.VERSION + 1)
    with History(tmp_path) as kept:  # a reader, too
        assert len(kept.runs()) == 1
    with sqlite3.connect(tmp_path / history.NAME) as other:
        assert other.execute("SELECT run, watts FROM runs").fetchall() == [(1, None)]
    other.close()


def test_what_is_no_history_is_said(tmp_path):
    with pytest.raises(StoreError, match="there is no history in"):
        History(tmp_path)
    (tmp_path / history.NAME).write_text("something else, and long enough to be looked at by SQLite" * 20)
    with pytest.raises(StoreError, match=r"history\.sqlite cannot be read"):
        History(tmp_path)


def test_of_facts_the_changes_are_kept(tmp_path):
    with History(tmp_path, writing=True) as kept:
        for number, facts in enumerate(
            (
                {"kernel": "6.1", "mtu": "1500"},
                {"kernel": "6.1", "mtu": "1500"},
                {"kernel": "6.2", "qdisc": "fq"},
            ),
            1,
        ):
            kept.add(run(number), [], {"n1": facts})
        assert kept.facts_of("n1") == {"kernel": "6.2", "mtu": None, "qdisc": "fq"}
        changed = {one.fact: (one.before, one.after, one.run) for one in kept.fact_changes(["n1"], 2, 3)}
        assert changed == {"kernel": ("6.1", "6.2", 3), "mtu": ("1500", None, 3), "qdisc": (None, "fq", 3)}
        # A node that is seen for the first time has not changed.
        assert kept.fact_changes(["n1"], 0, 1) == []
        assert kept.fact_changes(["n2"], 0, 3) == []


def test_the_rarest_facts_come_first_and_nodes_share_one(tmp_path):
    with History(tmp_path, writing=True) as kept:
        for number in range(1, 8):
            speed = "1e10" if number < 7 else "1e9"
            facts = {"flaps": str(number), "speed": speed}
            kept.add(run(number), [], {"n1": facts, "n2": facts})
        first, second = kept.fact_changes(["n1", "n2"], 6, 7)
        assert (first.fact, first.nodes, first.before, first.after) == ("speed", ["n1", "n2"], "1e10", "1e9")
        assert (second.fact, second.times) == ("flaps", 6)


def test_years_are_thinned_to_a_run_a_week_but_not_around_a_change(tmp_path):
    with History(tmp_path, writing=True) as kept:
        for number in range(1, 301):
            kept.add(run(number), [time()], {})
        whole = len(kept.times()[0].run)
        before = (FIRST + timedelta(days=140)).isoformat(timespec="seconds")
        thinned = kept.thin(before)
        left = kept.times()[0].run
        assert whole - thinned == len(left)
        # Weeks begin on Mondays, as the first run does.
        assert left[:4] == [1, 8, 15, 22] and left[-160:] == list(range(141, 301))
        assert kept.thin(before) == 0
        # That there was a run, and when, is never forgotten.
        assert len(kept.runs()) == 300


def test_the_kind_of_a_file_system_is_known(tmp_path):
    assert history.network_file_system(tmp_path) is None


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE runs SET at = 'yesterday'", "run 1 was at 'yesterday'"),
        ("UPDATE times SET time_s = 'fast'", "run 1 has measured 'fast' s of mpi_pingpong at 64 B"),
        ("UPDATE times SET time_s = -1", "has measured -1.0 s"),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path, damage, said):
    with History(tmp_path, writing=True) as kept:
        kept.add(run(1), [time()], {})
    with sqlite3.connect(tmp_path / history.NAME) as other:
        other.execute(damage)
    other.close()
    with History(tmp_path) as kept, pytest.raises(StoreError, match=f"{said}.*move it away"):
        kept.runs()
        kept.times()


@pytest.mark.parametrize("writing", [False, True])
def test_an_empty_file_is_no_new_history(tmp_path, writing):
    (tmp_path / history.NAME).touch()
    with pytest.raises(StoreError, match=r"is damaged: it is empty; .*move it away"):
        History(tmp_path, writing=writing)
    assert (tmp_path / history.NAME).stat().st_size == 0
