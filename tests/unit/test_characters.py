"""Programs' profiles: which class follows from what, and the words for it."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from rich.console import Console

from tests.unit.make_cells import analysis, cell
from wulf.base.errors import ProbeError, TransportError
from wulf.base.records import SCHEMA_VERSION, Estimate, command_operation
from wulf.base.records.profiled import Character, Characters, Gain, MessageClass, MpiProfile, RankProfile
from wulf.node.probe.command import JOB_TIME, LIMIT_S
from wulf.page.terminal import print_page
from wulf.tools.application import page as report
from wulf.tools.application import profile, work
from wulf.tools.application.request import CharacteriseRequest

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


@pytest.mark.parametrize(
    ("command", "family", "expected"),
    [
        # As 'wulf program run --ranks' writes it where [mpi] env has a variable.
        (
            "env A=1 '/opt/my mpi/bin/mpirun' -np 2 --host a:1,b:1 -x A --bind-to none ./heat -x 3",
            "openmpi",
            "env A=1 '/opt/my mpi/bin/mpirun' -x LD_PRELOAD -x WULF_PROFILE -np 2 --host a:1,b:1 -x A "
            "--bind-to none ./heat -x 3",
        ),
        ('"$MPIRUN" -x A ./heat', "openmpi", '"$MPIRUN" -x LD_PRELOAD -x WULF_PROFILE -x A ./heat'),
        ("which mpirun && sbatch -x node05 job.sh", "openmpi", None),
        ("env A=1 srun --nodes 2 -x node05 ./heat", "openmpi", None),
        ("mpirun ./solve -x 3", "openmpi", None),
        ("mpirun -n 2 -launcher ssh ./solve -x 3", "mpich", None),
        ("mpirun -np 2 ./heat", "openmpi", None),
    ],
)
def test_every_rank_is_told_of_the_library_that_counts(command, family, expected):
    text, variables = profile.counted(command, family, "/lib/count.so", "/tmp/out")
    assert text == (expected or command)
    assert (variables["LD_PRELOAD"], variables["WULF_PROFILE"]) == ("/lib/count.so", "/tmp/out")
    # Open MPI refuses to be told in two ways.
    told = None if expected else "LD_PRELOAD=/lib/count.so;WULF_PROFILE=/tmp/out"
    assert variables.get("OMPI_MCA_mca_base_env_list") == told


def test_ranks_that_wait_for_others_without_the_library_are_ended_soon():
    heat = command_operation("mpirun -np 2 ./heat", name="run time")
    of_run = analysis([cell(0, [2.0, 3.0, 4.0], "run time", ("node01",)), cell(0, [99.0], "rate")])
    assert work._limit_s(of_run, heat) == pytest.approx(10 * 3 + 60)
    # Without a run time there is nothing to go by; that of a job says nothing of the queue.
    assert work._limit_s(analysis([]), heat) == LIMIT_S
    queued = command_operation(f"sbatch job.sh; echo {JOB_TIME} 5", name="run time")
    assert work._limit_s(of_run, queued) == LIMIT_S


#: A profile of one rank that ran for so long.
ONE_RANK = (
    b'{"type":"profile","version":"1","messages":[],"ranks":'
    b'[{"run_ns":%d,"partners":0,"started":0,"threads":1,"calls":9,"ns":{}}]}'
)


@pytest.mark.parametrize(
    "raw",
    [b"", b'{"type":"profile"', b'{"type":"profile","version":"1","messages":[],"ranks":[]}', ONE_RANK % 0],
)
def test_a_damaged_profile_is_named(raw):
    with pytest.raises(ProbeError, match=r"profile\.json: the profile of the program is damaged"):
        profile.read(raw, "profile.json")
    assert profile.read(ONE_RANK % 5, "profile.json")


def test_every_class_has_words_and_gains_stand_beside_them():
    of = character([rank(5, point=5)] * 4, messages(200_000, 100))
    ratio = Estimate(value=0.9, low=0.88, high=0.92, confidence=0.95, unit="ratio", n=12, method="paired")
    gain = Gain(setting="nic.rx_usecs=0", ratio=ratio, verdict="better", reason="")
    unknown = Gain(setting="nic.mtu=9000", ratio=None, verdict="no decision", reason="every launch failed")
    printed = Gain(
        setting="nic.rx_usecs=0", what="FFT", ratio=ratio, verdict="worse", reason="its rate is lower"
    )
    shown = Console(file=io.StringIO(), width=200)
    programs = [
        Character(
            **{name: getattr(of, name) for name in of.__struct_fields__}
            | {"program_class": kind, "gains": [gain, unknown, printed]}
        )
        for kind in report.MEANING
    ]
    print_page(report.build(Characters(schema_version=SCHEMA_VERSION, programs=programs)), shown)
    said = shown.file.getvalue()
    assert all(kind in said for kind in report.MEANING)
    assert "−10 % (−12 to −8), better" in said and "unknown" in said
    # A number that the program prints has a row of its own, with its own verdict.
    assert re.search(r"FFT +−10 % \(−12 to −8\), worse", said)


@pytest.mark.parametrize("error", [ProbeError("exit code 213"), TransportError("node02: no route")])
def test_a_program_that_cannot_be_launched_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    of = character([rank(5, point=5)] * 4, messages(200_000, 100))

    def told(_: object, run: SimpleNamespace, *__: object) -> Character:
        if run.manifest.id == "farm":
            raise error
        return of

    monkeypatch.setattr(work, "opened", lambda name, _: SimpleNamespace(manifest=SimpleNamespace(id=name)))
    monkeypatch.setattr(work, "_operation", lambda run: run)
    monkeypatch.setattr(work, "_character", told)
    found = work.characterise(CharacteriseRequest(programs=["farm", "heat"]), Mock())
    assert (found.programs, found.failed, work.exit_code(found)) == ([of], {"farm": str(error)}, 3)
    with pytest.raises(ProbeError, match=f"farm: {error}"):
        work.characterise(CharacteriseRequest(programs=["farm"]), Mock())
