"""Evidence that may be looked at after every value: e-processes, by betting against a hypothesis.

Whoever bets against a true hypothesis reaches 1/α times the stake with a chance of at most α, however often he looks
and whenever he stops (Ville 1939, "Étude critique de la notion de collectif"; Ramdas, Grünwald, Vovk and Shafer 2023,
"Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38, 576–601).
"""

from __future__ import annotations

import math

import scipy

#: Slopes of the bets, each with the same part of the stake: a value of 1/slope is a clear one. Differences of
#: logarithms from half a per cent to a third are clear to one of them.
SLOPES = (3.0, 12.0, 50.0, 200.0)
#: Of the stake that is put on one value at most: one value to the contrary must not ruin all.
MOST = 0.97


class Positive:
    """Evidence that differences are above zero, against that they scatter alike to both sides of zero or are below.

    Bets on the sign of each value, more where the value is large: if values scatter symmetrically around zero, the sign
    says nothing, whatever the size, so the expected gain is zero; below zero it is a loss. No scatter has to be known,
    and it may change from value to value.

    Parameters
    ----------
    beyond
        Where zero is, in units of the values.
    """

    def __init__(self, beyond: float = 0.0) -> None:
        self._beyond = beyond
        self._logs = [0.0] * len(SLOPES)
        #: Values so far; and what became of a stake of 1.
        self.n = 0
        self.e_value = 1.0

    def take(self, value: float) -> None:
        """Take one more value; an infinite one counts as a very large one.

        Raises
        ------
        ValueError
            It is not a number.
        """
        if math.isnan(value):
            raise ValueError("a value that is not a number is not evidence")
        self.n += 1
        for index, slope in enumerate(SLOPES):
            self._logs[index] += math.log1p(MOST * math.tanh(slope * (value - self._beyond)))
        self.e_value = sum(map(_exp, self._logs)) / len(self._logs)


def rare(lost: int, sent: int, share: float) -> float:
    """Return the e-value that fewer than a share is lost, against that a share or more is.

    The likelihood ratio of a tenth of the share against the share itself, which is the best that the hypothesis can do:
    the ratio falls with every loss (monotone likelihood ratio).

    Parameters
    ----------
    lost, sent
        Counts, 0 ≤ lost ≤ sent.
    share
        Between 0 and 1, neither of them.
    """
    if not 0 <= lost <= sent:
        raise ValueError(f"{lost} lost of {sent}")
    fewer = share / 10
    log = (sent - lost) * (math.log1p(-fewer) - math.log1p(-share)) + lost * math.log(fewer / share)
    return _exp(log)


def not_twice(lost: int, before: int) -> float:
    """Return the e-value that as many are lost as before, against that twice as many or more are, of as many sent.

    Of the losses of both, two thirds or more are then the later ones, half where nothing has changed.
    """
    if lost < 0 or before < 0:
        raise ValueError(f"{lost} lost, {before} before")
    return _exp(lost * math.log(0.5 / (2 / 3)) + before * math.log(0.5 / (1 / 3)))


def more(lost: int, before: int) -> float:
    """Return the e-value that more are lost than before, against that as many or fewer are, of as many sent.

    The likelihood is mixed over all shares above one half that the later losses may have of both.
    """
    if lost < 0 or before < 0:
        raise ValueError(f"{lost} lost, {before} before")
    above_half = float(scipy.special.betainc(before + 1, lost + 1, 0.5))
    if above_half <= 0:
        return 0.0
    log_beta = math.lgamma(lost + 1) + math.lgamma(before + 1) - math.lgamma(lost + before + 2)
    return _exp((lost + before + 1) * math.log(2) + log_beta + math.log(above_half))


def _exp(log: float) -> float:
    return math.exp(min(log, 700.0))
