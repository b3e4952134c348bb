"""``wulf settings set``: change settings on nodes, with an undo that needs nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_INTERRUPTED, UsageError
from wulf.base.nodeset import fold
from wulf.base.text import count, printable
from wulf.base.units import format_fact, parse_duration
from wulf.face.cli import complete
from wulf.face.cli.declared import option_of
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json
from wulf.face.cli.progress import staging
from wulf.node.fleet.fields import AllowMissingField, RelaxField, TakeOverField

if TYPE_CHECKING:
    from wulf.base.records import ChangeOutcome
    from wulf.node.fleet import change

SettingsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="KNOB=VALUE...",
        help="What to set; 'wulf settings list' shows all knobs.",
        autocompletion=complete.settings,
    ),
]
ConfirmOption = Annotated[
    str,
    typer.Option(
        "--confirm-within",
        help="A node that is not reached over a new connection within this time puts everything back by itself.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print every command for every node, and change nothing.")
]
TakeOverOption = Annotated[bool, option_of(TakeOverField, "take_over")]
RelaxOption = Annotated[bool, option_of(RelaxField, "relax")]
AllowMissingOption = Annotated[int, option_of(AllowMissingField, "allow_missing")]


def command(
    settings: SettingsArgument,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    dry_run: DryRunOption = False,
    confirm_within: ConfirmOption = "60s",
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    allow_missing: AllowMissingOption = 0,
    json: JsonOption = False,
) -> None:
    """Set values on all nodes, or on none.

    Every node journals its state, makes the change, and puts it back by itself unless this program reaches it over
    a new connection in time: a cut cable, a wrong MTU or a dead controller locks nobody out. Where possible the
    effect is proven on the wire (a packet of the full MTU reaches the neighbour), and the cluster's interface must
    carry data to a neighbour as it did before. The setting holds until the next boot: 'wulf settings persist' keeps
    it, 'wulf rollback' takes it back, 'wulf settings status' shows it.

    Exit code 1 when it was refused or put back.
    """
    from wulf.node.change import steps
    from wulf.node.fleet import change, change_members
    from wulf.node.fleet.clusters import cluster as resolve

    if dry_run and json:
        raise UsageError("--dry-run has no --json: it prints commands for people")
    wanted = steps.parse(settings)
    deadline_s = deadline(confirm_within)
    config = resolve(cluster)
    chosen = config.select(nodes)
    with change_members.opened(config, chosen, allow_missing=allow_missing) as there:
        with staging() as say:
            say(f"looking at {count(len(chosen), 'node')}")
            plan = there.intend(wanted, change.Permissions(take_over=take_over, relax=relax))
            commands = there.explain(plan) if dry_run else {}
        if not json:
            show_rows(plan)
        if dry_run:
            show_commands(commands, there.missing)
            return
        with changing(json=json) as say:
            outcome = there.set(plan, deadline_s=deadline_s, watch=say)
    end(outcome, json=json)


def show_commands(explained: Mapping[tuple[str, ...], list[str]], missing: Mapping[str, str]) -> None:
    """Print what would be run where."""
    for lines, who in explained.items():
        sys.stdout.write(f"\n{fold(who)}:\n" + "".join(f"  {printable(line, 500)}\n" for line in lines))
    for node, reason in missing.items():
        sys.stdout.write(f"\n{node}: {_STATES['missing']} ({printable(reason, 300)})\n")
    sys.stdout.write("\nnothing was changed (--dry-run)\n")


@contextmanager
def changing(*, json: bool) -> Iterator[Callable[[str], None]]:
    """Show what is being done; after Ctrl-C say what became of the nodes, and end."""
    with telling_of_nodes(json=json), staging() as say:
        yield say


@contextmanager
def telling_of_nodes(*, json: bool) -> Iterator[None]:
    """After Ctrl-C say what became of the nodes, and end."""
    from wulf.node.change import apply

    try:
        yield
    except apply.Interrupted as stop:
        sys.stderr.write("interrupted\n")
        show(stop.outcome, json=json)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except KeyboardInterrupt:
        sys.stderr.write(
            "interrupted; nodes put back by themselves what is not confirmed (wulf settings status)\n"
        )
        raise typer.Exit(EXIT_INTERRUPTED) from None


def deadline(text: str) -> int:
    """Return a deadline in whole seconds.

    Raises
    ------
    UsageError
        It is too short for a connection, or so long that a node would be lost meanwhile.
    """
    seconds = parse_duration(text)
    if not 5 <= seconds <= 3600:
        raise UsageError(f"--confirm-within {text}: from 5s to 1h")
    return round(seconds)


def end(outcome: ChangeOutcome, *, json: bool) -> None:
    """Print what became of a change and what may be done next, and end with the exit code for it."""
    show(outcome, json=json)
    if not outcome.kept:
        raise typer.Exit(EXIT_ERROR)
    if not json:
        show_next(outcome)


def show(outcome: ChangeOutcome, *, json: bool, failed: str = "not kept") -> None:
    """Print what became of a change; `failed` is what it is called when it did not come about."""
    if json:
        print_json(outcome)
        return
    out = console()
    show_notes(outcome)
    if not outcome.kept:
        out.print(f"{failed}: {printable(outcome.reason, 1000)}", style="red", markup=False)
    groups: dict[tuple[str, str], list[str]] = {}
    for node in outcome.nodes:
        groups.setdefault((node.state, node.reason), []).append(node.node)
    if outcome.kept and not outcome.change:
        out.print("nothing to do: everything is set already")
    for (state, reason), nodes in groups.items():
        out.print(
            f"{fold(nodes)}: {_STATES[state]}{f' ({printable(reason, 500)})' if reason else ''}", markup=False
        )


def show_next(outcome: ChangeOutcome) -> None:
    """Print the name of a change that is kept, and what may be done with it."""
    if outcome.kept and outcome.change:
        sys.stdout.write(
            f"change {outcome.change}; it holds until the next boot\n"
            "next: wulf settings persist (keeps it), wulf rollback (takes it back), wulf settings status\n"
        )


def show_notes(outcome: ChangeOutcome) -> None:
    """Print the remarks on a change."""
    for note in outcome.notes:
        console().print(f"note: {printable(note, 300)}", markup=False)


def show_missing(outcome: ChangeOutcome) -> None:
    """Print which nodes were left out."""
    for node in outcome.nodes:
        if node.state == "missing":
            console().print(
                f"{node.node}: {_STATES[node.state]} ({printable(node.reason, 500)})", markup=False
            )


_STATES = {
    "confirmed": "set, and confirmed over a new connection",
    "undone": "put back as it was",
    "untouched": "not touched",
    "stuck": "NOT put back: see 'wulf settings status' and do it by hand",
    "unknown": "cannot be reached",
    "missing": "left out, it did not answer",
}


def show_rows(intention: change.ChangePlan) -> None:
    from wulf.node.change import steps

    units = {knob_setting.knob.id: knob_setting.knob.unit for knob_setting in intention.settings.values()}
    for (name, before, after), nodes in intention.rows.items():
        old, new = format_fact(name, before), format_fact(name, after)
        done = "is" if steps.same(after, before) else f"{old} →"
        said = f"{done} {new} {units[name]}".rstrip()
        console().print(f"{name}: {printable(said, 200)} on {fold(nodes)}", markup=False)
