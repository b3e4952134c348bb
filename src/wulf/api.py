"""What Python programs use: stored runs, as `wulf.load` returns them."""

from __future__ import annotations

from pathlib import Path

from wulf.store import Run
from wulf.store import load as load_measured
from wulf.store.files import has
from wulf.store.tuning import HEAD, TuningRun, load_tuning

__all__ = ["Run", "TuningRun", "load"]


def load(path: Path | str) -> Run | TuningRun:
    """Read a stored run: measured (`Run`), or a search for better settings (`TuningRun`).

    Raises
    ------
    StoreError
        The directory is not a run, is of a newer version, or is damaged; names the file.
    """
    place = Path(path)
    return load_tuning(place) if has(place, HEAD) else load_measured(place)
