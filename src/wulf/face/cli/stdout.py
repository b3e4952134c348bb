"""Standard output, as rich writes to it."""

from __future__ import annotations

from wulf.page.escaping import CleanConsole


class Output(CleanConsole):
    """Standard output."""

    def on_broken_pipe(self) -> None:
        """Leave it to `wulf.face.cli.main`, as with everything else that is printed."""
        raise BrokenPipeError
