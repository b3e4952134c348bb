"""What is wrong with a network, and where."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Pair, Record, Verdict

#: ``sending`` and ``receiving``: a node in one direction; ``group``: nodes with something between them and the others.
Kind = Literal["node", "link", "sending", "receiving", "group"]


class Suspect(Record, frozen=True, kw_only=True):
    """A part of the network that is slower than comparable ones."""

    kind: Kind
    nodes: list[str]
    #: How much longer a message takes there, as a share of the time between others.
    slower: float
    #: Scatter of what is well, in logarithms of times.
    scatter: float
    #: Chance of it where all are alike, all that was looked at being counted.
    p_value: float
    #: Rates of streams in one direction: what the node sends (of a link: the first node to the second), and what it
    #: receives; null where these were not measured [bit/s].
    sends_bits_per_s: float | None = None
    receives_bits_per_s: float | None = None


class Symptom(Record, frozen=True, kw_only=True):
    """A known cause that the figures of some pairs look like."""

    #: Of the signature.
    id: str
    title: str
    #: Operation that shows it.
    op: str
    #: Pairs that show it, and how many were looked at.
    pairs: list[Pair]
    of_pairs: int
    #: What the first of these pairs shows.
    evidence: str
    why: str
    #: What to do next, as a command.
    next: str


class Score(Record, frozen=True, kw_only=True):
    """How a node does at one size."""

    node: str
    #: Time of its messages ÷ that of a typical node's, whoever the partner is, with its interval.
    ratio: Estimate
    #: Rate of its messages, median over its partners; null at a small size [bit/s].
    rate_bits_per_s: float | None = None
    #: What its link says it could be; null where it does not [bit/s].
    link_bits_per_s: float | None = None


class Branch(Record, frozen=True, kw_only=True):
    """Nodes that are closer to each other than to others: they have in common what connects them."""

    nodes: list[str]
    #: How much longer a message takes from them to the other branches beside it, as a share.
    further: float


class Matrix(Record, frozen=True, kw_only=True):
    """The times between all pairs at one size, and what they say."""

    op: str
    size_bytes: int
    #: Typical time between two nodes [s].
    typical_s: float
    #: Scatter between nodes that are alike, in logarithms.
    scatter: float
    pairs: int
    #: Pairs of these nodes that were not measured.
    missing: int
    #: The worst first.
    suspects: list[Suspect]
    #: Suspects that were not slow when they were measured again with nothing else beside.
    cleared: list[Suspect] = []
    #: A node that is slower by so much is found in nine cases out of ten, as a share; null in runs of before.
    visible: float | None = None
    #: Slower by so much has to be seen, as a share: where it cannot be, nobody can say that nothing is wrong.
    wanted: float | None = None
    #: Every node, the worst first.
    scores: list[Score] = []
    #: Every node, with those as neighbours that are close to each other.
    order: list[str] = []
    #: The tree of what connects them, larger branches before those that they hold; empty where all are alike.
    branches: list[Branch] = []

    @property
    def blind(self) -> bool:
        """Whether a node that is slower than anybody wants would have gone unseen."""
        return self.visible is not None and self.wanted is not None and self.visible > self.wanted


class Worse(Record, frozen=True, kw_only=True):
    """What takes longer than in an earlier run."""

    op: str
    size_bytes: int
    nodes: list[str]
    #: Time ÷ time in the earlier run.
    ratio: Estimate


class Gate(Record, frozen=True, kw_only=True):
    """A run against an earlier one."""

    #: Name of the earlier run.
    baseline: str
    #: Longer by less does not matter, as a share.
    margin: float
    #: What is proven to take longer by more: nodes against all others, pairs, and all nodes together.
    worse: list[Worse]
    #: What the comparison says as a whole.
    verdict: Verdict
    reason: str
    #: Operations of which a change that matters would have gone unseen.
    untold: list[str] = []

    @property
    def holds(self) -> bool:
        """Whether nothing is worse, and that would have been seen."""
        return not self.worse and not self.untold


class Diagnosis(Record, frozen=True, kw_only=True):
    """What a run says of the nodes and links that it measured."""

    #: Name of the run.
    run_id: str
    nodes: list[str]
    #: By operation and size.
    matrices: list[Matrix]
    #: Slower by less is not said, as a share.
    margin: float
    #: Known causes that the figures look like.
    symptoms: list[Symptom] = []
    #: Against a baseline; null without one.
    gate: Gate | None = None

    @property
    def fine(self) -> bool:
        """Whether no node, link or group is slower than comparable ones, and such a node would have been seen."""
        return not any(matrix.suspects or matrix.blind for matrix in self.matrices)

    @property
    def untold(self) -> bool:
        """Whether nothing is named, and a slow node would have gone unseen."""
        return not self.fine and not any(matrix.suspects for matrix in self.matrices)
