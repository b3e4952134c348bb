"""One launch of HPL: its input on the first node, the job, what it prints while it runs, the verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from wulf.base import hpl_output
from wulf.base.contracts import Launcher, MpiJob, Transport
from wulf.base.errors import OverdueError, ProbeError, TransportError
from wulf.base.interfaces import Interface
from wulf.base.nodeset import reasons_text
from wulf.base.store.files import timestamp
from wulf.base.text import last_line, printable
from wulf.node.fleet.placement import spread
from wulf.tools.hpl import program as hpl
from wulf.tools.hpl.record import HplLaunch, HplPhase, HplSetting

#: Commands beside the job itself may take so long [s].
ASK_S = 60.0
#: A launch is judged by its progress from this share of its columns on: the first panels say little.
FROM_SHARE = 0.2
_WRITE = 'cd "$1" && rm -f "$3" && cat >"$2"'
_RUN = 'cd "$1" && shift && exec "$@"'


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """When a launch is so slow that it is ended."""

    #: Time of the solution [s].
    time_s: float
    #: What the launch takes beside the solution: start, matrix, check [s].
    beside_s: float
    #: (share of the columns, mean rate since the beginning [GFLOPS]) of the best launch; empty where it did not say.
    best: Sequence[tuple[float, float]] = ()
    #: Times longer than the best.
    factor: float

    def too_slow(self, now: hpl_output.Progress) -> bool:
        """Whether a launch is slower than the best was at the same place, by the factor."""
        rate = self.rate_at(now.fraction)
        return now.fraction >= FROM_SHARE and rate is not None and now.gflops * self.factor < rate

    def rate_at(self, fraction: float) -> float | None:
        """Return the rate of the best launch at a share of the columns, or soon after it."""
        return next((rate for share, rate in self.best if share >= fraction), None)


class HplSite(msgspec.Struct, frozen=True, kw_only=True):
    """Where launches run."""

    transport: Transport
    launcher: Launcher
    #: Path of the program, the same on all nodes.
    program: str
    kind: hpl.Kind
    nodes: list[str]
    addresses: Mapping[str, str]
    #: Directory, there on all nodes, that input and output are in on the first one.
    directory: str
    interface: Interface
    subnet: str | None
    #: Nodes share CPUs: ranks give theirs away while they wait.
    shared_cpu: bool
    env: Mapping[str, str]


@contextmanager
def workplace(site: HplSite) -> Iterator[None]:
    """Make the directory of a run on all nodes; it is removed when the context ends.

    A launcher may change to it on every node, and end where it is not there.

    Raises
    ------
    TransportError
        It cannot be made on a node.
    """
    answers = site.transport.run(["mkdir", "-p", site.directory], site.nodes, timeout_s=ASK_S)
    lost = {node: answer.reason for node, answer in answers.items() if answer.status != "ok"}
    try:
        if lost:
            raise TransportError(f"{site.directory} cannot be made: {reasons_text(lost)}")
        yield
    finally:
        site.transport.run(["rm", "-rf", site.directory], site.nodes, timeout_s=ASK_S)


def launch(
    site: HplSite, index: int, phase: HplPhase, n: int, chosen: HplSetting, limit: Limit | float
) -> HplLaunch:
    """Run HPL once; a failure is part of the result.

    Parameters
    ----------
    limit
        When it is ended: because it is so much slower than others, or after so long that it has failed [s].

    Raises
    ------
    TransportError
        The first node cannot be reached.
    """
    started_at, begin = timestamp(), time.monotonic()
    argv = site.launcher.argv(_job(site, chosen))
    _write(site, n, chosen)
    ran = _run(site, argv, chosen, limit)
    text = f"{ran.text}\n{_output(site)}" if site.kind == "hpcc" else ran.text
    wall_s = time.monotonic() - begin
    record = HplLaunch(
        index=index,
        phase=phase,
        n=n,
        setting=chosen,
        env=dict(site.env),
        started_at=started_at,
        wall_s=wall_s,
        status="failed",
        time_s=None,
        gflops=None,
        residual=None,
        argv=argv,
    )
    if ran.cut and isinstance(limit, Limit):
        rate = _at_most(n, limit, ran.progress)
        return msgspec.structs.replace(
            record, status="cut", reason=ran.cut, gflops=rate, time_s=hpl_output.operations(n) / rate / 1e9
        )
    return _judged(record, hpl.outcome(text, n, chosen), ran)


class _Ran(msgspec.Struct, kw_only=True):
    """What is known of a job that has ended."""

    text: str = ""
    #: Why it was cut; empty when it was not.
    cut: str = ""
    #: Why it ended badly.
    error: str = ""
    progress: hpl_output.Progress | None = None


def _judged(record: HplLaunch, outcome: hpl.Outcome, ran: _Ran) -> HplLaunch:
    row = outcome.row
    if row is None or ran.error:
        # What HPL complains of tells more than how the job ended, and that more than that there is no result.
        own = outcome.reason.startswith("HPL:") or not ran.error
        return msgspec.structs.replace(record, reason=printable(outcome.reason if own else ran.error, 500))
    return msgspec.structs.replace(
        record,
        status="ok",
        time_s=row.seconds,
        gflops=row.gflops,
        residual=max(residual.value for residual in row.residuals),
        timings_s=row.timings_s,
        progress=[(step.fraction, step.gflops) for step in row.progress],
    )


def _at_most(n: int, limit: Limit, now: hpl_output.Progress | None) -> float:
    """Return the rate that a launch which was cut would have had at its end, at most [GFLOPS]."""
    slow = hpl_output.operations(n) / limit.time_s / 1e9
    rate = limit.rate_at(now.fraction) if now is not None else None
    if now is None or not rate or not now.gflops:
        return slow
    # It may have stopped after panels that were quick.
    return min(slow, slow * limit.factor * now.gflops / rate)


def _job(site: HplSite, chosen: HplSetting) -> MpiJob:
    return MpiJob(
        program=site.program,
        arguments=[],
        hosts=[(node, site.addresses.get(node, node)) for node in spread(site.nodes, chosen.ranks)],
        interface=site.interface,
        subnet=site.subnet,
        shared_cpu=site.shared_cpu,
        threads=chosen.threads,
        env={**site.env, **hpl.environment(chosen)},
    )


def _write(site: HplSite, n: int, chosen: HplSetting) -> None:
    content = hpl.hpcc_input(n, chosen) if site.kind == "hpcc" else hpl.hpl_dat([n], chosen)
    words = ["sh", "-c", _WRITE, "sh", site.directory, hpl.INPUTS[site.kind], hpl.HPCC_OUTPUT]
    first = site.nodes[0]
    answer = site.transport.run(words, [first], timeout_s=ASK_S, stdin=content.encode())[first]
    if answer.status != "ok":
        raise TransportError(f"{first}: cannot write {site.directory}/{words[5]}: {answer.reason}")


def _run(site: HplSite, argv: Sequence[str], chosen: HplSetting, limit: Limit | float) -> _Ran:
    words = ["sh", "-c", _RUN, "sh", site.directory, *argv]
    total_s = limit.time_s + limit.beside_s if isinstance(limit, Limit) else limit
    env = site.launcher.env(_job(site, chosen))
    ran, lines = _Ran(), []
    with site.transport.start(words, site.nodes[0], env=env) as process:
        try:
            for raw in process.lines(total_s, total_s):
                line = raw.decode(errors="replace")
                lines.append(line)
                ran.progress = hpl_output.progress(line) or ran.progress
                if isinstance(limit, Limit) and ran.progress is not None and limit.too_slow(ran.progress):
                    ran.cut = f"{limit.factor:g} × slower than the best at {ran.progress.fraction:.0%} of its columns"
                    break
            else:
                code = process.wait(ASK_S)
                if code:
                    said = last_line(process.stderr()) or "no message"
                    ran.error = f"{site.program} ended with code {code}: {said}"
        except OverdueError:
            if isinstance(limit, Limit):
                ran.cut = f"it took {limit.factor:g} × as long as the best"
            else:
                ran.error = f"it has not ended in {total_s:.0f} s"
        except (TransportError, ProbeError) as error:
            ran.error = str(error)
        # What HPL refuses it says there.
        lines += process.stderr().decode(errors="replace").splitlines()
    ran.text = "\n".join(lines)
    return ran


def _output(site: HplSite) -> str:
    """Return what HPC Challenge wrote into its file."""
    path = f"{site.directory}/{hpl.HPCC_OUTPUT}"
    answer = site.transport.run(["cat", path], site.nodes[:1], timeout_s=ASK_S)[site.nodes[0]]
    return answer.stdout.decode(errors="replace") if answer.status == "ok" else ""
