"""Programs side by side as people read them.  Pure."""

from __future__ import annotations

from wulf.base.records.profiled import Character, Characters, Gain, ProgramClass
from wulf.base.text import count, printable
from wulf.base.units import format_bytes
from wulf.page.blocks import Notes, Page, known
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import FLAGS, change_item, listed, name, percent

#: Class → what a network can do for such a program.
MEANING: dict[ProgramClass, str] = {
    "computes": "it hardly communicates: no setting of the network can speed it up",
    "uneven ranks": "its ranks wait for the one that computes longest: rebalance the work before tuning the network",
    "waiting": "its ranks wait for each other, not for the network: a master for its workers, or ranks that share CPUs",
    "small messages": "it waits for latency: interrupt moderation, packet filters, busy polling",
    "large messages": "it waits for bandwidth: MTU, offloads, buffers, a faster link",
    "small collectives": "it waits for the latency of collectives: their algorithms (wulf tune collectives), "
    "then latency",
    "large collectives": "it waits for the bandwidth of collectives: their algorithms (wulf tune collectives), "
    "then bandwidth",
    "one-sided": "it reads and writes the memory of other ranks: over TCP that is emulated, compare MPI libraries",
}


def build(found: Characters) -> Page:
    """Return what each program is like, and what the settings bring it."""
    classes = [
        *(f"{name(program.run)}: {program.program_class}" for program in found.programs),
        *(f"{name(run)}: unknown" for run in found.failed),
    ]
    meanings = (
        *(f"{name(program.run)}: {MEANING[program.program_class]}" for program in found.programs),
        *(f"{name(run)}: unknown: {printable(reason)}" for run, reason in found.failed.items()),
    )
    gained = any(program.gains for program in found.programs)
    return Page(
        title=listed(classes, 3) or "No program was characterised",
        lede="",
        kind="Programs",
        verb="program characterise",
        head=known(Notes(meanings), _gains(found) if gained else None, _programs(found)),
        sections=(),
    )


def _programs(found: Characters) -> Table:
    return Table(
        title="What programs do with MPI",
        columns=(
            Column("program"),
            Column("class"),
            Column("in MPI", numeric=True),
            Column("of ranks", numeric=True),
            Column("uneven", numeric=True),
            Column("in collectives", numeric=True),
            Column("messages", numeric=True),
            Column("half are below", numeric=True),
            Column("partners", numeric=True),
        ),
        rows=tuple(_row(program) for program in found.programs),
        note="One launch each, counted in its ranks. In MPI: part of the run time, mean and range of the ranks: more "
        "than that no network can bring. Uneven: part of the run time that ranks wait for one that computes longer.",
    )


def _row(program: Character) -> tuple[Item, ...]:
    mean, low, high = program.share
    return (
        Item(name(program.run)),
        Item(program.program_class),
        Item(percent(mean), mean),
        Item(f"{percent(low)} to {percent(high)}", high - low),
        Item(percent(program.imbalance), program.imbalance),
        Item(percent(program.collective), program.collective),
        Item(f"{_rate(program.messages_per_s)} /s of {count(program.ranks, 'rank')}", program.messages_per_s),
        Item("–", None)
        if program.median_bytes is None
        else Item(format_bytes(program.median_bytes), program.median_bytes),
        Item(f"{program.partners:g}", program.partners),
    )


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.3g}"


def _gains(found: Characters) -> Table:
    settings = list(dict.fromkeys(gain.setting for program in found.programs for gain in program.gains))
    rows = []
    for program in found.programs:
        by_what: dict[str, dict[str, Gain]] = {}
        for gain in program.gains:
            by_what.setdefault(gain.what, {})[gain.setting] = gain
        for what, by_setting in by_what.items():
            items = [_gain(by_setting.get(setting)) for setting in settings]
            rows.append(
                (Item(name(program.run)), Item(program.program_class), Item(printable(what, 60)), *items)
            )
    return Table(
        title="Change with a setting, in launches that took turns",
        columns=(
            Column("program"),
            Column("class"),
            Column("of"),
            *(Column(printable(setting, 60), numeric=True) for setting in settings),
        ),
        rows=tuple(rows),
    )


def _gain(gain: Gain | None) -> Item:
    if gain is None or gain.ratio is None:
        return Item("unknown", None, "unknown")
    flag: Flag = FLAGS[gain.verdict]
    return Item(f"{change_item(gain.ratio).text}, {gain.verdict}", gain.ratio.value, flag)
