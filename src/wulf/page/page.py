"""A page: one HTML file that needs no other file and no network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata, resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from wulf.base import locations
from wulf.base.errors import StoreError
from wulf.base.store.files import write_atomically
from wulf.base.text import printable
from wulf.page import theme
from wulf.page.blocks import Page
from wulf.page.chart_libraries import altair, vl_convert
from wulf.page.drawing import narrow, spec
from wulf.page.parts import Figure


def html(shown: Page) -> str:
    """Return a page as one file that needs no other and no network."""
    specs = {figure.id: spec(figure) for figure in shown.figures}
    payload = {
        "run": shown.run or shown.title,
        "pairs": shown.pairs,
        "figures": {figure.id: _figure(figure, specs[figure.id]) for figure in shown.figures},
        "themes": {name: theme.config(dark=name == "dark") for name in ("light", "dark")},
    }
    bundle, script = _bundle(), _file("page.js")
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            view=shown,
            heights={id_: spec["height"] for id_, spec in specs.items()},
            css=Markup(_file("page.css")),  # noqa: S704 - files of this package, not input
            script=Markup(script),  # noqa: S704
            bundle=Markup(bundle),  # noqa: S704
            notices=Markup(_file("notices.txt")),  # noqa: S704
            data=_data(payload),
            policy=_policy(bundle, script),
        )
    )


def _figure(figure: Figure, drawn: dict[str, Any]) -> dict[str, Any]:
    on_paper = narrow(figure)
    return {
        "spec": drawn,
        **({"narrow": on_paper} if on_paper else {}),
        "variants": [
            {
                "label": variant.label,
                "summary": variant.summary,
                "caption": variant.caption,
                "datasets": variant.datasets,
            }
            for variant in figure.variants
        ],
    }


def _data(payload: dict[str, Any]) -> Markup:
    """Return JSON that cannot end the script element it stands in."""
    text = printable(
        json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False), sys.maxsize
    )
    escaped = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Markup(escaped)  # noqa: S704 - there is no "<" left in it


def _policy(*scripts: str) -> str:
    """Return a content security policy: no request to anywhere, no script but the ones given."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed of the version that Altair writes for."""
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    snippet = "window.vegaEmbed = vegaEmbed; window.vega = vega;"
    made_by = f"{metadata.version('vl-convert-python')} {version} {snippet}"
    code = _kept(
        f"charts-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}.js",
        lambda: vl_convert.javascript_bundle(snippet, vl_version=version),
    )
    # Inside a string literal both forms mean the same; in the page only one of them ends the script.
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _kept(name: str, make: Callable[[], str]) -> str:
    """Return a text that takes long to make and is always the same: from the user's cache, or made and put there.

    The first line of the file is the digest of what follows: a text that is not whole is made again.
    """
    path = locations.cache() / "page" / name
    with suppress(OSError):
        if path.stat().st_uid == os.geteuid():  # what somebody else has put there is not ours
            digest, _, content = path.read_bytes().partition(b"\n")
            if digest == _digest(content):
                return content.decode()
    content = make().encode()
    with suppress(OSError, StoreError):  # then it is made anew each time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _digest(content) + b"\n" + content)
    return content.decode()


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@cache
def _file(name: str) -> str:
    return resources.files("wulf.page").joinpath("templates", name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wulf.page"),
        autoescape=True,
        finalize=_safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    environment.filters["unbroken"] = _unbroken
    return environment


def _safe(value: object) -> object:
    """Return what is put into a page without what cannot be seen."""
    return (
        printable(value, sys.maxsize) if isinstance(value, str) and not isinstance(value, Markup) else value
    )


def _unbroken(text: str) -> Markup:
    """Return a title in which names and numbers with a hyphen or a dash stay in one line where they have room."""
    spaced = printable(text, sys.maxsize).replace(" %", "\u00a0%")
    words = (
        Markup('<span class="nb">{}</span>').format(word) if re.search("[-–]", word) else escape(word)
        for word in spaced.split(" ")
    )
    return Markup(" ").join(words)


def _breakable(text: str) -> Markup:
    """Return a text in which long names may go on in the next line: after a dot, an underscore or a comma."""
    return Markup("<wbr>").join(
        re.split(r"(?<=[._,/])(?=[^\W\d])|(?<=,)(?=\d)", printable(text, sys.maxsize))
    )
