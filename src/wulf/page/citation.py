"""How a run is cited.  Pure."""

from __future__ import annotations

import re
from datetime import datetime

from wulf.base.records import RunHead
from wulf.page import escaping

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TITLE = "wulf: measuring, auditing and tuning the network of commodity clusters"


def bibtex(head: RunHead, title: str, seed: int) -> str:
    """Return BibTeX entries of a run of any kind, which is called `title`, and of the program."""
    when = datetime.fromisoformat(head.created_at)
    key = re.sub(r"[^A-Za-z0-9.-]+", "-", head.id)
    version = escaping.latex(head.wulf_version)
    return _entry(
        f"wulf-run-{key}",
        title=f"{{{escaping.latex(title)}}}",
        howpublished=f"{{Measured with wulf {version}, run {escaping.latex(head.id)}}}",
        note=f"{{Random seed {seed}}}",
        year=str(when.year),
        month=_MONTHS[when.month - 1],
    ) + _entry(
        "wulf",
        author="{{The wulf developers}}",
        title=f"{{{_TITLE}}}",
        howpublished=f"{{Software, version {version}}}",
        year=str(when.year),
    )


def _entry(key: str, **fields: str) -> str:
    lines = "".join(f"  {name:<12} = {value},\n" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}}}\n"
