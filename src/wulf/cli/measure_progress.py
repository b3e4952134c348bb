"""Progress of a measurement."""

from __future__ import annotations

from wulf.cli.progress import Display, duration
from wulf.procedure.measure import State


class MeasureProgress(Display):
    """Shows where a measurement stands."""

    def launched(self, state: State) -> None:
        """Show a finished launch and the time left."""
        launch = state.last.launch
        if launch.status == "failed":
            self.note(f"launch {launch.id} failed: {launch.error}")
        text = (
            f"launch {state.launches}: {launch.op} {'–'.join(launch.pair)} · "
            f"{state.streams_done}/{state.streams} precise · about {duration(state.left_s)} left"
        )
        self.show(text, state.spent_s, state.left_s)
