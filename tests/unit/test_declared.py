"""A tool is a folder: the example of CONTRIBUTING.md, which nothing else names, has every form that a tool has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from wulf.base.errors import UsageError
from wulf.base.request import BYTES, SECONDS, SHARE, AnyRun, Argument, Option, Unit, fields_of
from wulf.base.tool import tools
from wulf.face.api.declared import function
from wulf.face.cli.declared import Asked, flat, instead

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
#: Runs the program, or asks Python, with the example among the tools.
WITH_EXAMPLE = "import sys, wulf.tools; wulf.tools.__path__.append(sys.argv.pop(1)); "


def run(
    directory: Path, *words: str, code: str = "from wulf.face.cli.main import run; run()", **more: str
) -> Any:
    environment = {**os.environ, "XDG_CONFIG_HOME": str(directory), "COLUMNS": "100", **more}
    return subprocess.run(
        [sys.executable, "-c", WITH_EXAMPLE + code, str(EXAMPLES), *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_is_a_folder_of_at_most_six_files():
    assert len(list(EXAMPLES.glob("goodput/*.py"))) <= 6


def test_it_is_a_verb_with_help_text_page_and_json(tmp_path: Path):
    assert "goodput" in run(tmp_path, "bench", "--help").stdout
    shown = run(tmp_path, "bench", "goodput", "--help").stdout
    assert "--rate" in shown
    assert "[default: 1500, 9000]" in shown
    said = run(tmp_path, "bench", "goodput", "--mtu", "1500", "--html", "page.html")
    # 1448 of 1538 B.
    assert "94.1%" in said.stdout.replace(" %", "%"), said
    assert "94.1" in (tmp_path / "page.html").read_text()
    found = json.loads(run(tmp_path, "bench", "goodput", "--no-timestamps", "--json").stdout)
    assert [one["share"] for one in found["by_mtu"]] == pytest.approx([1460 / 1538, 8960 / 9038])
    jsonschema.validate(found, json.loads(run(tmp_path, "config", "schema", "goodput").stdout))


def test_it_takes_defaults_of_files_and_of_the_environment(tmp_path: Path):
    (tmp_path / "wulf").mkdir()
    (tmp_path / "wulf/config.toml").write_text("[bench.goodput]\nmtu = [1500]\n")
    found = json.loads(run(tmp_path, "bench", "goodput", "--json", WULF_BENCH_GOODPUT_RATE="100").stdout)
    assert [one["mtu_bytes"] for one in found["by_mtu"]] == [1500]
    assert found["line_bytes_per_s"] == 12.5e6


def test_it_is_a_function(tmp_path: Path):
    code = "import wulf; print(wulf.goodput(mtu=[9000], timestamps=False).by_mtu[0].share)"
    assert float(run(tmp_path, code=code).stdout) == pytest.approx(8960 / 9038)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mtu", "80"), "--mtu 80: between 576 and 65535 B"),
        (("--rate", "0"), "--rate"),
        (("--mtu", "many"), "--mtu"),
    ],
)
def test_what_it_does_not_take_is_refused_by_name(tmp_path: Path, words: Sequence[str], message: str):
    refused = run(tmp_path, "bench", "goodput", *words)
    assert refused.returncode == 2
    assert message in refused.stderr


@dataclass(frozen=True)
class EveryKindRequest:
    """Do something."""

    run: Annotated[AnyRun, Argument("A run.", metavar="RUN", complete="runs")]
    files: Annotated[Sequence[Path | str], Option("Files.")] = ()
    budget_s: Annotated[float, Option("Time.", names=("--budget", "--time"), unit=SECONDS, goes_on=True)] = (
        1800.0
    )
    largest_bytes: Annotated[int | None, Option("Size.", unit=BYTES)] = None
    margin: Annotated[float, Option("Share.", unit=SHARE)] = 0.02
    check: Annotated[bool, Option("Without a check.", names=("--no-check",))] = True
    launches: Annotated[int, Option("Launches.", least=1, most=40)] = 6


def on_the_command_line(words: Sequence[str]) -> EveryKindRequest | str:
    """Return the request of some words, or the message."""
    found: list[EveryKindRequest] = []

    def command(request: EveryKindRequest) -> None:
        found.append(request)

    command.__annotations__ = {"request": EveryKindRequest}
    app = typer.Typer(rich_markup_mode=None)
    app.command()(flat(command))
    result = CliRunner().invoke(app, list(words))
    return found[0] if found else str(result.exception) + result.output


def in_python(**named: Any) -> EveryKindRequest:
    return function(EveryKindRequest, lambda request, progress: request)(**named)


def test_both_faces_make_the_same_request():
    words = ["latest", "--files", "a", "--files", "b", "--budget", "1h30m", "--largest", "64KiB"]
    words += ["--margin", "5%", "--no-check", "--launches", "7"]
    asked = on_the_command_line(words)
    assert asked == EveryKindRequest("latest", [Path("a"), Path("b")], 5400.0, 65536, 0.05, False, 7)
    assert on_the_command_line(["latest"]) == in_python(run="latest") == EveryKindRequest("latest")


def test_both_faces_know_earlier_names():
    assert on_the_command_line(["x", "--time", "1m"]) == in_python(run="x", time_s=60.0)
    assert in_python(run="x", time_s=60.0).budget_s == 60.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--list"], "there are a, b"),
        (["--list", "x", "--budget", "5 parsecs"], "there are a, b"),
        (["--resume", "old"], "on with old for 1800 s"),
        (["--resume", "old", "--time", "1m"], "on with old for 60 s"),
        (
            ["x", "--resume", "old", "--time", "1m", "--launches", "6", "--no-check"],
            "--resume with RUN, --no-check, --launches: a run goes on as it was begun",
        ),
        ([], "give RUN: A run"),
        (["x"], "new: x"),
        (["--resume", "old", "--budget", "5 parsecs"], "--budget: "),
    ],
)
def test_what_goes_without_a_request_is_answered_without_one(words: Sequence[str], said: str):
    def command(
        request: Asked[EveryKindRequest],
        resume: str | None = None,
        names: bool = False,
    ) -> None:
        if resume is not None:
            typer.echo(f"on with {resume} for {request.value('budget_s'):g} s")
        else:
            typer.echo(f"new: {request().run}")

    listed = instead(lambda _: typer.echo("there are a, b"), "List names.", "--list")
    command.__annotations__ = {
        "request": Asked[EveryKindRequest],
        "resume": str | None,
        "names": Annotated[bool, listed],
    }
    app = typer.Typer(rich_markup_mode=None)
    app.command()(flat(command))
    result = CliRunner().invoke(app, list(words))
    assert said in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("words", "named", "told"),
    [
        ((), {}, "give RUN"),
        (("x", "--budget", "5 parsecs"), {"run": "x", "budget_s": -1.0}, "budget"),
        (("x", "--margin", "2"), {"run": "x", "margin": 2.0}, "margin"),
        (("x", "--launches", "41"), {"run": "x", "launches": 41}, "launches"),
        (("x", "--launches", "0"), {"run": "x", "launches": 0}, "launches"),
        (("x", "--launches", "x"), {"run": "x", "launches": "x"}, "launches"),
    ],
)
def test_both_faces_refuse_by_name(words: Sequence[str], named: dict[str, Any], told: str):
    said = on_the_command_line(words)
    assert isinstance(said, str)
    assert told in said
    if named:
        with pytest.raises(UsageError, match=told):
            in_python(**named)


@given(st.sampled_from([SECONDS, BYTES]), st.integers(1, 1 << 40))
def test_a_default_is_spelled_as_it_is_read(unit: Unit, value: int):
    assert unit.parse(unit.spell(value)) == value


@given(st.integers(1, 999))
def test_a_share_is_spelled_as_it_is_read(thousandths: int):
    assert SHARE.parse(SHARE.spell(thousandths / 1000)) == pytest.approx(thousandths / 1000)


def test_every_field_of_every_tool_says_what_it_is():
    for tool in tools().values():
        request = tool.part(tool.request)
        assert tool.summary == request.__doc__.partition("\n")[0]
        assert all(field.option.help.endswith(".") for field in fields_of(request))
        for place in (
            tool.work,
            tool.record,
            tool.page,
            *filter(None, [tool.exit_code]),
            *tool.templates.values(),
        ):
            assert tool.part(place) is not None
