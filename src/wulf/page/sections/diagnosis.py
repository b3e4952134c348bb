"""A diagnosis as people read it: the verdict first; and as JUnit XML for a gate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from xml.etree import ElementTree

from wulf.base.nodeset import fold
from wulf.base.records.diagnosed import Diagnosis, Gate, Kind, Matrix, Score, Suspect, Symptom, Worse
from wulf.base.text import count, in_command, printable
from wulf.base.units import format_bytes, format_change, format_time
from wulf.page.blocks import Block, Cards, Command, Page, Section, Verdict
from wulf.page.parts import Card, Column, Figure, Flag, Item, Table
from wulf.page.words import change_item, listed, name, percent

_WORDS: dict[Kind, str] = {
    "node": "slow with all others",
    "link": "slower than its two nodes explain",
    "sending": "slower in sending than in receiving",
    "receiving": "slower in receiving than in sending",
    "group": "slow with all others and fast among themselves: something between them and the others is slow",
}
_NEXT: dict[Kind, str] = {
    "node": "wulf audit --nodes {nodes}",
    "link": "wulf measure --pairs {pair}",
    "sending": "wulf audit --nodes {nodes}",
    "receiving": "wulf audit --nodes {nodes}",
    "group": "look at the switch or the uplink of {nodes}",
}
NOWHERE: Mapping[str, str] = MappingProxyType({})
#: Nodes that the table names; the rest is as good or better, and in --json.
NAMED = 12
#: A smaller chance is not worth its digits.
LEAST = 1e-6
#: Slower by more is not told apart.
MANY = 1000.0
#: Where one direction carries less than this share of the other, it is the slow one.
ONE_SIDED = 0.75
#: Below this share of its link's speed a rate is worth a word.
FAIR = 0.5


def page(found: Diagnosis) -> Page:
    """Return the verdict, and what it comes from."""
    first, *more = verdict(found)
    flag = _flag(found)
    return Page(
        title=first,
        lede="",
        kind="Diagnosis",
        verb="diagnose",
        head=(
            Verdict(flag, tuple(more)),
            Cards(tuple(map(_card, found.symptoms))),
            table(found),
            *_gate(found),
            *_commands(found),
        ),
        sections=(),
    )


def _gate(found: Diagnosis) -> Iterator[Block]:
    """Yield how it stands against a baseline."""
    gate = found.gate
    if gate is not None:
        figures = count(len(gate.worse), "figure") if gate.worse else "no figure"
        said = f"{figures} proven to be worse by more than {percent(gate.margin)}"
        yield Verdict(
            "good" if gate.holds else "error" if gate.worse else "warning",
            (gate.reason, *map(_worse, gate.worse[:NAMED])),
            f"against {gate.baseline}: {said if gate.worse or not gate.untold else _unseen(gate)}",
        )


def _unseen(gate: Gate) -> str:
    ops = listed([name(op) for op in gate.untold])
    return f"cannot tell: of {ops} a change that matters would go unseen; idle nodes or a larger --budget show more"


def verdict_block(found: Diagnosis) -> Verdict:
    """Return the verdict, for the head of a page."""
    first, *more = verdict(found)
    return Verdict(_flag(found), tuple(more), first)


def _flag(found: Diagnosis) -> Flag:
    return "good" if found.fine else "warning" if found.untold else "error"


def section(
    found: Diagnosis, figures: tuple[Figure, ...] = (), sections: Mapping[str, str] = NOWHERE
) -> Section:
    """Return what is shown of a diagnosis.

    Parameters
    ----------
    figures
        Maps of the times that it judges.
    sections
        Operation → where on the page its figures are.
    """
    scores = table(found)
    return Section(
        "diagnosis",
        "Diagnosis",
        (
            Cards(tuple(_card(symptom, sections) for symptom in found.symptoms)),
            *figures,
            *([scores] if scores.rows else []),
            *_commands(found),
        ),
    )


def _card(symptom: Symptom, sections: Mapping[str, str] = NOWHERE) -> Card:
    pairs = "all pairs" if len(symptom.pairs) == symptom.of_pairs else _pairs(symptom.pairs)
    return Card(
        title=symptom.title,
        where=f"{pairs}, {name(symptom.op)}",
        evidence=printable(symptom.evidence, 300),
        why=symptom.why,
        next=symptom.next,
        section=sections.get(symptom.op, ""),
    )


def _commands(found: Diagnosis) -> Iterator[Command]:
    commands = [_next(suspect) for matrix in found.matrices for suspect in matrix.suspects]
    yield from (Command("next", command) for command in dict.fromkeys(commands))


def verdict(found: Diagnosis) -> Iterator[str]:
    """Yield the answer in one line, then what is slow."""
    nodes = fold(map(printable, found.nodes))
    where = f"{count(len(found.nodes), 'node')}, {nodes}"
    if found.fine:
        but = " but" if found.symptoms else ""
        yield (
            f"fine{but}: of {where} none is slower than the others by more than {percent(found.margin)}"
            + ("; what may affect all of them is shown below" if found.symptoms else "")
        )
    elif found.untold:
        yield f"cannot tell: {'; '.join(_blind(matrix) for matrix in found.matrices if matrix.blind)}"
        yield f"  of {where} nothing is named; idle nodes or a larger --budget show more, --must-see asks for less"
    else:
        yield _answer(found)
        yield f"of {where} these are slower than comparable nodes:"
    for matrix in found.matrices:
        for suspect in matrix.suspects:
            yield f"  {suspicion(suspect, matrix)}"
    for matrix in found.matrices:
        for suspect in matrix.cleared:
            nodes = fold(map(printable, suspect.nodes))
            size = format_bytes(matrix.size_bytes)
            yield f"  {nodes} seemed slow at {size} while others were being measured; alone it was like the others"
    for matrix in found.matrices:
        yield (
            f"{name(matrix.op)} at {format_bytes(matrix.size_bytes)}: {format_time(matrix.typical_s)} between "
            f"{count(matrix.pairs, 'pair')}; nodes that are alike differ by ±{percent(matrix.scatter)}"
            + (f"; {count(matrix.missing, 'pair')} not measured" if matrix.missing else "")
            + (
                f"; a node {_times_slower(matrix)} slower is found in nine cases out of ten"
                if matrix.visible is not None
                else ""
            )
        )
    yield from dict.fromkeys(_connections(matrix) for matrix in found.matrices if matrix.branches)


def _answer(found: Diagnosis) -> str:
    """Name the part that is slowest, by how much, and how many others there are."""
    slow: dict[tuple[str, ...], tuple[Suspect, Matrix]] = {}
    for matrix in found.matrices:
        for suspect in matrix.suspects:
            key = tuple(suspect.nodes)
            if key not in slow or suspect.slower > slow[key][0].slower:
                slow[key] = (suspect, matrix)
    worst, matrix = max(slow.values(), key=lambda one: one[0].slower)
    nodes = fold(map(printable, worst.nodes))
    what = f"the link between {nodes}" if worst.kind == "link" else nodes
    others = len(slow) - 1
    rest = f", and {count(others, 'other suspect')}" if others else ""
    verb = "is" if len(worst.nodes) == 1 or worst.kind == "link" else "are"
    return f"{what} {verb} slow: {_extent(worst, matrix)}{rest}"


def _extent(suspect: Suspect, matrix: Matrix) -> str:
    """Say how slow: '0.3 of 1 Gbit/s', or against the time of others where the link does not tell.

    Where streams tell the directions apart it is said of the slower one.
    """
    if suspect.sends_bits_per_s is not None and suspect.receives_bits_per_s is not None:
        return _one_way(suspect, _link_speed(suspect, matrix))
    scores = [score for score in matrix.scores if score.node in suspect.nodes]
    if suspect.kind in ("node", "group") and scores and scores[0].rate_bits_per_s is not None:
        speeds = {score.link_bits_per_s for score in scores}
        speed = speeds.pop()
        if not speeds and speed is not None:
            return f"{_rate(scores[0].rate_bits_per_s)} of {_rate(speed)}"
    return f"{1 + suspect.slower:.2g} × the time of others at {format_bytes(matrix.size_bytes)}"


def _link_speed(suspect: Suspect, matrix: Matrix) -> float | None:
    """Return what the links of the nodes say, where that is the same [bit/s]."""
    speeds = {score.link_bits_per_s for score in matrix.scores if score.node in suspect.nodes}
    return speeds.pop() if len(speeds) == 1 else None


def _one_way(suspect: Suspect, speed: float | None) -> str:
    """Name the slower direction, where one is, and what the other one carries."""
    sends, receives = suspect.sends_bits_per_s or 0.0, suspect.receives_bits_per_s or 0.0
    of = f" of {_rate(speed)}" if speed is not None else ""
    first, second = (printable(node) for node in (*suspect.nodes, "")[:2])
    link = suspect.kind == "link"
    ways = (f"from {first} to {second}", f"from {second} to {first}") if link else ("sending", "receiving")
    if min(sends, receives) > ONE_SIDED * max(sends, receives):
        return f"{_rate(min(sends, receives))}{of} in either direction"
    slower, faster = (0, 1) if sends < receives else (1, 0)
    rates = sends, receives
    return f"{_rate(rates[slower])}{of} {ways[slower]}, {_rate(rates[faster])} {ways[faster]}"


def _blind(matrix: Matrix) -> str:
    """Return what could have been seen at a size, where that is too little."""
    return (
        f"at {format_bytes(matrix.size_bytes)} only a node {_times_slower(matrix)} slower or worse would have been "
        f"found in nine cases out of ten (asked for: {percent(matrix.wanted or 0.0)})"
    )


def _times_slower(matrix: Matrix) -> str:
    share = matrix.visible or 0.0
    return percent(share) if share < 1 else f"{1 + share:.2g} ×" if share < MANY else f"more than {MANY:g} ×"


def _connections(matrix: Matrix) -> str:
    """Return which nodes have what connects them in common: the same at every size where that says the same."""
    groups = sorted(fold(map(printable, branch.nodes)) for branch in matrix.branches)
    return f"  shared switches, inferred from the longer times of messages across them: {' | '.join(groups)}"


def suspicion(suspect: Suspect, matrix: Matrix) -> str:
    """Return what is said of one suspect."""
    nodes = fold(map(printable, suspect.nodes))
    said = f"{nodes}: {_WORDS[suspect.kind]}, {1 + suspect.slower:.2g} × the time at {format_bytes(matrix.size_bytes)}"
    scores = [score for score in matrix.scores if score.node in suspect.nodes]
    if suspect.kind in ("node", "group") and scores and scores[0].rate_bits_per_s is not None:
        said += f", {_rate(scores[0].rate_bits_per_s)}"
        speeds = {score.link_bits_per_s for score in scores} - {None}
        said += f" where the link says {_rate(speeds.pop() or 0)}" if len(speeds) == 1 else ""
    if suspect.sends_bits_per_s is not None and suspect.receives_bits_per_s is not None:
        said += f"; streams: {_one_way(suspect, None)}"
    chance = f"{suspect.p_value:.1g}" if suspect.p_value >= LEAST else f"below {LEAST:g}"
    return f"{said} (chance of this if all are alike: {chance})"


def table(found: Diagnosis) -> Table:
    """Return every node's score at every size, the worst first."""
    by_node: dict[str, list[Score | None]] = {}
    for number, matrix in enumerate(found.matrices):
        for score in matrix.scores:
            by_node.setdefault(score.node, [None] * len(found.matrices))[number] = score
    ranked = sorted(
        by_node.items(), key=lambda row: -max(score.ratio.value for score in row[1] if score is not None)
    )
    columns = [Column("node", whole=True)]
    for matrix in found.matrices:
        columns.append(Column(f"{name(matrix.op)} {format_bytes(matrix.size_bytes)}", numeric=True))
        if _has_rates(matrix):
            columns += [Column("rate", numeric=True), Column("of its link", numeric=True)]
    rest = len(ranked) - NAMED
    return Table(
        title="Time of a message against that of a typical node",
        columns=tuple(columns),
        rows=tuple(
            (
                Item(printable(node)),
                *(item for pair in zip(found.matrices, scores, strict=True) for item in _items(*pair)),
            )
            for node, scores in ranked[:NAMED]
        ),
        note=f"{count(rest, 'more node')}, all of them better: --json" if rest > 0 else "",
    )


def _has_rates(matrix: Matrix) -> bool:
    return any(score.rate_bits_per_s is not None for score in matrix.scores)


def _items(matrix: Matrix, score: Score | None) -> Iterator[Item]:
    if score is None:
        yield from [Item("–")] * (3 if _has_rates(matrix) else 1)
        return
    bad = any(score.node in suspect.nodes for suspect in matrix.suspects)
    yield change_item(score.ratio, "error" if bad else "")
    if score.rate_bits_per_s is None:
        return
    yield Item(_rate(score.rate_bits_per_s), score.rate_bits_per_s)
    if score.link_bits_per_s is None:
        yield Item("unknown")
    else:
        share = score.rate_bits_per_s / score.link_bits_per_s
        yield Item(percent(share), share, "" if share >= FAIR else "warning")


def _rate(bits_per_s: float) -> str:
    scale, unit = (1e9, "Gbit/s") if bits_per_s >= 1e9 else (1e6, "Mbit/s")
    return f"{bits_per_s / scale:.3g} {unit}"


def _pairs(pairs: list[tuple[str, str]]) -> str:
    named = ", ".join(f"{printable(first)}–{printable(second)}" for first, second in pairs[:3])
    return f"{named} and {count(len(pairs) - 3, 'more pair')}" if len(pairs) > 3 else named


def _worse(worse: Worse) -> str:
    where = fold(map(printable, worse.nodes)) if worse.nodes else "all nodes"
    return f"{name(worse.op)} {format_bytes(worse.size_bytes)} {where}: {format_change(worse.ratio)}"


def _next(suspect: Suspect) -> str:
    nodes = in_command(fold(suspect.nodes), "NODES")
    return _NEXT[suspect.kind].format(nodes=nodes, pair=in_command(":".join(suspect.nodes), "PAIR"))


def junit(found: Diagnosis) -> str:
    """Return a diagnosis as JUnit XML: a test case for every node, for what is between them, and for the baseline."""
    suite = ElementTree.Element("testsuite", name="wulf diagnose")
    said = [(suspect, suspicion(suspect, matrix)) for matrix in found.matrices for suspect in matrix.suspects]
    cases = {
        f"{node} is like the others": [text for suspect, text in said if suspect.nodes == [node]]
        for node in found.nodes
    }
    cases["links and groups of nodes are alike"] = [text for suspect, text in said if len(suspect.nodes) > 1]
    cases["a slow node would have been seen"] = [_blind(matrix) for matrix in found.matrices if matrix.blind]
    if found.gate is not None:
        unseen = [_unseen(found.gate)] if found.gate.untold else []
        cases[f"not worse than {found.gate.baseline}"] = [*map(_worse, found.gate.worse), *unseen]
    for title, failures in cases.items():
        case = ElementTree.SubElement(suite, "testcase", classname="wulf.diagnosis", name=printable(title))
        if failures:
            ElementTree.SubElement(case, "failure", message=printable("; ".join(failures), 1000))
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(bool(failures) for failures in cases.values())))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
