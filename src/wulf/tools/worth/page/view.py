"""From what networks are worth to what is shown of it.  Pure."""

from __future__ import annotations

from wulf.base.records import Estimate
from wulf.base.text import count, printable
from wulf.base.units import format_spread, format_value
from wulf.page.blocks import Notes, Page, PageOnly, Section, Verdict
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import change_item, name
from wulf.tools.worth.page import figures
from wulf.tools.worth.record import Worth

FLAGS: dict[str, Flag] = {"pays": "good", "does not pay": "error", "cannot be told": "unknown"}
#: Lines of what figures depend on, for each network.
_INFLUENCES = 4
NOTHING = "Nothing can be said of what other networks are worth"


def build(found: Worth) -> Page:
    """Return all that is shown."""
    answer, *conclusion = found.conclusion or [NOTHING]
    flag: Flag = "good" if any(one.verdict == "pays" for one in found.networks) else "unknown"
    return Page(
        title=answer.rstrip("."),
        lede=f"{count(found.nodes, 'node')}, {found.hours_a_year:g} hours a year, over {found.years:g} years. Network "
        f"calibrated by {name(found.run)}; {count(found.samples, 'sample')}, seed {found.seed}.",
        kind="Worth of networks",
        verb="program worth",
        head=(Verdict(flag, tuple(conclusion)),) if conclusion else (),
        sections=(
            Section(
                "money",
                "Money",
                (
                    *(figures.net(found), figures.ports(found)),
                    *(_networks(found), _instead(found), _parts(found), _energy(found)),
                ),
            ),
            Section("depends", "What it depends on", (figures.tornado(found), _influences(found))),
            Section("jobs", "Jobs", (_jobs(found),)),
            Section("notes", "What must be known", (Notes(tuple(found.notes)), PageOnly((_sources(found),)))),
        ),
    )


def _networks(found: Worth) -> Table:
    return Table(
        title="Money by network",
        columns=(
            Column("network"),
            Column("verdict"),
            Column(f"net value in {found.years:g} years", numeric=True),
            Column("pays at a port of", numeric=True),
            Column("has paid after", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.network, 60)),
                Item(one.verdict, None, FLAGS[one.verdict]),
                _spread(one.net),
                _spread(one.break_even_port),
                _pay_back(one.pay_back_years),
            )
            for one in found.networks
        ),
        note="Intervals 95 %, of predictions and prices together. Net value: of the saved node-hours, less power, less "
        "the price.",
    )


def _instead(found: Worth) -> Table:
    return Table(
        title="Instead of it",
        columns=(
            Column("network"),
            Column("net value beyond tuning", numeric=True),
            Column("worth as much as", numeric=True),
            Column("the same money buys", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.network, 60)),
                _known(one.net_after_tuning),
                _spread(one.worth_nodes),
                _known(one.nodes_for_it),
            )
            for one in found.networks
        ),
        note="Tuning costs no ports; more nodes make no job faster: they only let more jobs run.",
    )


def _parts(found: Worth) -> Table:
    return Table(
        title="What the net value is made of",
        columns=(
            Column("network"),
            Column("saved node-hours a year", numeric=True),
            Column("their value a year", numeric=True),
            Column("power a year", numeric=True),
            Column("price of all ports", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.network, 60)),
                _spread(one.saved_node_hours),
                _spread(one.value),
                _spread(one.power),
                _spread(one.price),
            )
            for one in found.networks
        ),
    )


def _energy(found: Worth) -> Table:
    return Table(
        title="Energy that is saved",
        columns=(Column("network"), Column("energy saved a year", numeric=True)),
        rows=tuple(
            (
                Item(printable(one.network, 60)),
                Item("no watts given", None, "unknown") if one.energy is None else _spread(one.energy),
            )
            for one in found.networks
        ),
        note="That of the saved node-hours by the watts in the file of prices (of a node at work, less that of one "
        "without work where they are given), less what NICs and switches take more. The value of node-hours has it "
        "already.",
    )


def _spread(figure: Estimate) -> Item:
    return Item(format_spread(figure), figure.value)


def _known(figure: Estimate | None) -> Item:
    return Item("not asked", None, "unknown") if figure is None else _spread(figure)


def _pay_back(years: Estimate | None) -> Item:
    if years is None:
        return Item("never, as is likely")
    if years.high is None and years.low is not None:
        return Item(f"{format_value(years.value, 'years')} (from {years.low:.2g}; it may never)", years.value)
    return _spread(years)


def _jobs(found: Worth) -> Table:
    return Table(
        title="What each network changes of the jobs",
        columns=(
            Column("network"),
            Column("jobs like"),
            Column("share", numeric=True),
            Column("run time", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.network, 60)),
                Item(printable(job.trace, 80)),
                Item(f"{job.share:.0%}", job.share),
                change_item(job.change),
            )
            for one in found.networks
            for job in one.jobs
        ),
    )


def _influences(found: Worth) -> Table:
    return Table(
        title="What the net value depends on most",
        columns=(
            Column("network"),
            Column("input"),
            Column("net value at its lower end", numeric=True),
            Column("at its upper end", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.network, 60)),
                Item(printable(cause.what, 100)),
                Item(format_value(cause.at_low, found.currency), cause.at_low),
                Item(format_value(cause.at_high, found.currency), cause.at_high),
            )
            for one in found.networks
            for cause in one.influences[:_INFLUENCES]
        ),
        note="Each input at the ends of its 95 % interval, all others as is likely: these are bounds, so they have no "
        "interval of their own.",
    )


def _sources(found: Worth) -> Table:
    return Table(
        title="Where prices are from",
        columns=(Column("network"), Column("what it is"), Column("source")),
        rows=tuple(
            (Item(printable(one.network, 60)), Item(one.title), Item(printable(one.source, 300)))
            for one in found.networks
        ),
    )
