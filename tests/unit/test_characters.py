"""Programs' profiles: which class follows from what, and the words for it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wulf.apps import profile
from wulf.errors import ProbeError
from wulf.records import SCHEMA_VERSION, Estimate
from wulf.records.profiled import Character, Characters, Gain, MessageClass, MpiProfile, RankProfile
from wulf.report import characters as report

SECOND = 1_000_000_000


def rank(
    computing: float, *, point: float = 0.0, collective: float = 0.0, one_sided: float = 0.0
) -> RankProfile:
    spent = {"point to point": point, "waiting": 0.0, "collective": collective, "one-sided": one_sided}
    whole = computing + sum(spent.values())
    return RankProfile(
        run_ns=round(whole * SECOND),
        partners=2,
        started=0,
        threads=1,
        calls=1000,
        ns={kind: round(s * SECOND) for kind, s in spent.items()},
    )


def messages(count: int, size: int, kind: str = "point to point") -> MessageClass:
    return MessageClass(kind=kind, below_bytes=1 << size.bit_length(), count=count, bytes=count * size)


def character(ranks: list[RankProfile], *moved: MessageClass) -> Character:
    return profile.character("run", "./a", MpiProfile(version="1", ranks=ranks, messages=list(moved)))


@pytest.mark.parametrize(
    ("ranks", "moved", "expected"),
    [
        ([rank(9.8, point=0.2)] * 4, [messages(4000, 100)], "computes"),
        ([rank(5, point=5)] * 4, [messages(200_000, 100)], "small messages"),
        ([rank(5, point=5)] * 4, [messages(2000, 1 << 20)], "large messages"),
        ([rank(5, collective=5)] * 4, [messages(100_000, 8, "collective")], "small collectives"),
        ([rank(5, collective=5)] * 4, [messages(2000, 1 << 20, "collective")], "large collectives"),
        ([rank(5, one_sided=5)] * 4, [messages(200_000, 100, "one-sided")], "one-sided"),
        # One computes for nine seconds, the others wait for it.
        ([rank(9, point=1), *[rank(1, point=9)] * 3], [messages(400_000, 100)], "uneven ranks"),
        # A few messages do not take seconds.
        ([rank(5, point=5)] * 4, [messages(100, 100)], "waiting"),
    ],
)
def test_the_class_of_a_program(ranks, moved, expected):
    assert character(ranks, *moved).program_class == expected


def test_the_figures_of_a_program():
    found = character(
        [rank(6, point=3, collective=1), rank(8, point=2)], messages(100, 1), messages(20, 5000)
    )
    assert found.share == pytest.approx((0.3, 0.2, 0.4))
    assert found.imbalance == pytest.approx(0.1)
    assert found.collective == pytest.approx(1 / 6)
    assert found.messages_per_s == pytest.approx(120 / 10 / 2)
    assert (found.median_bytes, found.partners) == (2, 2)
    assert character([rank(1)]).median_bytes is None


def test_a_damaged_profile_is_named():
    with pytest.raises(ProbeError, match=r"profile\.json: the profile of the program is damaged"):
        profile.read(b'{"type":"profile"', "profile.json")


def test_every_class_has_words_and_gains_stand_beside_them():
    of = character([rank(5, point=5)] * 4, messages(200_000, 100))
    ratio = Estimate(value=0.9, low=0.88, high=0.92, confidence=0.95, unit="ratio", n=12, method="paired")
    gain = Gain(setting="nic.rx_usecs=0", ratio=ratio, verdict="better", reason="")
    unknown = Gain(setting="nic.mtu=9000", ratio=None, verdict="no decision", reason="every launch failed")
    shown = Console(file=io.StringIO(), width=200)
    programs = [
        Character(
            **{name: getattr(of, name) for name in of.__struct_fields__}
            | {"program_class": kind, "gains": [gain, unknown]}
        )
        for kind in report.MEANING
    ]
    report.render_text(Characters(schema_version=SCHEMA_VERSION, programs=programs), shown)
    said = shown.file.getvalue()
    assert all(kind in said for kind in report.MEANING)
    assert "−10 % (−12 to −8), better" in said and "unknown" in said
