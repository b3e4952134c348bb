"""The guard on the nodes, as the controller speaks to it."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from wulf.base.contracts import NodeResult, Transport
from wulf.base.errors import TransportError
from wulf.base.native import build
from wulf.base.text import count, last_line, printable
from wulf.node.change import sudo
from wulf.node.change.steps import NOTHING, Step

NAME = "wulf-guard"
PLACE = "/var/lib/wulf/guard"
#: A guard may wait half a minute for another one, and a tool as long for a driver.
TIMEOUT_S = 120.0
#: Where a probe asks for either of two parts of a change.
ALTERNATION = "/run/wulf-alternation"
DONE, BUSY, FAILED, LATE, STUCK = 0, 10, 11, 12, 13
#: Exit code where there is no guard, so that nothing was ever changed.
NONE = 90
# A program that fails says nothing of who is logged in.
_AS_ROOT = (
    "me=$(id -u 2>&1); case $me in 0) ;; "
    "'' | *[!0-9]*) echo \"the program id fails there, so nothing is changed: ${me:-it prints nothing}\" >&2; "
    "exit 1 ;; "
    '*) echo "changing settings takes root: log in as root ([change] user), or by way of sudo '
    "([change] become, and what 'wulf settings sudoers' prints)\" >&2; exit 1 ;; esac; "
)
# Who is not root cannot see whether there is one.
_RUN = f'{_AS_ROOT}[ -e "$0" ] || exit {NONE}; exec "$0" "$@"'
#: Takes away what guards of earlier versions, which were shell programs, have written down.
_FORGET = "cd /var/lib/wulf && rm -rf tx history first archive archive.1 open.* reserve"
_FORMER = (
    "settings that an earlier version of wulf has set are in force: take them back with that version first "
    "('wulf rollback'), or forget them: rm -r /var/lib/wulf/tx /var/lib/wulf/history on the node"
)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard of one node said."""

    node: str
    #: Exit code of the guard; None when the node could not be reached.
    code: int | None
    #: Lines of its output, split at tabs.
    lines: list[list[str]]
    #: Why it is not done; empty when it is.
    reason: str

    @property
    def done(self) -> bool:
        """Whether it did what was asked."""
        return self.code == DONE

    def rows(self, word: str) -> list[list[str]]:
        """Return the rest of all lines that begin with `word`."""
        return [line[1:] for line in self.lines if line[0] == word]


Answers = dict[str, Answer]


@functools.cache
def program() -> bytes:
    """Return the guard as it is put on nodes.

    Raises
    ------
    BuildError
        It cannot be built here, and none came with wulf.
    """
    return build.build_program(NAME, None).path.read_bytes()


class Guards:
    """The guards of some nodes.

    Parameters
    ----------
    owner
        Who makes changes, for the lock: user, machine, process.
    text
        The guard's program, if not the usual one.
    by_sudo
        Whether the user is not root, and sudo lets him do everything.
    """

    def __init__(
        self, transport: Transport, owner: str, text: bytes | None = None, *, by_sudo: bool = False
    ) -> None:
        self.transport = transport
        self.owner = owner
        self._by_sudo = by_sudo
        self._given = text

    @property
    def _text(self) -> bytes:
        return program() if self._given is None else self._given

    def require_right(self, nodes: Sequence[str]) -> None:
        """Refuse nodes on which settings cannot be changed; nothing is built, put there or begun.

        Raises
        ------
        TransportError
            Names the first node, and what to do.
        """
        if self._by_sudo:
            looked = self._look(nodes)
        else:
            looked = self.transport.run(["sh", "-c", _AS_ROOT], nodes, timeout_s=TIMEOUT_S)
        refused = {node: self._refused(looked[node]) for node in nodes}
        require({node: answer for node, answer in refused.items() if answer}, "cannot be changed")

    def _refused(self, looked: NodeResult) -> Answer | None:
        answer = _answer(looked)
        if answer.code is None:  # it did not answer
            return answer
        if not self._by_sudo:
            return None if answer.done else answer
        # Where there is no guard yet, nothing prints its digest, and that is well.
        explained = self._explained(msgspec.structs.replace(answer, lines=[]), looked.stderr)
        return explained if sudo.refusal(answer.code, looked.stderr) else None

    def install(self, nodes: Sequence[str]) -> Answers:
        """Put the guard on the nodes that do not have this very one, unless somebody else's is at work there."""
        digest = hashlib.sha256(self._text).hexdigest()
        there = self._look(nodes)
        other = [node for node in nodes if not there[node].stdout.startswith(digest.encode())]
        found = {node: _answer(there[node]) for node in nodes if node not in other}
        # Where sudo runs the guard alone, nobody but an administrator can put another one there.
        granted = [node for node in other if b" wulf-guard " in there[node].stdout]
        found |= {node: _other(node) for node in granted}
        other = [node for node in other if node not in granted]
        # A guard of another version ends what it has begun before it is replaced, and says whose the node is.
        asked = self.call([node for node in other if there[node].status == "ok"], "lock", self.owner, "0")
        found |= {node: answer for node, answer in asked.items() if answer.code == BUSY}
        found |= self._end_former([node for node, answer in asked.items() if answer.code == DONE])
        lacking = [node for node in other if node not in found]
        if lacking:
            results = self._put(lacking, digest)
            found |= {
                node: self._explained(_answer(result), result.stderr) for node, result in results.items()
            }
        return {node: found[node] for node in nodes}

    def _end_former(self, nodes: Sequence[str]) -> Answers:
        """Forget what shell guards of earlier versions have done and undone; return the nodes where it is in force."""
        former_said = self.call(nodes, "version")
        former = [node for node, answer in former_said.items() if answer.code not in (DONE, None)]
        status = self.call(former, "status")
        kept = {
            node: msgspec.structs.replace(answer, code=FAILED, reason=_FORMER)
            for node, answer in status.items()
            if not answer.done
            or not answer.rows("boot")  # it says nothing: what is in force there is not known
            or answer.rows("set")
            or any(map(_is_open, answer.rows("tx")))
        }
        over = [node for node in former if node not in kept]
        if over:
            self._run(over, ["sh", "-c", _FORGET])
        return kept

    def _put(self, nodes: Sequence[str], digest: str) -> Mapping[str, NodeResult]:
        if self._by_sudo:
            argv = sudo.writing(PLACE, digest)
            return self.transport.run(argv, nodes, timeout_s=TIMEOUT_S, stdin=self._text)
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "guard"
            source.write_bytes(self._text)
            return self.transport.put(source, PLACE, nodes, timeout_s=TIMEOUT_S, mode=0o700)

    def _look(self, nodes: Sequence[str]) -> Mapping[str, NodeResult]:
        argv = sudo.looking(PLACE) if self._by_sudo else ["sha256sum", PLACE]
        return self.transport.run(argv, nodes, timeout_s=TIMEOUT_S)

    def _run(
        self, nodes: Sequence[str], words: Sequence[str], *, stdin: bytes | None = None, fresh: bool = False
    ) -> Mapping[str, NodeResult]:
        argv = sudo.argv(words) if self._by_sudo else words
        return self.transport.run(argv, nodes, timeout_s=TIMEOUT_S, stdin=stdin, fresh=fresh)

    def call(
        self, nodes: Sequence[str], *words: str, stdin: bytes | None = None, fresh: bool = False
    ) -> Answers:
        """Let the guards do something; one answer for every node."""
        if not nodes:
            return {}
        argv = sudo.calling(PLACE, _RUN, words) if self._by_sudo else ["sh", "-c", _RUN, PLACE, *words]
        results = self.transport.run(argv, nodes, timeout_s=TIMEOUT_S, stdin=stdin, fresh=fresh)
        answers = {node: _answer(results[node]) for node in nodes}
        return {node: self._explained(answers[node], results[node].stderr) for node in nodes}

    def reconnect(self, nodes: Sequence[str]) -> None:
        """Have what follows go over new connections.

        One that was made while the MTU was larger goes on to send segments of a size that no longer passes. A node that
        does not answer is not told: it has been asked for its part before.
        """
        if nodes:
            self.transport.run(["true"], nodes, timeout_s=TIMEOUT_S, fresh=True)

    def _explained(self, answer: Answer, stderr: bytes) -> Answer:
        """Say what to do where sudo did not run what was asked."""
        why = sudo.refusal(answer.code, stderr) if self._by_sudo and not answer.lines else ""
        return msgspec.structs.replace(answer, reason=why) if why else answer

    def lock(self, nodes: Sequence[str], lease_s: int) -> Answers:
        """Take the nodes, or go on having them."""
        return self.call(nodes, "lock", self.owner, str(lease_s))

    def unlock(self, nodes: Sequence[str]) -> Answers:
        """Let the nodes go."""
        return self.call(nodes, "unlock", self.owner)

    def begin(self, plans: Mapping[str, Sequence[Step]], tx: str, deadline_s: int) -> Answers:
        """Journal the state before the steps on every node; nothing is changed yet."""
        return _by_plan(plans, functools.partial(self._begin, ("begin", tx, self.owner, str(deadline_s))))

    def swap(
        self, plans: Mapping[str, Sequence[Step]], old: Mapping[str, str], tx: str, deadline_s: int
    ) -> Answers:
        """Undo the open change `old` of each node, if it has one, and make another, unconfirmed."""
        found: Answers = {}
        for before in {old.get(node, NOTHING) for node in plans}:
            words = ("swap", before, tx, self.owner, str(deadline_s))
            mine = {node: steps for node, steps in plans.items() if old.get(node, NOTHING) == before}
            found |= _by_plan(mine, functools.partial(self._begin, words))
        return found

    def _begin(self, words: Sequence[str], nodes: list[str], text: bytes) -> Answers:
        return self.call(nodes, *words, stdin=text)

    def part(self, numbers: Mapping[str, Sequence[int]], tx: str) -> Answers:
        """Have some steps of the open change made on each node, and the others put back."""
        return self._by_steps("part", {node: (part,) for node, part in numbers.items()}, tx)

    def alternate(self, parts: Mapping[str, tuple[Sequence[int], Sequence[int]]], tx: str) -> Answers:
        """Let a probe on each node have either of two parts of the open change made, by the numbers of its steps."""
        return self._by_steps("alternate", parts, tx)

    def _by_steps(self, verb: str, parts: Mapping[str, Sequence[Sequence[int]]], tx: str) -> Answers:
        """Call once for all nodes that have the same steps."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for node, lists in parts.items():
            words = tuple(",".join(map(str, numbers)) or "0" for numbers in lists)
            groups.setdefault(words, []).append(node)
        found: Answers = {}
        for words, nodes in groups.items():
            found |= self.call(nodes, verb, tx, *words)
        return found

    def rollback(self, nodes: Sequence[str], tx: str, deadline_s: int, to: str) -> Answers:
        """Begin a change back to the state before change `to`, or to the original one."""
        return self.call(nodes, "rollback", tx, self.owner, str(deadline_s), to)


def _other(node: str) -> Answer:
    return Answer(node=node, code=FAILED, lines=[], reason=sudo.OTHER)


def _is_open(row: Sequence[str]) -> bool:
    return len(row) < 7 or row[6] not in ("confirmed", "undone", "abandoned")


def _by_plan(plans: Mapping[str, Sequence[Step]], call: Callable[[list[str], bytes], Answers]) -> Answers:
    """Call once for all nodes that have the same plan."""
    groups: dict[bytes, list[str]] = {}
    for node, steps in plans.items():
        text = "".join(step.line() + "\n" for step in steps).encode()
        groups.setdefault(text, []).append(node)
    found: Answers = {}
    for text, nodes in groups.items():
        found |= call(nodes, text)
    return {node: found[node] for node in plans}


def require(answers: Answers, what: str) -> None:
    """Raise TransportError when a node did not do what was asked; names the first one and counts the others."""
    failed = [answer for answer in answers.values() if not answer.done]
    if failed:
        more = f" (and {count(len(failed) - 1, 'more node')})" if len(failed) > 1 else ""
        raise TransportError(f"{failed[0].node}: {what}: {failed[0].reason}{more}")


def _answer(result: NodeResult) -> Answer:
    lines = [line.split("\t") for line in result.stdout.decode(errors="replace").split("\n") if line]
    said = [" ".join(line[1:]) for line in lines if line[0] == "error"]
    reason = ""
    if result.status != "ok":
        # What the guard says is about the node itself; what the transport says names the node.
        reason = said[-1] if said else (last_line(result.stderr) or result.reason)
    code = result.exit_code if result.status in ("ok", "exit") else None
    return Answer(node=result.node, code=code, lines=lines, reason=printable(reason, 500))
