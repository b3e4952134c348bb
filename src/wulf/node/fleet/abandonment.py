"""Give up changes that could not be put back: what they leave is said first, and stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from wulf.base.records import Release
from wulf.node.change import answers
from wulf.node.change.apply import LEASE_S
from wulf.node.change.guard import Answer, Guards
from wulf.node.fleet import change

#: How the journal calls a change that nothing more can be done about.
_STUCK = ("stuck", "damaged")


def look(guards: Guards, nodes: Sequence[str], only: str | None) -> list[Release]:
    """Return the changes that are stuck, with what they leave; a node that cannot be asked has an error.

    Parameters
    ----------
    only
        Only this change; None for all.
    """
    found = _stuck(guards, nodes, only)
    held = _nodes(one for one in found if not one.error)
    # The guard there may be of a version that cannot say it; it also tries once more, when that is due.
    refused = _refused(guards.install(held)) | _refused(guards.lock(held, LEASE_S))
    try:
        asked = [node for node in held if node not in refused]
        releases = _stuck(guards, asked, only)
        return [
            *(one for one in found if one.error),
            *(Release(node=node, error=reason) for node, reason in refused.items()),
            *_for_each(guards, releases, "leaves", _with_left),
        ]
    finally:
        guards.unlock(held)


def release(guards: Guards, releases: Sequence[Release]) -> list[Release]:
    """Leave what these changes have left as it is, for good."""
    wanted = [one for one in releases if not one.error]
    nodes = _nodes(wanted)
    refused = _refused(guards.lock(nodes, LEASE_S))
    try:
        free = [one for one in wanted if one.node not in refused]
        done = {(one.node, one.change): one for one in _for_each(guards, free, "abandon", _released)}
        return [
            done.get((one.node, one.change), _failed(one, refused.get(one.node, one.error)))
            for one in releases
        ]
    finally:
        guards.unlock(nodes)


def _stuck(guards: Guards, nodes: Sequence[str], only: str | None) -> list[Release]:
    found = []
    for status in change.status(guards, nodes):
        if status.error:
            found.append(Release(node=status.node, error=status.error))
        for entry in status.journal:
            if entry.state.startswith(_STUCK) and only in (None, entry.change):
                found.append(Release(node=status.node, change=entry.change, state=entry.state))
    return found


def _for_each(
    guards: Guards, releases: Sequence[Release], verb: str, become: Callable[[Release, Answer], Release]
) -> list[Release]:
    """Let the guards do something about each change, on all nodes at once that have it."""
    done = []
    for name in dict.fromkeys(one.change for one in releases):
        some = {one.node: one for one in releases if one.change == name}
        for node, answer in guards.call(list(some), verb, name).items():
            done.append(become(some[node], answer) if answer.done else _failed(some[node], answer.reason))
    return done


def _with_left(one: Release, answer: Answer) -> Release:
    return msgspec.structs.replace(one, left=answers.leaves(answer))


def _released(one: Release, answer: Answer) -> Release:
    return msgspec.structs.replace(one, left=answers.leaves(answer), released=True)


def _failed(one: Release, reason: str) -> Release:
    return msgspec.structs.replace(one, error=reason)


def _refused(said: Mapping[str, Answer]) -> dict[str, str]:
    return {node: answer.reason for node, answer in said.items() if not answer.done}


def _nodes(releases: Iterable[Release]) -> list[str]:
    return list(dict.fromkeys(one.node for one in releases))
