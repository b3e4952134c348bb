"""What packages have beside the program: a manual page for every verb, from its help; the rest is generated, too."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from wulf.face.cli.main import VERBS

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="module")
def manual():
    spec = importlib.util.spec_from_file_location("manual", TOOLS / "manual.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(manual):
    return dict(manual.pages())


def test_every_verb_has_a_page(pages):
    assert {"wulf", *(f"wulf-{verb}" for verb in VERBS)} <= set(pages)
    assert {"wulf-runs-archive", "wulf-lab-up", "wulf-settings-get"} <= set(pages)
    for name, text in pages.items():
        assert text.startswith(f".TH {name.upper()} 1 ")
        for part in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS"):
            assert f"\n.SH {part}\n" in text, name
    assert re.search(r"^\.B .*\\-\\-budget", pages["wulf-tune"], re.M)


def test_no_text_is_taken_for_a_request(manual, pages):
    requests = {"TH", "SH", "TP", "B", "BR", "PP", "I", "IR"}
    for name, text in pages.items():
        for line in text.splitlines():
            if line.startswith("."):
                assert line.split()[0][1:] in requests, (name, line)
            assert not line.startswith("'"), (name, line)
    assert manual._roff(".x\n'y a-b\\c") == "\\&.x\n\\&'y a\\-b\\ec"


def test_completions_are_written(manual, tmp_path, monkeypatch):
    monkeypatch.setattr(manual, "pages", lambda: [])
    monkeypatch.setattr(manual, "OUTPUTS", {})
    monkeypatch.setattr("sys.argv", ["manual.py", str(tmp_path)])
    assert manual.main() == 0
    for place in manual.COMPLETIONS.values():
        assert "_WULF_COMPLETE" in (tmp_path / place).read_text()
    subprocess.run(["bash", "-n", tmp_path / manual.COMPLETIONS["bash"]], check=True)
