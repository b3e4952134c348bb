"""Every verb of the command line is a function of the library, or it is said why not."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

import wulf
from tests.unit.predict_fixture import calibrated_run, ping_pong
from wulf.base.store.columns import of_records
from wulf.base.tool import tools
from wulf.face.cli.main import VERBS

#: Verbs whose function has another name: the verb is a word of Python, a package of ours, or part of a name.
CALLED = {
    "audit facts": ["node_facts"],
    "tune all": ["audit", "mend", "measure", "tune", "render"],
    "tune collectives": ["tune_collectives"],
    "compare libraries": ["compare_settings"],
    "bench blas": ["compare_blas"],
    "bench hpcc": ["run_hpcc"],
    "measure import": ["import_run"],
    "program run": ["app", "app_against"],
    "report": ["render"],
}
#: Verbs without a function, and why.
ONLY_A_SHELL = {
    "init": "writes a file that a person goes on with",
    "settings list": "pages of a manual",
    "settings show": "pages of a manual",
    "settings get": "values on nodes are in node_facts()",
    "settings set": "a change by hand, confirmed by a person who sees whether the node still answers",
    "settings status": "who has changed what: about changes by hand",
    "rollback": "what helps a person when something is wrong, wherever it came from",
    "settings persist": "a change over reboots, decided by a person",
    "settings verify": "after a reboot, which a notebook does not survive",
    "settings export": "files for other tools",
    "settings sudoers": "a file for root",
    "audit topology": "hostfiles, and routes that are changed by hand",
    "diagnose drain": "what a prolog or an administrator does with Slurm",
    "program shipped": "names of programs for a shell",
    "program place": "a hostfile for launchers",
    "tune parameters": "pages of a manual",
    "runs": "files are tagged, renamed, archived",
    "config": "defaults of the command line: functions have their own",
    "config schema": "a file for other programs",
    "lab": "network namespaces of root; cluster='lab' is the one that is up",
}


def verbs() -> list[str]:
    """Return every verb that does something, with the one that it is within."""
    within = [f"{name} {inner}" for name, verb in VERBS.items() for inner in verb.within]
    return [name for name, verb in VERBS.items() if verb.module] + within


def test_every_verb_is_a_function_or_it_is_said_why_not():
    functions = {
        verb: CALLED.get(verb, [verb.rpartition(" ")[2]]) for verb in verbs() if verb not in ONLY_A_SHELL
    }
    there = {*wulf.__all__, *(verb.rpartition(" ")[2] for verb in tools())}
    missing = {verb: name for verb, names in functions.items() for name in names if name not in there}
    assert not missing, "a function in wulf.face.api, or a reason in ONLY_A_SHELL"
    assert not set(ONLY_A_SHELL) & set(wulf.__all__), "it is a function now"
    assert set(ONLY_A_SHELL) | set(CALLED) <= set(verbs()), "there is no such verb any more"


@pytest.mark.parametrize("name", sorted(set(wulf.__all__) - {"__version__"}))
def test_no_package_takes_the_place_of_a_function(name):
    # Python binds a subpackage to the attribute of its name as soon as anything in it is imported.
    assert find_spec(f"wulf.{name}") is None
    assert callable(getattr(wulf, name))


@pytest.mark.parametrize("name", sorted(name for name in wulf.__all__ if name[0].islower()))
def test_every_function_says_what_it_is(name):
    assert len(inspect.getdoc(getattr(wulf, name)) or "") > 40


def test_the_page_about_python_has_every_function():
    page = Path(__file__).parents[2].joinpath("docs", "howto", "python.md").read_text(encoding="utf-8")
    names = {name for name in wulf.__all__ if name[0].islower()} | {
        verb.split()[-1] for verb in tools() if verb not in CALLED
    }
    assert {name for name in names if f"`{name}`" not in page and f"wulf.{name}(" not in page} == set()


class _Inner(msgspec.Struct):
    value: float
    unit: str


class _Outer(msgspec.Struct):
    name: str
    time: _Inner | None
    note: str | None = None


def test_records_are_columns_of_equal_length():
    found = of_records([_Outer("a", None), _Outer("b", _Inner(2.0, "s"))])
    assert found == {
        "name": ["a", "b"],
        "note": [None, None],
        "time_value": [None, 2.0],
        "time_unit": [None, "s"],
    }
    assert of_records([]) == {}


def test_a_trace_is_predicted_on_a_calibrated_run(tmp_path):
    run = calibrated_run(tmp_path / "cal")
    found = wulf.predict(
        ping_pong(tmp_path / "a.wtrace", 1024, compute_ns=100_000, run_ns=10_000_000),
        run.path,
        what_if="latency=x0.5",
        samples=20,
    )
    assert found.run == "cal"
    assert len({len(column) for column in wulf.columns(found.scenarios).values()}) == 1
