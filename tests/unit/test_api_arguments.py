"""The functions refuse arguments that cannot be, before anything is done, by an error of wulf that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wulf
from wulf.base.errors import WulfError
from wulf.face.api.arguments import checked

WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "budget_s=nan: seconds, more than 0": ("measure", {"budget_s": float("nan")}),
    "budget_s='5m': a number": ("measure", {"budget_s": "5m"}),
    "budget_s=-1: seconds": ("tune", {"budget_s": -1}),
    "precision=0: a share": ("measure", {"precision": 0}),
    "ops='tcp_rr': a list, each of it a text or None": ("measure", {"ops": "tcp_rr"}),
    "pairs=['a:b']: a text": ("measure", {"pairs": ["a:b"]}),
    "seed=True: a whole number or None": ("measure", {"seed": True}),
    "nodes=['n1']: a text or None": ("audit", {"nodes": ["n1"]}),
    "margin=-1: a share": ("compare", {"base": "a", "candidate": "b", "margin": -1}),
    "form='xyz': one of html": ("render", {"run": "a", "form": "xyz"}),
    "files='a.txt': a list": ("import_run", {"files": "a.txt"}),
    "no file is named": ("import_run", {"files": []}),
    "source=[]: name a trace": ("predict", {"source": [], "on": "a"}),
    "there is no run 'a'": ("load", {"path": "a"}),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_is_named(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verb, arguments = WRONG[said]
    with pytest.raises(WulfError, match=said.replace("[", r"\[")):
        getattr(wulf, verb)(**arguments)
    assert not list(tmp_path.iterdir())


def test_numbers_of_other_libraries_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")

    @checked
    def verb(count: int, budget_s: float) -> tuple[int, float]:
        return count, budget_s

    assert verb(numpy.int64(3), numpy.float32(0.5)) == (3, 0.5)
    assert verb(3, budget_s=2) == (3, 2)
