"""All formats that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from wulf.base.errors import ImportFormatError
from wulf.base.importing import (
    challenge,
    engine,
    imb,
    iperf3,
    linpack,
    mpptest,
    nccl,
    netperf,
    netpipe,
    osu,
    perftest,
    qperf,
    sockperf,
)
from wulf.base.importing.grammar import Grammar
from wulf.base.importing.series import MOST_BYTES, Series, Source

_Launches = list[list[Series]]


class Format(NamedTuple):
    """What a benchmark prints: who made it, whether a text is of it, and its results launch by launch."""

    title: str
    recognises: Callable[[str], bool]
    launches: Callable[[Source], _Launches]


def _described(grammar: Grammar) -> Format:
    def recognises(text: str) -> bool:
        return engine.recognises(grammar, text)

    def launches(source: Source) -> _Launches:
        return _grouped(engine.read(grammar, source))

    return Format(grammar.title, recognises, launches)


def _read_by(
    title: str, recognises: Callable[[str], bool], read: Callable[[Source], Iterator[Series]]
) -> Format:
    return Format(title, recognises, lambda source: _grouped(read(source)))


_HPL = _read_by(linpack.TITLE, linpack.recognises, linpack.read)
_HPCC = Format(challenge.TITLE, challenge.recognises, lambda source: list(challenge.launches(source)))
FORMATS: tuple[Format, ...] = (
    _HPCC,
    _HPL,
    _described(imb.GRAMMAR),
    _described(osu.GRAMMAR),
    _described(mpptest.GRAMMAR),
    _described(sockperf.GRAMMAR),
    _described(qperf.GRAMMAR),
    _described(netperf.GRAMMAR),
    _read_by(iperf3.TITLE, iperf3.recognises, iperf3.read),
    _read_by(netpipe.GRAMMAR.title, netpipe.recognises, netpipe.read),
    _described(nccl.GRAMMAR),
    _described(perftest.GRAMMAR),
)


def decoded(raw: bytes, name: str) -> str:
    """Return the text of a file, whatever wrote it.

    Raises
    ------
    ImportFormatError
        It is larger than what is read, or no text.
    """
    if len(raw) > MOST_BYTES:
        raise ImportFormatError(f"{name}: it has more than {MOST_BYTES >> 20} MiB, which no benchmark prints")
    marks = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
    encoding = next((one for mark, one in marks if raw.startswith(mark)), "utf-8")
    text = raw.decode(encoding, "replace")
    if "\0" in text:
        raise ImportFormatError(f"{name}: it is not text")
    return text


def read(text: str, name: str, left_out: list[str] | None = None) -> _Launches:
    """Return what an output says, launch by launch: the same operation and size again is the next launch.

    Parameters
    ----------
    left_out
        Is added to: what the file has and is not taken, in words that name file and line.

    Raises
    ------
    ImportFormatError
        It is of no known format, or a line of it is not as expected; names the file and the line.
    """
    source = Source(text, name)
    known = [one for one in FORMATS if one.recognises(source.text)]
    if _HPCC in known and _HPL in known:  # HPCC's output has HPL's within
        known.remove(_HPL)
    if not known:
        titles = ", ".join(format_.title for format_ in FORMATS)
        raise ImportFormatError(f"{name}: it is not an output of a known benchmark; these are: {titles}")
    if len(known) > 1:
        both = " and ".join(one.title for one in known)
        raise ImportFormatError(f"{name}: it has outputs of {both}: make a file of each")
    launches = known[0].launches(source)
    if not any(launches):
        why = f"; {source.left_out[0]}" if source.left_out else ""
        raise ImportFormatError(f"{name}: an output of {known[0].title} without any result{why}")
    if left_out is not None:
        left_out += source.left_out
    return launches


def _grouped(found: Iterable[Series]) -> _Launches:
    """Put series into launches; those of a name whose sizes come in several tables are one."""
    launches: list[dict[tuple[str, int | None], Series]] = []
    for series in found:
        key = series.name, series.ranks
        place = next((one for one in launches if key not in one or not _overlap(one[key], series)), None)
        if place is None:
            place = {}
            launches.append(place)
        place[key] = _joined(place[key], series) if key in place else series
    return [list(one.values()) for one in launches]


def _overlap(one: Series, other: Series) -> bool:
    return not one.times_s.keys().isdisjoint(other.times_s)


def _joined(one: Series, other: Series) -> Series:
    return Series(
        name=one.name,
        pattern=one.pattern,
        quantity=one.quantity,
        statistic=one.statistic,
        times_s={**one.times_s, **other.times_s},
        ranks=one.ranks,
        moves_bytes=one.moves_bytes or other.moves_bytes,
    )
