"""Other people's files and machines: what is right, wrong or refused of inputs whose right values are known.

A source yields a judgement for each of its inputs; another one is a function in `SOURCES`. *Refused* is what the
program says it does not understand, *wrong* a figure or finding that is another than the right one, or a refusal where
there is a right value.

Goal: none wrong, no traceback.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wulf.base.errors import WulfError
from wulf.base.importing import formats
from wulf.base.importing.series import Series
from wulf.base.trace.layout import Kind
from wulf.tools.trace.importing import import_trace

from .common import Figure, finish

Outcome = Literal["right", "wrong", "refused", "traceback"]
IMPORTS = Path(__file__).parents[1] / "tests/golden/imports"
TRACES = IMPORTS.parent / "traces"
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


SOURCES: Mapping[str, Source] = {"imports": imports, "traces": traces}


def main(_: list[str]) -> int:
    """Entry point."""
    figures = []
    for source, judge in SOURCES.items():
        outcomes: Counter[str] = Counter()
        for one in judge():
            outcomes[one.outcome] += 1
            if one.outcome in ("wrong", "traceback"):
                print(f"{one.outcome}: {one.name}: {one.words}")
        print(f"{source}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
        figures += [
            Figure(name=f"{source}-wrong-of-{outcomes.total()}", value=outcomes["wrong"], goal=0),
            Figure(name=f"{source}-tracebacks", value=outcomes["traceback"], goal=0),
        ]
    return finish("field", figures)
