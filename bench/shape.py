"""How the sources are divided: rooms and the arrows between them, what points up or round, files, lines, functions.

A room is a folder of `src/wulf` whose insides are its own: `base`, `stats`, `page`, `compose`, `face`, each folder of
`node`, each tool. An arrow: a room imports another. Up: against the order of CONTRIBUTING, or from tool to tool.
Outside: modules that are named for a tool and lie in neither its folder nor `face`.

Goals: <= 36 rooms, <= 185 arrows, none up, no circle, <= 16 verbs at the top, no file of a tool outside its folder,
<= 77,000 lines of Python, <= 15 functions of more than 50 lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import grimp
import rustworkx
import typer

from wulf.face.cli.main import app

SOURCES = Path(__file__).parents[1] / "src" / "wulf"
#: What stands on what; `tools` and `node` are divided into their folders.
ORDER = ("base", "stats", "node page", "tools", "compose", "face", "start")
DIVIDED = ("node", "tools")
LONGEST = 50
GOALS = {
    "rooms": 36,
    "arrows": 185,
    "arrows up": 0,
    "circles": 0,
    "verbs at the top": 16,
    "files outside": 0,
    "lines": 77_000,
    f"functions of > {LONGEST} lines": 15,
}


def room_of(module: str) -> str:
    """Return the room that a module lies in; empty for the package itself."""
    folders = module.split(".")[1:]
    return ".".join(folders[: 2 if folders and folders[0] in DIVIDED else 1])


def level_of(room: str) -> int:
    """Return on which floor a room lies."""
    return next(
        level for level, folders in enumerate(ORDER) if room.split(".", maxsplit=1)[0] in folders.split()
    )


def arrows_of(graph: grimp.ImportGraph) -> set[tuple[str, str]]:
    """Return which room imports which."""
    found = {
        (room_of(module), room_of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return {(one, other) for one, other in found if one and other and one != other}


def is_up(one: str, other: str) -> bool:
    """Say whether an arrow goes against the order."""
    if level_of(one) == level_of(other):
        return not one.startswith("node") or not other.startswith("node")
    return level_of(one) < level_of(other)


def circles_of(arrows: set[tuple[str, str]]) -> list[list[str]]:
    """Return rooms that import each other, directly or by way of others."""
    graph: rustworkx.PyDiGraph[str, None] = rustworkx.PyDiGraph()
    number = {room: graph.add_node(room) for room in sorted({room for arrow in arrows for room in arrow})}
    graph.add_edges_from_no_data([(number[one], number[other]) for one, other in arrows])
    return [
        sorted(graph[node] for node in part)
        for part in rustworkx.strongly_connected_components(graph)
        if len(part) > 1
    ]


def outside(tools: set[str]) -> list[Path]:
    """Return modules that are named for a tool and lie in neither its folder nor `face`."""
    return [
        path.relative_to(SOURCES)
        for path in sorted(SOURCES.rglob("*.py"))
        if path.stem in tools and path.relative_to(SOURCES).parts[0] not in ("face", "tools")
    ]


def long_functions() -> Iterator[tuple[int, str]]:
    """Yield the lines and the place of every function that is longer than it should be."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > LONGEST:
                    yield lines, f"{path.relative_to(SOURCES)}:{node.lineno} {node.name}"


def lines() -> int:
    """Return the lines of Python."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in SOURCES.rglob("*.py"))


def figures() -> tuple[dict[str, int], list[str]]:
    """Return every figure, and lines that say what it counts."""
    graph = grimp.build_graph("wulf", cache_dir=None)
    arrows = arrows_of(graph)
    rooms = {room_of(module) for module in graph.modules} - {"", *DIVIDED}
    tools = {room.split(".")[1] for room in rooms if room.startswith("tools.")}
    up = sorted(arrow for arrow in arrows if is_up(*arrow))
    circles, stray, long = circles_of(arrows), outside(tools), sorted(long_functions(), reverse=True)
    found = {
        "rooms": len(rooms),
        "arrows": len(arrows),
        "arrows up": len(up),
        "circles": len(circles),
        "verbs at the top": len(typer.main.get_command(app).list_commands(None)),  # type: ignore[attr-defined]
        "files outside": len(stray),
        "lines": lines(),
        f"functions of > {LONGEST} lines": len(long),
    }
    notes = [
        f"rooms: {', '.join(sorted(rooms))}",
        *(f"up: {one} -> {other}" for one, other in up),
        *(f"circle: {', '.join(circle)}" for circle in circles),
        *(f"outside: {path}" for path in stray),
        *(f"{length} lines: {place}" for length, place in long),
    ]
    return found, notes


def main(_: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    found, notes = figures()
    print("\n".join(notes))
    for name, value in found.items():
        print(f"{name:30} {value:7,}   goal {GOALS[name]:,}")
    short = [name for name, value in found.items() if value > GOALS[name]]
    status = "short" if short else "pass"
    shown = ", ".join(f"{name} {value:,}" for name, value in found.items())
    goal = ", ".join(f"{name} {value:,}" for name, value in GOALS.items())
    print(f"shape value={shown} goal={goal} {status}")
    return int(bool(short))
