"""The verbs of the command line: which there are, under which heading, and where each is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from wulf.base.text import nearest, printable
from wulf.base.tool import Tool, tools

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Verb(NamedTuple):
    """A verb, as the list of verbs has it."""

    #: Has a function ``command`` or, with verbs of its own, an ``app``; empty for a verb that only has others within.
    module: str
    #: The first line of its help: it stands here so that the list imports no verb.
    summary: str
    within: Mapping[str, Verb] = NOTHING
    #: Which verb of the module's ``app`` it is; empty for all of it.
    inner: str = ""
    #: Where a tool declares itself.
    tool: Tool | None = None


def _verb(module: str, summary: str, inner: str = "", within: Mapping[str, Verb] = NOTHING) -> Verb:
    return Verb(f"wulf.face.cli.{module}" if module else "", summary, within, inner)


#: Heading → verbs that are not declared by a tool.
_WRITTEN: Mapping[str, Mapping[str, Verb]] = {
    "Start": {
        "lab": _verb(
            "lab", "A virtual cluster on this machine, to try everything on without touching a real one."
        ),
        "init": _verb(
            "init",
            "Inspect the nodes and write cluster.toml: interface, addresses, nodes that do not answer.",
        ),
    },
    "Look": {
        "audit": _verb(
            "audit",
            "Check every node's settings, services and drivers, and that the nodes are alike.",
            within={
                "facts": _verb(
                    "facts", "Show the hardware and settings of every node; nodes that agree share a line."
                ),
                "topology": _verb(
                    "topology",
                    "Show the direct links in the cluster file ([cluster] links) and the shapes they form, by ranks.",
                ),
            },
        ),
        "diagnose": _verb(
            "diagnose",
            "Find the node, link or group of nodes that is slow, or show that all are alike.",
            within={
                "drain": _verb(
                    "drain",
                    "Drain the nodes in Slurm that a run of all pairs shows to be slow, with the reason.",
                )
            },
        ),
        "watch": _verb(
            "watch",
            "Measure and audit idle nodes regularly, and show what has changed and what else changed at that time.",
        ),
    },
    "Measure": {
        "measure": _verb(
            "measure",
            "Measure the interconnect between pairs of nodes.",
            within={
                "import": _verb(
                    "importing",
                    "Import outputs of other benchmarks as a run, to compare, fit and report them.",
                )
            },
        ),
        "compare": _verb(
            "compare",
            "Compare runs: the change at every size with its interval, and a verdict.",
            within={
                "libraries": _verb(
                    "mpi", "Compare MPI libraries in alternating launches, size by size.", "compare"
                )
            },
        ),
    },
    "Change": {
        "mend": _verb("mend", "Fix settings that are wrong whatever the cluster is used for."),
        "tune": _verb(
            "tune",
            "Find the settings that help, by experiment, and set them.",
            within={
                "all": _verb(
                    "run",
                    "Do everything: audit, measure, mend, tune, confirm, measure again, and report the total effect.",
                ),
                "collectives": _verb(
                    "mpi", "Find the best algorithms for an MPI library's collectives.", "tune"
                ),
                "parameters": _verb("mpi", "Show the parameters of an MPI library.", "parameters"),
            },
        ),
        "settings": _verb(
            "",
            "Set, persist, verify and export settings, and look them up in the catalogue.",
            within={
                "set": _verb("set_values", "Set values on all nodes, or on none."),
                "status": _verb(
                    "status",
                    "Show what wulf has set on the nodes, by which change, and what differs from the original state.",
                ),
                "persist": _verb(
                    "persist", "Make what 'wulf settings set' or 'wulf tune' has set survive reboots."
                ),
                "verify": _verb(
                    "verify",
                    "Verify that what was confirmed still holds: the live values, the files that keep "
                    "them, and the figures.",
                ),
                "export": _verb(
                    "export",
                    "Write what was found to help as a TuneD profile, an Ansible playbook or a shell script.",
                ),
                "sudoers": _verb(
                    "sudoers",
                    "Print the sudo rules with which a user who is not root can change settings.",
                ),
                "list": _verb("knob", "List the known settings.", "list"),
                "show": _verb("knob", "Show everything known about a setting.", "show"),
                "get": _verb("knob", "Show values of settings on the nodes.", "get"),
            },
        ),
        "rollback": _verb(
            "rollback",
            "Undo confirmed changes exactly: live values and stored files.",
        ),
    },
    "Programs": {
        "program": _verb(
            "",
            "Measure, trace, emulate and predict parallel programs.",
            within={
                "run": _verb(
                    "program_run",
                    "Measure a command: its run time, numbers in its output, and the resources that it uses.",
                ),
                "trace": _verb(
                    "trace", "Record what every rank of a program does with MPI, and summarise it."
                ),
                "emulate": _verb(
                    "emulate",
                    "Run a pattern of messages and computing on the cluster, and measure how long it takes.",
                ),
                "predict": _verb(
                    "predict",
                    "Predict the run time of a traced program on other networks, and whether one is worth having.",
                ),
                "place": _verb(
                    "place",
                    "Distribute ranks over nodes that are not equally fast, as a hostfile for launchers.",
                ),
                "shipped": _verb(
                    "shipped",
                    "Build a program that comes with wulf, put it on the nodes, and print its path there.",
                ),
            },
        ),
        "bench": _verb(
            "",
            "Run HPL, HPC Challenge, BLAS, RFC 2544, and studies of several factors.",
            within={
                "hpl": _verb(
                    "hpl",
                    "Run High-Performance Linpack with the fastest settings found here, as large as time and memory "
                    "allow.",
                ),
                "hpcc": _verb(
                    "hpcc",
                    "Run HPC Challenge on all nodes together and on each alone, and name the nodes that differ "
                    "from the others.",
                ),
            },
        ),
    },
    "Runs": {
        "report": _verb(
            "report",
            "Report a run of any kind. Without an option an HTML file is written into it.",
        ),
        "runs": _verb("runs", "List, label, rename, delete and move runs, of all kinds."),
        "config": _verb(
            "config",
            "Show the defaults of options, and where each comes from: environment, your file, the site's file.",
            within={
                "schema": _verb(
                    "schema",
                    "Print the JSON Schema (2020-12) of what a command prints with --json, or of a file of a run.",
                )
            },
        ),
    },
}
#: Verb → verbs within it in the order in which they are used; what is not named comes last.
_ORDER = {
    "program": ("run", "trace", "characterise", "emulate", "predict", "worth", "place", "shipped"),
    "bench": ("hpl", "hpcc", "blas", "rfc2544", "study"),
}


def _with_tools(written: Mapping[str, Mapping[str, Verb]]) -> Mapping[str, Mapping[str, Verb]]:
    """Return all verbs: those that are written here, and those that tools declare."""
    headings = {heading: dict(verbs) for heading, verbs in written.items()}
    for tool in tools().values():
        verb = Verb("", tool.summary, tool=tool)
        top, _, inner = tool.verb.partition(" ")
        if not inner:
            headings.setdefault(tool.heading, {})[top] = verb
            continue
        verbs = next(verbs for verbs in headings.values() if top in verbs)
        verbs[top] = verbs[top]._replace(within=_ordered(top, {**verbs[top].within, inner: verb}))
    return headings


def _ordered(top: str, within: Mapping[str, Verb]) -> Mapping[str, Verb]:
    first = [name for name in _ORDER.get(top, ()) if name in within]
    return {name: within[name] for name in dict.fromkeys([*first, *within])}


#: Heading → verbs.
HEADINGS = _with_tools(_WRITTEN)
VERBS: Mapping[str, Verb] = {name: verb for verbs in HEADINGS.values() for name, verb in verbs.items()}
#: Verbs that the list at the top does not have: one that Slurm's tasks give, and short forms of verbs within another.
HIDDEN = {
    "replay-piece": _verb("replay_piece", ""),
    "study": VERBS["bench"].within["study"],
    "rollout": VERBS["settings"].within["rollout"],
}
#: Short form → the verb that it is, whose defaults it has.
SHORT = {"study": ("bench", "study"), "rollout": ("settings", "rollout")}
#: What verbs were called in versions before 0.2.
MOVED = {
    "analyze": "report",
    "knob": "settings",
    "list": "runs list",
    "mpi": "tune collectives",
    "import": "measure import",
    "app": "program run",
    "run": "tune all",
    **{
        name: f"{top} {name}"
        for top in ("audit", "diagnose", "settings", "program", "bench", "config")
        for name in VERBS[top].within
        if name not in ("list", "run", "show", "get")
    },
}


def load(name: str, verb: Verb) -> Any:
    """Import a verb, and return it as a command."""
    own = _own(name, verb) if verb.module or verb.tool else None
    for command in (own, *getattr(own, "commands", {}).values()):
        if command is not None and not hasattr(command, "commands"):
            command.collect_usage_pieces = partial(_usage, command)
    return WithVerbs(name, verb, own) if verb.within else own


def _usage(command: Any, ctx: Any) -> list[str]:
    """Return the words behind a command in its usage line: those of arguments that are hidden are not among them."""
    shown = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    pieces = [piece for param in shown for piece in param.get_usage_pieces(ctx)]
    return [command.options_metavar, *map(in_usage, pieces)]


def in_usage(word: str) -> str:
    """Return an argument as manuals write it: ``[RUN]`` and ``FILE...``, whatever else typer puts around it."""
    plain = word.removesuffix("...")
    if plain.startswith("{") or plain.startswith("[["):
        plain = plain[1:-1]
    return f"{plain}..." if word.endswith("...") and not re.search(r"\.\.\.|…", plain) else plain


def _own(name: str, verb: Verb) -> Any:
    if verb.tool is not None:
        return _single(name, import_module("wulf.face.cli.tool").command_of(verb.tool))
    module = import_module(verb.module)
    if not hasattr(module, "app"):
        return _single(name, module.command)
    command: Any = typer.main.get_command(module.app)
    command = command.commands[verb.inner] if verb.inner else command
    command.name = name
    return command


def _single(name: str, function: Callable[..., None]) -> Any:
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name=name)(function)
    command = typer.main.get_command(single)
    command.name = name
    return command


def convert_if_given(options: Iterable[Any]) -> None:
    """Let options be None at once where nobody has given them: what typer imports to convert values takes 0.1 s."""
    for option in options:
        if "process_value" not in vars(option):
            option.process_value = partial(_converted, option.process_value)


def _converted(convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    return None if value is None else convert(ctx, value)


class Loaded(Mapping[str, Any]):
    """Commands by name, each imported when it is used."""

    def __init__(self, verbs: Mapping[str, Verb]) -> None:
        self._verbs = verbs
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = load(name, self._verbs[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._verbs)

    def __len__(self) -> int:
        return len(self._verbs)


def write_list(formatter: Any, verbs: Mapping[str, Verb], heading: str = "Commands", widest: int = 0) -> None:
    """Write a list of verbs with their summaries; nothing is imported for it."""
    widest = max(widest, *map(len, verbs))
    with formatter.section(heading):
        formatter.write_dl([(name.ljust(widest), verb.summary) for name, verb in verbs.items()])


def listed_only(verbs: Mapping[str, Verb], params: Sequence[Any] = ()) -> TyperGroup:
    """Return a group that can only be listed: it has every verb with its summary, and nothing is imported for it."""
    commands: dict[str, Any] = {name: TyperCommand(name, help=verb.summary) for name, verb in verbs.items()}
    return TyperGroup(params=list(params), commands=commands)


class WithVerbs(TyperGroup):
    """A verb that has others within, and that may do something itself where none of them is named."""

    def __init__(self, name: str, verb: Verb, own: Any) -> None:
        about = own.help if own is not None else verb.summary
        super().__init__(
            name=name, commands={}, help=about, no_args_is_help=own is None, rich_markup_mode=None
        )
        self.commands = Loaded(verb.within)  # type: ignore[assignment]
        self._verb, self._own = verb, own
        self._within = TyperGroup(name=name, commands=self.commands, rich_markup_mode=None)  # type: ignore[arg-type]
        self.params = own.params if own is not None else []

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] in self.commands:
            convert_if_given(self._within.get_params(ctx))
            if hasattr(self.commands[args[0]], "commands"):
                convert_if_given(self.commands[args[0]].get_params(ctx))
            ctx.command = self._within  # its usage has no words of the verb itself
            return self._within.parse_args(ctx, args)
        if self._own is None:
            self._refuse_unknown(ctx, args)
            convert_if_given(self.get_params(ctx))
            return super().parse_args(ctx, args)
        # Click lets options of what has verbs within stand before other words only.
        ctx.allow_interspersed_args = self._own.allow_interspersed_args
        rest: list[str] = self._own.parse_args(ctx, args)
        return rest

    def _refuse_unknown(self, ctx: Any, args: Sequence[str]) -> None:
        if args and not args[0].startswith("-"):
            hint = nearest(args[0], self.commands)
            ctx.fail(f"No such command '{printable(args[0], 60)}'{hint}{'' if hint else '.'}")

    def invoke(self, ctx: Any) -> Any:
        within = bool(getattr(ctx, "_protected_args", None) or getattr(ctx, "protected_args", None))
        return self._within.invoke(ctx) if within else self._own.invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = (self._own or self._within).collect_usage_pieces(ctx)
        return pieces

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the base class's signature
        write_list(formatter, self._verb.within)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        names = [name for name in self.commands if name.startswith(incomplete)]
        listed = TyperGroup(
            commands={
                name: typer.core.TyperCommand(name, help=self._verb.within[name].summary) for name in names
            }
        )
        own = self._own.shell_complete(ctx, incomplete) if self._own is not None else []
        return [*listed.shell_complete(typer.Context(listed), incomplete), *own]
