"""iperf3, as JSON (``-J``, ``--json-stream``): the block size, which makes a time of a rate, is only there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from wulf.base.importing.series import Series, Source

TITLE = "iperf3"
STATISTIC = "mean over one launch"
_SENT, _RECEIVED, _BOTH = "sum_sent", "sum_received", "sum"
_BACK = "_bidir_reverse"


class _Members(dict[str, Any]):
    """An object whose members that are there again, as iperf3 before 3.11 writes them, have a name of their own."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        for name, value in pairs:
            self[name if name not in self else f"{name}{_BACK}"] = value


class _Way(NamedTuple):
    """A direction: what is behind the names of its sums, and what its series is called."""

    ending: str
    called: str


def recognises(text: str) -> bool:
    """Whether a text is an output of iperf3, of either kind."""
    if re.search(r'"test_start"\s*:', text) and '"blksize"' in text:
        return True
    return ('"error"' in text and '"intervals"' in text) or ("iperf Done." in text and "bits/sec" in text)


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each direction that was measured, of each document in the file."""
    if not source.text.lstrip().startswith("{"):
        source.fail("expected JSON, with the size of blocks: run iperf3 with -J")
    for whole in _documents(source):
        if error := whole.get("error"):
            source.fail(f"iperf3 failed: {str(error)[:200]}")
        test, end = _part(source, _part(source, whole, "start"), "test_start"), _part(source, whole, "end")
        back = any(name.endswith(_BACK) for name in end) or bool(test.get("bidir"))
        ways = (
            (_Way("", "bidirectional, there"), _Way(_BACK, "bidirectional, back"))
            if back
            else (_Way("", ""),)
        )
        for way in ways:
            yield _series(source, test, end, way)


def _documents(source: Source) -> Iterator[_Members]:
    """Yield what is to be read as one output each; events of a stream are put together."""
    decoder = json.JSONDecoder(object_pairs_hook=_Members, parse_constant=_no_number)
    text, place = source.text, 0
    events: _Members | None = None
    while (place := re.compile(r"\s*").match(text, place).end()) < len(text):  # type: ignore[union-attr]
        try:
            one, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            source.fail(f"expected JSON: {str(error)[:120]}")
        if not isinstance(one, _Members):
            source.fail("expected JSON objects")
        if "event" not in one:
            yield one
            continue
        events = _Members([]) if events is None else events
        events[str(one["event"])] = one.get("data")
        if one["event"] == "end":
            yield events
            events = None
    if events is not None:
        source.fail("expected an event 'end' at the end of the stream")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _part(source: Source, whole: _Members, name: str) -> _Members:
    part = whole.get(name)
    if not isinstance(part, _Members):
        source.fail(f"expected {name} in the JSON of iperf3: is it of -J, and did it finish?")
    return part


def _series(source: Source, test: _Members, end: _Members, way: _Way) -> Series:
    size = source.size(_number(source, test, "blksize"), source.lines[0])
    rate = _rate(source, end, way, str(test.get("protocol")))
    return Series(
        name=", ".join(
            filter(None, [f"iperf3 {test.get('protocol')}"[:40], *_words(source, test), way.called])
        ),
        pattern="stream",
        quantity="time per block",
        statistic=STATISTIC,
        times_s={size: source.seconds(size * 8 / rate, "a time of a block", source.lines[0])},
    )


def _words(source: Source, test: _Members) -> Iterator[str]:
    """Yield what distinguishes the test; settings of the nodes, such as congestion control, do not."""
    if test.get("reverse"):
        yield "reverse"
    streams = _number(source, test, "num_streams", 1)
    if streams != 1:
        yield f"{streams:g} streams"
    target = _number(source, test, "target_bitrate", 0)
    if target:
        yield f"at most {target / 1e6:g} Mbit/s"
    # Paced by the kernel (``--fq-rate``); said since 3.13.
    if paced := _number(source, test, "fqrate", 0):
        yield f"paced at {paced / 1e6:g} Mbit/s"


def _rate(source: Source, end: _Members, way: _Way, protocol: str) -> float:
    """Return what arrived [bit/s]: of UDP before 3.10 what was sent less what was lost."""
    received = end.get(_RECEIVED + way.ending)
    if isinstance(received, _Members):
        rate = _number(source, received, "bits_per_second")
    else:
        both = _part(source, end, _BOTH + way.ending)
        lost = _number(source, both, "lost_percent") if protocol == "UDP" else 0.0
        rate = _number(source, both, "bits_per_second") * (1 - lost / 100)
    if rate <= 0:
        source.fail(f"expected end.{_RECEIVED}{way.ending}.bits_per_second above 0")
    return rate


def _number(source: Source, part: _Members, name: str, otherwise: float | None = None) -> float:
    value = part.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        source.fail(f"expected {name} to be a number in the JSON of iperf3")
    return float(value)
