"""What the wheel carries beside the package, where it has been made (`tools/release`): none of it is needed to build.

Manual pages, completions and schemas go where pipx and systems look for them; the socket probe that was built for this
and another kind of processor goes into the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds what there is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add files of ``build/``; an editable installation takes its own."""
        if version == "editable":
            return
        made = Path(self.root, "build")
        if (made / "share").is_dir():
            build_data["shared_data"][str(made / "share")] = "share"
        if (made / "prebuilt").is_dir():
            build_data["force_include"][str(made / "prebuilt")] = "wulf/prebuilt"
