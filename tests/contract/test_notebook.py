"""The notebook of the tutorial, executed as it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorial" / "notebook.ipynb"


def test_no_outputs_are_kept():
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert cells and not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.mpi
@pytest.mark.thorough
# ipykernel and jupyter_client say of their own sockets and paths what is not ours to mend.
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    book = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        book, timeout=400, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.get("data", {}).get("text/html", "") for output in outputs]
    # The cells of two runs, and those of the comparison.
    assert sum("<table" in one for one in shown) >= 3
    assert any("vegaEmbed" in one for one in shown)
    assert (tmp_path / "before.html").read_text().startswith("<!")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"before", "after", "slept"}
