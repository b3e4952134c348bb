"""Other people's files and machines: what is right, wrong or refused of inputs whose right values are known.

A source yields a judgement for each of its inputs; another one is a function in `SOURCES`. *Refused* is what the
program says it does not understand, *wrong* a figure or finding that is another than the right one, or a refusal where
there is a right value.

Goal: none wrong, no traceback.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wulf.base import catalogue
from wulf.base.errors import WulfError
from wulf.base.importing import formats
from wulf.base.importing.series import Series
from wulf.base.records import NodeRecord
from wulf.base.trace.layout import Kind
from wulf.node.facts.parse import parse
from wulf.node.fleet.look import judge
from wulf.tools.trace.importing import import_trace

from .common import Figure, finish

Outcome = Literal["right", "wrong", "refused", "traceback"]
IMPORTS = Path(__file__).parents[1] / "tests/golden/imports"
TRACES = IMPORTS.parent / "traces"
NODES = IMPORTS.parent / "nodes"
REASONS = ("absent", "unsupported", "unknown")
#: What a host computes, where a trace counts operations.
OPERATIONS_PER_S = 1e9
#: Values are printed with two digits and more; what is right is no further off than by its own rounding.
TOLERANCE = 1e-3


class Judged(NamedTuple):
    """What became of an input."""

    name: str
    outcome: Outcome
    #: What is wrong, or why it is refused.
    words: str = ""


Source = Callable[[], Iterator[Judged]]


def cases(folder: Path = IMPORTS) -> list[dict[str, Any]]:
    """Return the inputs of a folder, with what they say."""
    with (folder / "cases.toml").open("rb") as file:
        found: list[dict[str, Any]] = tomllib.load(file)["case"]
    return found


def imports() -> Iterator[Judged]:
    """Judge all outputs of other benchmarks."""
    for case in cases():
        yield judged(case)


def judged(case: Mapping[str, Any]) -> Judged:
    """Read an output, and hold it against what is right."""
    name = case["file"]
    left_out: list[str] = []
    try:
        text = formats.decoded((IMPORTS / name).read_bytes(), name)
        launches = formats.read(text, name, left_out)
    except WulfError as error:
        expected = re.search(case["refused"], str(error)) if "refused" in case else None
        return Judged(name, "refused" if expected else "wrong", str(error))
    except Exception:
        return Judged(name, "traceback", traceback.format_exc(limit=-1).strip())
    if "refused" in case:
        return Judged(name, "wrong", f"not refused: {case['refused']}")
    wrong = [*_wrong_figures(case, launches), *_wrong_words(case, launches, left_out)]
    return Judged(name, "wrong" if wrong else "right", "; ".join(wrong))


def _wrong_figures(case: Mapping[str, Any], launches: Sequence[Sequence[Series]]) -> Iterator[str]:
    for name, size, kind, value, ranks, *launch in case["is"]:
        found = [
            one
            for one in (launches[launch[0]] if launch else [one for several in launches for one in several])
            if one.name == name and (one.ranks or 0) == ranks and size in one.times_s
        ]
        seconds = {"time": value, "bandwidth": size / value, "rate": 1 / value}[kind]
        if not any(abs(one.times_s[size] / seconds - 1) <= TOLERANCE for one in found):
            yield f"{name} at {size} B of {ranks} ranks: {[one.times_s[size] for one in found]}, right is {seconds:g} s"


def _wrong_words(
    case: Mapping[str, Any], launches: Sequence[Sequence[Series]], left_out: Sequence[str]
) -> Iterator[str]:
    names = {one.name for several in launches for one in several}
    if len(names) != case.get("series", len(names)):
        yield f"{len(names)} series, right are {case['series']}: {sorted(names)}"
    if "left_out" in case and not re.search(case["left_out"], "\n".join(left_out)):
        yield f"left out is {left_out}"
    if "left_out" not in case and left_out:
        yield f"nothing is to be left out: {left_out}"


def traces() -> Iterator[Judged]:
    """Judge all traces of other simulators."""
    for case in cases(TRACES):
        yield judged_trace(case)


def judged_trace(case: Mapping[str, Any]) -> Judged:
    """Read a trace, and hold what its ranks do against what is right."""
    name = case["file"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            trace = import_trace([TRACES / name], case["form"], Path(folder) / "x.wtrace", OPERATIONS_PER_S)
            found = [list(stream.records()) for stream in trace.streams]
    except WulfError as error:
        expected = re.search(case["refused"], str(error)) if "refused" in case else None
        return Judged(name, "refused" if expected else "wrong", str(error))
    except Exception:
        return Judged(name, "traceback", traceback.format_exc(limit=-1).strip())
    if "refused" in case:
        return Judged(name, "wrong", f"not refused: {case['refused']}")
    sent = [one for records in found for one in records if one.kind in (Kind.SEND, Kind.ISEND)]
    said = {
        "ranks": len(found),
        "messages": len(sent),
        "bytes": sum(one.bytes for one in sent),
        "computes_s": [round(sum(one.compute_ns for one in records)) / 1e9 for records in found],
        "collectives": [sum(Kind.BARRIER <= one.kind <= Kind.EXSCAN for one in records) for records in found],
    }
    wrong = [f"{key} is {value}, right is {case[key]}" for key, value in said.items() if value != case[key]]
    return Judged(name, "wrong" if wrong else "right", "; ".join(wrong))


def nodes() -> Iterator[Judged]:
    """Judge what nodes print: their facts, and what an audit finds there."""
    for path in sorted(NODES.glob("*.tree")):
        expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        try:
            wrong = [*wrong_facts(path, expected), *wrong_findings(path, expected)]
        except Exception:
            yield Judged(path.name, "traceback", traceback.format_exc(limit=-1).strip())
        else:
            yield Judged(path.name, "wrong" if wrong else "right", "; ".join(wrong))


def node_of(path: Path, expected: Mapping[str, Any]) -> NodeRecord:
    """Return the facts in a tree."""
    text = path.read_text(encoding="utf-8")
    return parse("node01", text, expected["interface"], list(catalogue.knobs().values()))


def wrong_facts(path: Path, expected: Mapping[str, Any]) -> Iterator[str]:
    """Say which facts are other than the right ones, and which have a value, or another reason, that have none."""
    node = node_of(path, expected)
    places = {name: kind for kind in REASONS for name in getattr(node, kind)}
    for name, right in expected["facts"].items():
        value = node.facts.get(name, places.get(name))
        if value != right or isinstance(value, bool) != isinstance(right, bool):
            yield f"{name} is {value}, right is {right}"
    for kind in REASONS:
        for name in expected[kind]:
            if places.get(name) != kind:
                yield f"{name} is {node.facts.get(name, places.get(name))}, right is {kind}"


def wrong_findings(path: Path, expected: Mapping[str, Any]) -> Iterator[str]:
    """Say what an audit misses, and what it finds that is none."""
    said = {
        f"{one.severity} {one.id} {one.found}"
        for one in judge([node_of(path, expected)], "hpc").findings
        if one.kind == "check"
    }
    for right in expected.get("findings", []):
        if not any(one.startswith(right) for one in said):
            yield f"not found: {right}"
    for name in expected.get("not_found", []):
        if any(one.split(" ")[1] == name for one in said):
            yield f"found: {name}"


SOURCES: Mapping[str, Source] = {"imports": imports, "traces": traces, "nodes": nodes}


def main(_: list[str]) -> int:
    """Entry point."""
    figures = []
    for source, outcomes_of in SOURCES.items():
        outcomes: Counter[str] = Counter()
        for one in outcomes_of():
            outcomes[one.outcome] += 1
            if one.outcome in ("wrong", "traceback"):
                print(f"{one.outcome}: {one.name}: {one.words}")
        print(f"{source}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
        figures += [
            Figure(name=f"{source}-wrong-of-{outcomes.total()}", value=outcomes["wrong"], goal=0),
            Figure(name=f"{source}-tracebacks", value=outcomes["traceback"], goal=0),
        ]
    return finish("field", figures)
