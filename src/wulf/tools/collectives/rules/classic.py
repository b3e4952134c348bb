"""Open MPI's text of rules: version 1 (4.1 and 5.0), and 2 with a fifth number (from 5.0.7 on).  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.tools.collectives.rules.rules import Block, Rule, RuleFileError, Rules, require_ordered

#: Number of each collective (ompi/mca/coll/base/coll_base_functions.h).
COLLECTIVES = (
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
)
HEADER = "rule-file-version-2"
#: Numbers of a rule: the fifth may be left out.
_FEWEST, _MOST = 4, 5


def version(text: str) -> int:
    """Return the version that a text says it has."""
    return 2 if text.lstrip().startswith(HEADER) else 1


def read(text: str) -> Rules:
    """Return the rules of a text of either version.

    Raises
    ------
    RuleFileError
        It is none; names the line.
    """
    words = _Words(text)
    found: dict[str, tuple[Block, ...]] = {}
    for _ in range(words.number("number of collectives")):
        id_ = words.number("collective")
        if id_ >= len(COLLECTIVES) or COLLECTIVES[id_] in found:
            raise words.error(f"{id_} is not a collective, or there twice")
        found[COLLECTIVES[id_]] = tuple(
            _block(words) for _ in range(words.number("number of communicator sizes"))
        )
    words.end()
    require_ordered(found)
    return found


def write(rules: Rules, version: int) -> str:
    """Return the text of rules, with a word on every line.

    Raises
    ------
    RuleFileError
        The version cannot say it.
    """
    require_ordered(rules)
    lines = [HEADER] if version == 2 else []
    lines.append(f"{len(rules)} # collectives")
    for collective, blocks in rules.items():
        lines.append(f"{COLLECTIVES.index(collective)} # {collective}")
        lines.append(f"{len(blocks)} # communicator sizes")
        for block in blocks:
            lines.append(f"{block.ranks} # ranks and more")
            lines.append(f"{len(block.rules)} # rules: from bytes, algorithm, fanout, segment size")
            lines += [_line(collective, rule, version) for rule in block.rules]
    return "\n".join(lines) + "\n"


def _line(collective: str, rule: Rule, version: int) -> str:
    numbers = [rule.from_bytes, rule.algorithm, rule.fanout, rule.segment_bytes]
    if rule.max_requests and version == 1:
        raise RuleFileError(f"{collective}: version 1 of the file cannot limit requests")
    if rule.max_requests:
        numbers.append(rule.max_requests)
    return " ".join(map(str, numbers))


def _block(words: _Words) -> Block:
    ranks = words.number("communicator size")
    return Block(
        ranks=ranks, rules=tuple(_rule(words) for _ in range(words.number("number of message sizes")))
    )


def _rule(words: _Words) -> Rule:
    names = ("message size", "algorithm", "fanout", "segment size")
    numbers = [words.number(name) for name in names]
    more = words.rest_of_line()
    if len(more) > _MOST - _FEWEST or (more and words.version == 1):
        raise words.error("a rule has four numbers, and only in version 2 a fifth one")
    return Rule(
        from_bytes=numbers[0],
        algorithm=numbers[1],
        fanout=numbers[2],
        segment_bytes=numbers[3],
        max_requests=more[0] if more else 0,
    )


class _Words:
    """The numbers of a text in their order, with the lines that they are on."""

    def __init__(self, text: str) -> None:
        self.version = version(text)
        self._words = list(_numbers(text, self.version))
        self._place = 0

    def number(self, what: str) -> int:
        """Return the next number; raise RuleFileError where there is none."""
        if self._place == len(self._words):
            raise RuleFileError(f"the rules end before a {what}")
        _, word = self._words[self._place]
        self._place += 1
        if not (word.isascii() and word.isdigit()):
            raise self.error(f"{word[:40]!r} is no {what}")
        return int(word)

    def rest_of_line(self) -> list[int]:
        """Return the numbers that are left on the line of the last one."""
        line = self._words[self._place - 1][0]
        found = []
        while self._place < len(self._words) and self._words[self._place][0] == line:
            found.append(self.number("number"))
        return found

    def error(self, reason: str) -> RuleFileError:
        """Return an error that names the line of the last word."""
        return RuleFileError(f"line {self._words[max(self._place - 1, 0)][0]}: {reason}")

    def end(self) -> None:
        """Raise RuleFileError where there is more."""
        if self._place < len(self._words):
            self._place += 1
            raise self.error("there is more after the last rule")


def _numbers(text: str, version: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].split():
            if not (version == 2 and word == HEADER):
                yield number, word
