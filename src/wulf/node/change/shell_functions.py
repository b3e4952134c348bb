"""The shell functions of the kinds of access: the boot script and the exports have them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources

from wulf.base import access, catalogue


@functools.cache
def access_functions(kinds: tuple[str, ...] | None = None) -> str:
    """Return the shell functions of kinds of access, all of them by default, with what they share."""
    files = [f"access/{name}.sh" for name in _settable(kinds)]
    return "\n".join(_text(name) for name in ("prelude.sh", *files))


@functools.cache
def state_functions(kinds: tuple[str, ...] | None = None) -> str:
    """Return the shell functions that know what of a state has to come back, and when, for some kinds or all."""
    return _text("state.sh") + "\n" + _table(_settable(kinds))


def _settable(kinds: tuple[str, ...] | None) -> list[str]:
    known = access.kinds()
    return [name for name, kind in known.items() if kind.settable and (kinds is None or name in kinds)]


def _text(name: str) -> str:
    return resources.files("wulf.node.change").joinpath(*name.split("/")).read_text()


def _table(kinds: Sequence[str]) -> str:
    """Return what the table of kinds, and the knobs of these, say, as functions."""
    known = access.kinds()
    ranks = {
        name: rank
        for name, rank in catalogue.ranks().items()
        if (catalogue.knobs()[name].access.kind if name in catalogue.knobs() else name) in kinds
    }
    places = "".join(f"\t{name}) echo {rank} ;;\n" for name, rank in ranks.items())
    return (
        "# From the table of kinds of access, and from what knobs affect.\n"
        + _is("is_kept_over_boot", [name for name in kinds if known[name].survives_boot])
        + _is("has_items", [name for name in kinds if known[name].state == "items"])
        + "rank() { # KNOB or KIND: when it is set and put back; what makes others anew comes before these\n"
        + f"\tcase $1 in\n{places}\t*) return 1 ;;\n\tesac\n}}\n"
    )


def _is(function: str, kinds: Sequence[str]) -> str:
    """Return a function that is true for some kinds."""
    found = f"case $1 in {' | '.join(kinds)}) return 0 ;; esac; " if kinds else ""
    return f"{function}() {{ {found}return 1; }}\n"
