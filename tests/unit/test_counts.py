"""'1 node', never '1 nodes': what is counted in a message is counted by `wulf.base.text.count`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.unit import sources
from wulf.base.text import HAS, count

pytestmark = pytest.mark.xdist_group(sources.GROUP)
SOURCES = Path(__file__).parents[2] / "src" / "wulf"
#: Capitals are those of a bound, and no bound is one.
BOUND = re.compile(r"([a-z_]+\.)*_?[A-Z][A-Z_0-9]*")
#: What stands right behind what is put into a text: a plural, or a word and a plural.
NEXT = re.compile(r" ([a-zA-Z]+)\b(?!/)(?: ([a-zA-Z]+)\b)?")
#: Words behind which another thing begins.
ANOTHER = {"of", "in", "on", "that", "from", "while", "between", "has", "B"}
#: These are two or more where the text is made, or the word is a verb.
KNOWN = {
    ("base/trace/export/operations.py", "rank", "receives"),
    ("node/lab/slurm.py", "node.address", "CPUs"),
    ("node/lab/topology.py", "beyond + 1", "nodes"),
    ("node/lab/topology.py", "fabric.leaves", "leaves"),
    ("node/probe/ladder.py", "max_size", "leaves"),
    ("stats/estimate/figure_advice.py", "min(few.values())", "launches"),
    ("tools/hpl/given_problems.py", "total", "problems"),
    ("tools/hpl/result.py", "len(plan.asked)", "problems"),
    ("tools/hpl/session.py", "len(run.plan.libraries)", "libraries"),
    ("tools/measure/page/tables.py", "who", "times"),
    ("tools/trace/work.py", "request.ranks", "ranks"),
    ("tools/tune/page/view.py", "_many(tuning.trials_factorial)", "combinations"),
    ("tools/tune/page/words.py", "guarded", "candidates"),
    ("tools/watch/judging.py", "judge.STEP.fewest + 1", "runs"),
    ("tools/worth/money.py", "job.trace", "runs"),
    ("tools/worth/words.py", "of.tuned", "changes"),
    ("tools/worth/words.py", "one.network", "changes"),
    ("tools/incast/page.py", "_bounds(ratio, lambda bound: f'{bound:.3g}')", "times"),
}


def parts(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.FormattedValue, str]]:
    """Yield what is put into a text, with what follows it there."""
    for text in nodes:
        if isinstance(text, ast.JoinedStr):
            for value, after in zip(text.values, text.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                    yield value, str(after.value)


def called(expression: ast.expr) -> str:
    """Return the name of the function that is called; empty where none is."""
    function = expression.func if isinstance(expression, ast.Call) else None
    return str(getattr(function, "attr", getattr(function, "id", "")))


def plurals(files: Mapping[str, Sequence[ast.AST]]) -> set[str]:
    """Return the plurals of all nouns that are counted somewhere."""
    found = set()
    for nodes in files.values():
        for call in nodes:
            if isinstance(call, ast.Call) and called(call) == "count":
                words = [str(one.value) for one in call.args[1:] if isinstance(one, ast.Constant)]
                found |= {count(2, *words[:2]).split()[-1]} if words else set()
    return found


def noun_of(after: str, nouns: set[str]) -> str:
    """Return the plural with which a text goes on, maybe behind an adjective; empty where it does not."""
    words = NEXT.match(after)
    if words is None:
        return ""
    first, second = words[1], words[2] or ""
    if first in nouns:
        return first
    return second if second in nouns and first not in ANOTHER else ""


def uncounted(files: Mapping[str, Sequence[ast.AST]]) -> Iterator[tuple[str, str, str]]:
    """Yield where a number and a plural are put together: file, the number, the plural."""
    nouns = plurals(files)
    for file, nodes in files.items():
        for value, after in parts(nodes):
            said = noun_of(after, nouns)
            numeric = value.format_spec is None and not called(value.value).endswith(
                ("count", "name", "printable")
            )
            if said and numeric and not BOUND.fullmatch(number := ast.unparse(value.value)):
                yield file, number, said


def test_a_number_of_things_is_written_by_the_helper() -> None:
    files = {str(file.relative_to(SOURCES)): nodes for file, nodes in sources.nodes().items()}
    assert {"nodes", "launches", "libraries", "problems", "CPUs"} <= plurals(files)
    assert set(uncounted(files)) == KNOWN


def test_what_the_scan_is_to_find_it_finds() -> None:
    told = ast.parse(
        "count(n, 'node')\nf'{n} nodes'\nf'{len(n)} direct nodes'\nf'{MOST} nodes, {n:.1f} nodes'"
    )
    assert [number for _, number, _ in uncounted({"x.py": list(ast.walk(told))})] == ["n", "len(n)"]


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (1, "node", "1 node"),
        (0, "node", "0 nodes"),
        (2, "launch", "2 launches"),
        (2, "library", "2 libraries"),
        (2, "day", "2 days"),
        (1, "more node", "1 more node"),
    ],
)
def test_one_of_a_kind_is_singular(number: int, noun: str, said: str) -> None:
    assert count(number, noun) == said


def test_verbs_agree() -> None:
    assert [count(number, "rank", verbs=HAS) for number in (0, 1, 2)] == [
        "0 ranks have",
        "1 rank has",
        "2 ranks have",
    ]
    assert count(2, "leaf", "leaves") == "2 leaves"
