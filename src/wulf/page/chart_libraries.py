"""What draws charts, loaded with the first one: a terminal needs none of it, and it takes 35 MiB and half a second."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["altair", "vl_convert"]


def _on_first_use(name: str) -> ModuleType:
    """Return a module that is executed when something of it is asked for."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    import altair
    import vl_convert
else:
    altair = _on_first_use("altair")
    vl_convert = _on_first_use("vl_convert")
