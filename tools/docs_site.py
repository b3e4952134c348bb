"""Write the documentation site, build/site: our Markdown, and a page of every knob, check, cause and operation.

It works from a disk, without a network, with its search. A link to what is not there is a failure.
Why this generator: docs/adr/0053-documentation-site.md.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.commands import build
from mkdocs.config import load_config

from wulf.base import catalogue
from wulf.base.catalogue import Evidence, Signature
from wulf.base.records import Operation
from wulf.base.units import format_bytes
from wulf.face.cli.knob import evidence_of, sections
from wulf.node.fleet.preparation import toolbox

ROOT = Path(__file__).resolve().parents[1]
SOURCE, SITE = ROOT / "build" / "site-source", ROOT / "build" / "site"
#: What is taken as it is, at the same places, so that links between them hold.
TAKEN = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/RESULTS.md", "bench/LOG.md", "docs")
GENERATED = "docs/reference"
WORKER = ROOT / "tools" / "iframe-worker.js"

THEME = {
    "name": "material",
    "font": False,  # the reader's own: nothing is fetched
    "features": [
        "navigation.tabs",
        "navigation.prune",
        "navigation.top",
        "search.highlight",
        "content.code.copy",
    ],
    "palette": [
        {
            "media": f"(prefers-color-scheme: {preferred})",
            "scheme": scheme,
            "toggle": {"icon": f"material/{icon}", "name": f"Change to {other}"},
        }
        for preferred, scheme, icon, other in (
            ("light", "default", "weather-night", "dark"),
            ("dark", "slate", "weather-sunny", "light"),
        )
    ],
}

# --- pages of what the program knows -----------------------------------------------------------------------


def knob_pages() -> dict[str, str]:
    """Return the page of every knob by its name."""
    found = {}
    for name, knob in catalogue.knobs().items():
        parts = [f"# {name}\n"]
        for title, paragraphs in sections(knob).items():
            if title != "Name":
                parts.append(f"## {title}\n\n{_paragraphs(paragraphs)}\n")
        found[name] = "\n".join(
            [parts[0], f"**{_text(knob.title)}**\n", *parts[1:], _terminal(f"wulf settings show {name}")]
        )
    return found


def check_pages() -> dict[str, str]:
    """Return the page of every check of a node, and of every comparison of nodes, by its name."""
    found = {}
    for name, check in catalogue.checks().items():
        rows = {
            "where": _code(check.when) or "on every node",
            "holds when": _code(check.holds),
            "found": _code(check.found),
            "wanted": _text(check.wanted),
            "mended now by": _code(check.fix),
            "kept by": _text(check.keep),
            "knobs": ", ".join(f"[{one}](../knobs/{one}.md)" for one in sorted({*check.knobs, *check.mend})),
            "risk": _text(check.risk),
            "for": ", ".join(check.profiles),
        }
        found[name] = _finding(name, check, rows) + _evidence(check.evidence)
    for name, rule in catalogue.consistencies().items():
        rows = {
            "facts": ", ".join(_code(one) for one in rule.facts),
            "but not": ", ".join(_code(one) for one in rule.but),
            "equal within": f"{rule.tolerance:.0%}" if rule.tolerance else "",
            "right is": "the newest" if rule.newest else "what most nodes have",
            "wanted": _text(rule.advice),
            "risk": _text(rule.risk),
        }
        found[name] = _finding(name, rule, rows)
    return found


def signature_pages() -> dict[str, str]:
    """Return the page of every cause that a diagnosis names."""
    of_pairs, of_hosts = catalogue.signatures(), catalogue.host_signatures()
    return {
        name: _signature(name, one, "a pair of nodes" if name in of_pairs else "a node by itself")
        for name, one in (of_pairs | of_hosts).items()
    }


def operation_pages() -> dict[str, str]:
    """Return the page of every operation that the probes here can measure."""
    known = toolbox(None, None, lambda _said: None).known
    return {one.name: _operation(one) for one in known}


def _operation(one: Operation) -> str:
    name = one.name if one.parameter is None else f"{one.name}:{one.parameter.usual}"
    takes = one.parameter
    rows = {
        "a value is": f"{one.quantity}; {one.better} is better",
        "pattern": one.pattern,
        "ranks": str(one.ranks) if one.ranks else "as many as there are",
        "varied": one.axis,
        "sizes": f"{format_bytes(one.min_size_bytes)} to {format_bytes(one.max_size_bytes)}"
        + (f", multiples of {format_bytes(one.size_step_bytes)}" if one.size_step_bytes > 1 else ""),
        "timed": "each iteration" if one.timing == "iteration" else "a visit as a whole",
        "number": f"{takes.name}, {takes.low} to {takes.high}, usually {takes.usual}" if takes else "",
        "losses": "datagrams may be lost, and are counted" if one.lossy else "",
        "measured without being named": "yes" if one.usual else "no",
    }
    return (
        f"# {one.name}\n\n{_text(one.summary)}.\n\n{_table(rows)}\n{_terminal(f'wulf measure --ops {name}')}"
    )


def _signature(name: str, one: Signature, of: str) -> str:
    rows = {
        "judged of": of,
        "looks like it when": _code(one.when),
        "what shows it": _code(one.evidence),
        "next step": _code(one.next),
    }
    sources = "\n".join(f"* {_text(source)}" for source in one.sources)
    return (
        f"# {name}\n\n**{_text(one.title)}**\n\n{_text(one.why)}\n\n{_table(rows)}\n## Sources\n\n{sources}\n"
    )


def _finding(name: str, one: Any, rows: Mapping[str, str]) -> str:
    effect = f", expected effect {one.effect:.0%}" if one.effect else ""
    costs = f"{', '.join(one.costs) or 'nothing'}{effect}"
    all_rows = {"severity": one.severity, "costs": costs, **rows}
    return f"# {name}\n\n**{_text(one.title)}**\n\n{_text(one.why)}\n\n{_table(all_rows)}\n"


def _evidence(evidence: Iterable[Evidence]) -> str:
    return f"## Evidence\n\n{_paragraphs([evidence_of(one) for one in evidence])}\n"


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n".join(f"* {_text(text)}" for text in texts)


def _table(rows: Mapping[str, str]) -> str:
    first, *lines = [
        f"| {title} | {said.replace('|', chr(92) + '|')} |" for title, said in rows.items() if said
    ]
    return "\n".join([first, "|---|---|", *lines, ""])


def _terminal(command: str) -> str:
    return f"## In a terminal\n\n```\n{command}\n```\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _text(text: str) -> str:
    """Return words as Markdown that shows them as they are."""
    for sign in "\\`*_[]<":
        text = text.replace(sign, f"&#{ord(sign)};")
    return text


def _index(title: str, pages: Mapping[str, str]) -> str:
    rows = [f"| [{name}]({name}.md) | {_first_words(page)} |" for name, page in sorted(pages.items())]
    return "\n".join([f"# {title}\n", "| name | what it is |", "|---|---|", *rows, ""])


def _first_words(page: str) -> str:
    return page.split("\n\n")[1].strip().strip("*").replace("|", "\\|")


def without_sources(text: str, directory: Path) -> str:
    """Return a page without links into the program's sources, which the site does not have; their words stay."""

    def words(link: re.Match[str]) -> str:
        target = (ROOT / directory / link[2].partition("#")[0]).resolve()
        is_source = target.exists() and target.suffix not in (".md", ".png")
        return link[1] if is_source else link[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#:]+[^):]*)\)", words, text)


# --- the site ----------------------------------------------------------------------------------------------


def gather() -> dict[str, list[Any]]:
    """Bring all pages below one directory; return what is generated, as parts of a navigation."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for name in TAKEN:
        source, target = ROOT / name, SOURCE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    shutil.copy(WORKER, SOURCE)
    for page in SOURCE.rglob("*.md"):
        page.write_text(
            without_sources(page.read_text(encoding="utf-8"), page.relative_to(SOURCE).parent),
            encoding="utf-8",
        )
    kinds = {
        "Knobs": ("knobs", knob_pages()),
        "Checks": ("checks", check_pages()),
        "Causes": ("causes", signature_pages()),
        "Operations": ("operations", operation_pages()),
    }
    found: dict[str, list[Any]] = {}
    for title, (directory, pages) in kinds.items():
        place = SOURCE / GENERATED / directory
        place.mkdir()
        (place / "index.md").write_text(_index(title, pages), encoding="utf-8")
        for name, text in pages.items():
            (place / f"{name}.md").write_text(text, encoding="utf-8")
        here = f"{GENERATED}/{directory}"
        found[title] = [f"{here}/index.md", *({name: f"{here}/{name}.md"} for name in sorted(pages))]
    return found


def navigation(generated: Mapping[str, list[Any]]) -> list[Any]:
    """Return what is in the bar at the top, and what is below each entry."""
    return [
        {"wulf": "README.md"},
        {"Tutorial": _pages_of("docs/tutorial")},
        {"How to": _pages_of("docs/howto")},
        {
            "Explanation": [
                *_pages_of("docs/explanation"),
                {"Measured claims": "bench/RESULTS.md"},
                {"Log of measurements": "bench/LOG.md"},
            ]
        },
        {"Published studies": _pages_of("docs/studies")},
        {
            "Reference": [
                *_pages_of(GENERATED),
                {"Protocol of the probe": "docs/protocol.md"},
                *({title: pages} for title, pages in generated.items()),
            ]
        },
        {
            "How it is built": [
                "CONTRIBUTING.md",
                {"Decisions": _pages_of("docs/adr")},
                {"Changes": "CHANGELOG.md"},
            ]
        },
    ]


def _pages_of(directory: str) -> list[str]:
    pages = sorted(path.name for path in (ROOT / directory).glob("*.md"))
    first = [name for name in pages if name in ("README.md", "index.md", "first-run.md")]
    return [f"{directory}/{name}" for name in [*first, *(name for name in pages if name not in first)]]


def configuration(generated: Mapping[str, list[Any]]) -> Path:
    """Write what the generator reads; return its file."""
    settings = {
        "site_name": "wulf",
        "docs_dir": str(SOURCE),
        "site_dir": str(SITE),
        "nav": navigation(generated),
        "theme": THEME,
        # What would be fetched otherwise: browsers start no worker, in which the search runs, from a disk.
        "extra": {"polyfills": [WORKER.name]},
        "strict": True,
        "use_directory_urls": False,  # so that pages find each other on a disk
        "plugins": ["material/search", "material/offline"],
        "markdown_extensions": ["tables", "toc", "admonition", "pymdownx.superfences"],
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"}},
    }
    file = SOURCE.parent / "mkdocs.yml"
    file.write_text(json.dumps(settings), encoding="utf-8")  # which is YAML, too
    return file


def main() -> int:
    """Entry point."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    generated = gather()
    build.build(load_config(str(configuration(generated))))
    sys.stdout.write(f"written: {SITE / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
