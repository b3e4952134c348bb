"""``wulf config``: which defaults hold, and where each is from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wulf.base import defaults, locations, user_files
from wulf.base.errors import UsageError
from wulf.base.text import nearest, printable
from wulf.face.cli.defaults import options_of, refuse_unknown, setting_of, spellings, unknown_variables
from wulf.face.cli.options import JsonOption, print_json, show_table

if TYPE_CHECKING:
    from wulf.face.cli.json_records import Configuration, Configured

#: What an option is that nobody has given.
BUILT_IN = "built in"


def command(
    ctx: typer.Context,
    verbs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VERB]...", help="Show all options of these verbs, also those that are not set."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the defaults of options, and where each comes from: environment, your file, the site's file.

    Defaults are in ~/.config/wulf/config.toml and /etc/wulf/config.toml: below [defaults] cluster, runs, mpi, verbose,
    log-file and explain, below [VERB] any option of that verb by its long name. In the environment they are
    WULF_OPTION and WULF_VERB_OPTION. The command line overrides the environment, which overrides your file, which
    overrides the site's.

    Knobs, checks, signatures, suites, networks and launchers in directories of these names beside config.toml are used
    like wulf's own; they are listed, too.
    """
    root = ctx.find_root()
    group: Any = root.command
    commands = {name: group.get_command(root, name) for name in group.list_commands(root)}
    found = configuration(commands, verbs or [])
    if json:
        print_json(found)
    else:
        _show(found)
    if found.own:
        require_valid()


def require_valid() -> None:
    """Read all that is a site's or a user's, which verbs read when they come to it.

    Raises
    ------
    ConfigError
        A file is wrong; names it, and what.
    """
    from wulf.base import catalogue, networks
    from wulf.base.checks.evaluate import compile_checks
    from wulf.node.cluster.launcher.described import descriptions
    from wulf.node.probe import suites

    catalogue.knobs()
    compile_checks(catalogue.checks().values())
    catalogue.consistencies()
    catalogue.signatures()
    catalogue.host_signatures()
    for suite in suites.names():
        suites.named(suite)
    networks.networks()
    descriptions()


def configuration(commands: Mapping[str, Any], verbs: Sequence[str]) -> Configuration:
    """Return what is configured.

    Parameters
    ----------
    commands
        All verbs, with their options.
    verbs
        Those of which all options are wanted.

    Raises
    ------
    ConfigError
        A file has an unknown key, or a value that cannot be; names file and line.
    UsageError
        There is no such verb.
    """
    from wulf.face.cli.json_records import ConfigFile, Configuration, OwnFile

    known = list(commands)
    for verb in verbs:
        if verb not in known:
            raise UsageError(f"there is no verb {printable(verb, 60)!r}{nearest(verb, known)}")
    defaults.require_known(known)
    settings = [_common(name) for name in defaults.COMMON]
    for verb, command in commands.items():
        settings += _of_verb([verb], command, whole=verb in verbs)
    return Configuration(
        files=[
            ConfigFile(
                path=str(place.path / defaults.FILE),
                owner=place.owner,
                there=locations.is_there(place.path / defaults.FILE),
            )
            for place in locations.places()
        ],
        settings=settings,
        own=[
            OwnFile(kind=kind, id=file.id, path=str(file.path), owner=file.owner, replaces=file.replaces)
            for kind in user_files.KINDS
            for file in user_files.files(kind)
        ],
        unknown_variables=unknown_variables(known),
    )


def _common(name: str) -> Configured:
    from wulf.face.cli.json_records import Configured

    setting = defaults.common(name)
    value = None if setting is None else str(setting.value)
    return Configured(verb="", option=name, value=value, source=setting.source if setting else BUILT_IN)


def _of_verb(path: Sequence[str], command: Any, *, whole: bool) -> Iterator[Configured]:
    from wulf.face.cli.json_records import Configured

    options = options_of(command)
    within = getattr(command, "commands", {})
    refuse_unknown(path, spellings(options), list(within))
    for name, option in options.items():
        setting = setting_of(path, name, option)
        # What is said for all verbs is shown once.
        is_own = setting is not None and not (name in defaults.COMMON and setting == defaults.common(name))
        if whole or is_own:
            value = option.default if setting is None else setting.value
            yield Configured(
                verb=" ".join(path),
                option=name,
                value=_text(value),
                source=setting.source if setting else BUILT_IN,
            )
    for name, inner in within.items():
        yield from _of_verb([*path, name], inner, whole=whole)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _show(found: Configuration) -> None:
    from rich.table import Table

    table = Table("option", "value", "from", box=None, pad_edge=False)
    for setting in found.settings:
        name = f"{setting.verb} --{setting.option}".strip()
        table.add_row(name, printable(setting.value or "not given", 200), printable(setting.source, 300))
    show_table(table)
    for file in found.files:
        sys.stdout.write(f"{'read' if file.there else 'not there'}: {printable(file.path, 300)}\n")
    if found.own:
        listed = Table("kind", "name", "whose", "file", box=None, pad_edge=False)
        for one in found.own:
            whose = f"{one.owner}, instead of another" if one.replaces else one.owner
            listed.add_row(one.kind, printable(one.id, 100), whose, printable(one.path, 300))
        sys.stdout.write("\n")
        show_table(listed)
    for name in found.unknown_variables:
        sys.stdout.write(f"note: {printable(name, 100)} in the environment is not a variable of wulf\n")
