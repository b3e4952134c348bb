"""The energy of a run, by the watts of a node that were given.  Pure."""

from __future__ import annotations

from msgspec.structs import replace

from wulf.base.records import Estimate, Predicted, Prediction


def with_energy(found: Prediction, node_w: float) -> Prediction:
    """Return a prediction with the energy of a launch on each network: nodes × watts × run time.

    A rank that waits for a message polls, so that a node takes as much while it waits as while it computes. What other
    NICs and switches take is not in it.

    Parameters
    ----------
    node_w
        Power of a node while the program runs [W].
    """
    watts = found.nodes * node_w

    def priced(one: Predicted) -> Predicted:
        return replace(one, energy=_times(one.time, watts))

    return replace(
        found,
        base=priced(found.base),
        scenarios=[priced(one) for one in found.scenarios],
        bound=priced(found.bound),
        notes=[
            *found.notes,
            f"Energy: {found.nodes} × {node_w:g} W, as given, × run time: as if a node took as much while ranks wait "
            "for messages, which they do by polling; other NICs and switches may take more or less.",
        ],
    )


def _times(time: Estimate, watts: float) -> Estimate:
    low, high = (None if end is None else end * watts for end in (time.low, time.high))
    return replace(
        time, value=time.value * watts, low=low, high=high, unit="J", method=f"{time.method}; × {watts:g} W"
    )
