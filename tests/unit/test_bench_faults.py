"""Which orders of events `bench.faults` goes through."""

from __future__ import annotations

from bench.faults import orders


def test_no_order_is_there_twice_and_a_short_run_has_some_of_every_kind() -> None:
    every = orders.orders()
    assert len(set(map(str, every))) == len(every)
    few = orders.few()
    assert {case.change for case in few} >= {"sysctl", "pm_qos", "smt", "nft", "status"}
    assert set(map(str, few)) <= set(map(str, every))


def test_every_damage_meets_every_contact() -> None:
    met = {(case.fault, case.at) for case in orders.orders() if case.fault in orders.DAMAGES}
    wanted = {(damage, contact) for damage in orders.DAMAGES for contact in orders.CONTACTS}
    # What is not looked at again before a change is confirmed is no reason not to confirm it.
    assert met == wanted - {("missing after", "confirm")}
