"""The picture of a pattern, and how its ranks spend their time: the data of these charts."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wulf.base.records.emulated import Emulated, EmulatedEdge, EmulatedPattern, EmulatedProgram
from wulf.base.text import count
from wulf.base.units import format_bytes
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import name, sentence
from wulf.tools.measure.page import pattern_charts as charts
from wulf.tools.measure.page.pattern_layout import Point, around, places

#: Programs beside each other.
_BESIDE = 2
#: Around a program, of the distance of two ranks; above it for its name, of the width of the picture.
_PADDING, _TITLE = 0.55, 0.05
#: Two ranks stand no further apart, and a program is no higher, of the width of the picture.
_APART, _HIGH = 0.17, 0.85
#: More edges than that are not labelled one by one.
_LABELS = 20
#: A label is so far from its line, of the distance of two ranks.
_BESIDE_LINE = 0.14
_KIB = 1024
#: A line that leaves a mesh is so long, of the distance of two ranks.
_STUB = 0.42


@dataclass(frozen=True)
class Scaled:
    """A program's place in the whole picture, which is 1 wide."""

    program: EmulatedProgram
    points: list[Point]
    #: Distance of two ranks.
    unit: float
    title: Point


@dataclass(frozen=True)
class _Line:
    """All that goes between two ranks of a program, in both directions where both send."""

    program: int
    one: int
    other: int
    #: Messages and bytes, there and back.
    there: tuple[int, int]
    back: tuple[int, int]
    is_collective: bool

    @property
    def is_both(self) -> bool:
        return self.back[0] > 0

    @property
    def sizes(self) -> list[float]:
        """Mean of a message, there and back."""
        return [total / messages for messages, total in (self.there, self.back) if messages]

    @property
    def size(self) -> float:
        """Mean of all messages."""
        return (self.there[1] + self.back[1]) / (self.there[0] + self.back[0])

    @property
    def shown(self) -> str:
        """Its size, or both where they differ."""
        return " / ".join(dict.fromkeys(_about(size) for size in self.sizes))


def picture(pattern: EmulatedPattern) -> Figure | None:
    """Return who sends to whom; None where there are too many edges for a picture."""
    if pattern.edges is None:
        return None
    panels, aspect = _panels(pattern.programs)
    lines = list(_lines(pattern.edges))
    datasets: dict[str, Columns] = {
        "main": _numbers(pattern, pattern.edges),
        "lines": _drawn(pattern, panels, lines, aspect),
        "arrows": _arrows(pattern, panels, lines, aspect),
        "labels": _labels(pattern, panels, lines, aspect),
        "ranks": _ranks(pattern, panels, aspect),
        "titles": {
            "x": rounded([panel.title[0] for panel in panels]),
            "y": rounded([panel.title[1] / aspect for panel in panels]),
            "text": [_title(panel.program) for panel in panels],
        },
        "scale": {
            "aspect": [round(aspect, 4)],
            "unit": [round(min(panel.unit for panel in panels), 5)],
            "lines": [len(lines)],
        },
    }
    return Figure(
        id="pattern-picture",
        chart=charts.PICTURE,
        title="Who sends to whom",
        x_title="",
        y_title="",
        variants=(
            Variant(
                label="",
                datasets=datasets,
                summary=f"Graph of {count(pattern.ranks, 'rank')} with {count(len(lines), 'edge')}: {_sizes(lines)}.",
                caption=_caption(pattern, lines),
            ),
        ),
    )


def _title(program: EmulatedProgram) -> str:
    return f"{name(program.name)}: {count(len(program.ranks), 'rank')}"


def _panels(programs: Sequence[EmulatedProgram]) -> tuple[list[Scaled], float]:
    """Return where programs stand, and how high the picture is, as a part of its width."""
    columns = min(len(programs), _BESIDE)
    rows = math.ceil(len(programs) / columns)
    wide = 1 / columns
    natural = [places(program) for program in programs]
    sizes = [_size(points) for points in natural]
    units = [min(wide / w, _HIGH * wide / h, _APART) for w, h in sizes]
    high = _TITLE + max(unit * h for unit, (_, h) in zip(units, sizes, strict=True))
    panels = []
    for number, (program, points, unit) in enumerate(zip(programs, natural, units, strict=True)):
        row, column = divmod(number, columns)
        middle = wide * (column + 0.5), high * (rows - row - 0.5) - _TITLE / 2
        at = _moved(points, unit, middle)
        top = max(y for _, y in at) + unit * _PADDING
        panels.append(Scaled(program, at, unit, (middle[0], top)))
    return panels, rows * high


def _size(points: Sequence[Point]) -> Point:
    """Return width and height of what is drawn, with what is around it."""
    xs, ys = zip(*points, strict=True)
    return max(xs) - min(xs) + 2 * _PADDING, max(ys) - min(ys) + 2 * _PADDING


def _moved(points: Sequence[Point], unit: float, middle: Point) -> list[Point]:
    """Return points around another middle, and so far apart."""
    xs, ys = zip(*points, strict=True)
    x, y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return [(middle[0] + unit * (one - x), middle[1] + unit * (other - y)) for one, other in points]


def _lines(edges: Sequence[EmulatedEdge]) -> Iterator[_Line]:
    """Yield a line for each two ranks of a program that one of them sends to; two, where collectives do, too."""

    def key(edge: EmulatedEdge) -> tuple[int, bool, int, int]:
        low, high = sorted((edge.source, edge.destination))
        return edge.program, edge.collective, low, high

    for (program, is_collective, low, high), group in itertools.groupby(sorted(edges, key=key), key):
        loads = {edge.source: (edge.messages, edge.bytes) for edge in group}
        one, other = (low, high) if low in loads else (high, low)
        yield _Line(program, one, other, loads[one], loads.get(other, (0, 0)), is_collective)


def _numbers(pattern: EmulatedPattern, edges: Sequence[EmulatedEdge]) -> Columns:
    return {
        "program": [name(pattern.programs[edge.program].name) for edge in edges],
        "from": [edge.source for edge in edges],
        "to": [edge.destination for edge in edges],
        "messages": [edge.messages for edge in edges],
        "bytes": [edge.bytes for edge in edges],
        "by": ["collective" if edge.collective else "message" for edge in edges],
    }


Ends = tuple[Point, Point]


def _ends(panel: Scaled, line: _Line) -> list[Ends]:
    """Return the pieces of a line: one, or two short ones where it leaves a mesh and comes in at its other side."""
    place = {rank: index for index, rank in enumerate(panel.program.ranks)}
    one, other = place[line.one], place[line.other]
    a, b = panel.points[one], panel.points[other]
    way = around(panel.program, one, other)
    if way is None or line.is_collective:
        return [(a, b)]
    x, y = (panel.unit * _STUB * part / math.hypot(*way) for part in way)
    return [(a, (a[0] + x, a[1] + y)), (b, (b[0] - x, b[1] - y))]


def _drawn(
    pattern: EmulatedPattern, panels: Sequence[Scaled], lines: Sequence[_Line], aspect: float
) -> Columns:
    pieces = [
        (line, ends, len(parts) > 1)
        for line in lines
        for parts in [_ends(panels[line.program], line)]
        for ends in parts
    ]
    return {
        "x": rounded([ends[0][0] for _, ends, _ in pieces]),
        "y": rounded([ends[0][1] / aspect for _, ends, _ in pieces]),
        "x2": rounded([ends[1][0] for _, ends, _ in pieces]),
        "y2": rounded([ends[1][1] / aspect for _, ends, _ in pieces]),
        "program": [name(pattern.programs[line.program].name) for line, _, _ in pieces],
        "size": rounded([line.size for line, _, _ in pieces]),
        "ranks": [_between(line) for line, _, _ in pieces],
        "words": [_words(line) for line, _, _ in pieces],
        "dashed": [int(leaves) for *_, leaves in pieces],
        "faint": [int(line.is_collective) for line, *_ in pieces],
    }


def _between(line: _Line) -> str:
    return f"{line.one} {'↔' if line.is_both else '→'} {line.other}"


def _words(line: _Line) -> str:
    what = ("part of collectives", "parts of collectives") if line.is_collective else ("message", "messages")
    ways = [(line.one, line.there), (line.other, line.back)]
    return "; ".join(
        f"{rank} sends {count(messages, *what)} of {_about(total / messages)} on average"
        for rank, (messages, total) in ways
        if messages
    )


def _arrows(
    pattern: EmulatedPattern, panels: Sequence[Scaled], lines: Sequence[_Line], aspect: float
) -> Columns:
    """Return where lines of one direction have their heads: nearer to the end than the middle."""
    found = [
        (line, ends) for line in lines if not line.is_both for ends in _ends(panels[line.program], line)[:1]
    ]
    along = 0.62
    return {
        "x": rounded([a[0] + along * (b[0] - a[0]) for _, (a, b) in found]),
        "y": rounded([(a[1] + along * (b[1] - a[1])) / aspect for _, (a, b) in found]),
        # Clockwise from above.
        "angle": rounded([math.degrees(math.atan2(b[0] - a[0], b[1] - a[1])) for _, (a, b) in found]),
        "program": [name(pattern.programs[line.program].name) for line, _ in found],
    }


def _labels(
    pattern: EmulatedPattern, panels: Sequence[Scaled], lines: Sequence[_Line], aspect: float
) -> Columns:
    """Return sizes beside lines, where they are few and not all alike."""
    shown = [] if len(lines) > _LABELS or _alike(lines) else list(lines)
    degrees = Counter((line.program, rank) for line in lines for rank in (line.one, line.other))
    middles = []
    for line in shown:
        a, b = _ends(panels[line.program], line)[0]
        # Where many lines meet there is no room.
        one, other = (degrees[line.program, rank] for rank in (line.one, line.other))
        along = min(max(one / (one + other), 0.25), 0.75)
        x, y = _beside(a, b, along, _BESIDE_LINE * panels[line.program].unit)
        middles.append((x, y / aspect))
    return {
        "x": rounded([x for x, _ in middles]),
        "y": rounded([y for _, y in middles]),
        "text": [line.shown for line in shown],
        "program": [name(pattern.programs[line.program].name) for line in shown],
    }


def _beside(a: Point, b: Point, along: float, distance: float) -> Point:
    """Return a point beside a line, part of its way along: above it, or to the right of one that goes up."""
    across, up = b[0] - a[0], b[1] - a[1]
    length = math.hypot(across, up) or 1.0
    x, y = -up / length, across / length
    if y < -0.1 or (abs(y) <= 0.1 and x < 0):
        x, y = -x, -y
    # Words are wider than high.
    return a[0] + along * across + 2 * distance * x, a[1] + along * up + distance * y


def _alike(lines: Sequence[_Line]) -> bool:
    sizes = [size for line in lines for size in line.sizes]
    return not sizes or max(sizes) <= charts.ALIKE * min(sizes)


def _ranks(pattern: EmulatedPattern, panels: Sequence[Scaled], aspect: float) -> Columns:
    rows = [
        (rank, point, panel)
        for panel in panels
        for rank, point in zip(panel.program.ranks, panel.points, strict=True)
    ]
    several = {
        rank for rank in range(pattern.ranks) if sum(rank in one.ranks for one in pattern.programs) > 1
    }
    return {
        "x": rounded([point[0] for _, point, _ in rows]),
        "y": rounded([point[1] / aspect for _, point, _ in rows]),
        "rank": [rank for rank, _, _ in rows],
        "program": [name(panel.program.name) for _, _, panel in rows],
        "several": [int(rank in several) for rank, _, _ in rows],
    }


def _about(size: float) -> str:
    """Return a size, exactly where it is a round one; means are not."""
    if size < _KIB or size % _KIB == 0:
        return format_bytes(round(size))
    return f"{size / _KIB:.3g} KiB" if size < _KIB**2 else f"{size / _KIB**2:.3g} MiB"


def _sizes(lines: Sequence[_Line]) -> str:
    if not lines:
        return "nothing but collectives without a direction"
    sizes = [size for line in lines for size in line.sizes]
    low, high = (_about(pick(sizes)) for pick in (min, max))
    return f"messages of {low}" if low == high else f"messages of {low} to {high} on average of an edge"


def _caption(pattern: EmulatedPattern, lines: Sequence[_Line]) -> str:
    said = [f"{sentence(_sizes(lines))}."]
    if any(not line.is_both for line in lines):
        said.append("An arrow: only one of the two sends.")
    if any(line.is_collective for line in lines):
        said.append("Fainter lines: what collectives carry for whom, however the library does it.")
    if any(_leaves(pattern, line) for line in lines):
        said.append("Short dashed lines leave the mesh and come in again at its other side.")
    if sum(len(program.ranks) for program in pattern.programs) > pattern.ranks:
        said.append("Ranks with a ring are in several programs.")
    return " ".join(said)


def _leaves(pattern: EmulatedPattern, line: _Line) -> bool:
    """Whether a line leaves a mesh."""
    program = pattern.programs[line.program]
    ends = program.ranks.index(line.one), program.ranks.index(line.other)
    return not line.is_collective and around(program, *ends) is not None


def shares(found: Emulated) -> Figure:
    """Return what every rank does, by program."""
    rows = [
        (name(program.name), one.rank, part, seconds)
        for program in found.programs
        for one in program.by_rank
        for part, seconds in (("computing", one.compute_s), ("in MPI", one.time_s - one.compute_s))
    ]
    several = len(found.programs) > 1
    main: Columns = {
        "rank": [f"{program}, {rank}" if several else f"{rank}" for program, rank, _, _ in rows],
        "part": [part for _, _, part, _ in rows],
        "seconds": rounded([seconds for *_, seconds in rows]),
        "order": [int(part == "in MPI") for _, _, part, _ in rows],
    }
    longest = max((one.time_s for program in found.programs for one in program.by_rank), default=0.0)
    return Figure(
        id="pattern-shares",
        chart=charts.SHARES,
        title="What ranks do",
        x_title="time of a pass",
        y_title="program, rank" if several else "rank",
        x=ticks.linear_times([longest]),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Computing and time in MPI of {count(len(rows) // 2, 'rank')}.",
                caption="Medians over launches. In MPI: sending, receiving, and waiting for others.",
            ),
        ),
    )
