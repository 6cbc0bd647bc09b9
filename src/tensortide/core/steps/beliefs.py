"""What a model with learned priors remembers besides rows and their precisions: a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps.method import Memory
from tensortide.core.steps.missed import Missed, Misses
from tensortide.core.steps.outlook import (
    DISCOUNT,
    MEAN,
    PLAIN,
    beside,
    mix,
    mix_jointly,
    stable,
    weighted,
)
from tensortide.core.tensor.fibres import MEMORIES

FEWEST = 8  # cells whose errors may be added up where no value is kept: those of one give it away
WORSE = 0.02  # share by which plain values are taken for worse: where the model is exact it stays
BLENDED = 3  # ways to answer: the model, the last value of a fibre, the mean of its values
DRIFTING = 50.0  # new labels over which the drift of the outlook is averaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """Hyperparameters that are not sums over rows, and the errors of the outlook.

    Attributes
    ----------
    noise, cells, size
        The residual variance, the cells it rests on, the mean square of the first values.
    spread
        For each mode the sum of ``T^-1`` over its rows, packed.
    timeline, grown, unit, monthly, periods
        The mode that has an outlook, or -1; how many labels it has gained; how its labels are
        counted, and its seasons (`tensortide.data.timeline`).
    ahead, known
        Gram matrices of errors: of the outlook's candidates and of memories on cells of new
        labels; of the model, the outlook and memories on cells of known ones.
    blend
        Gram matrices of what the model, the last value of a fibre and the mean of its values
        missed before they were learned: on cells of new labels, and of known ones.
    drift, n_drift
        Mean of ``(row - outlook) (row - outlook)' + C`` and the number of rows in it.
    """

    noise: float
    cells: float
    size: float
    spread: Floats
    timeline: int
    grown: int
    unit: int
    monthly: bool
    periods: tuple[int, ...]
    ahead: Floats
    known: Floats
    blend: Floats
    drift: Floats
    n_drift: float

    @property
    def n_candidates(self) -> int:
        """Candidates of the outlook for a row."""
        return PLAIN + len(self.periods)

    @property
    def blank(self) -> bool:
        """Whether all values so far were zero."""
        return self.size == 0.0

    def weights_ahead(self) -> tuple[Floats, Floats]:
        """Return the weights of candidates and of memories for cells of a new label."""
        n = self.n_candidates
        if len(self.ahead) > n:
            return mix_jointly(self.ahead, n)
        return mix(self.ahead), np.empty(0)

    def weights_of_prior(self) -> Floats:
        """Return the weights of candidates for the prior of a new row: no trend runs ahead."""
        n = self.n_candidates
        return mix(self.ahead[:n, :n], stable(n))

    def weights_known(self) -> tuple[Floats, Floats]:
        """Return the weights of model and outlook, and of memories, for cells of known labels."""
        if not self.known.any():
            first = np.zeros(2), np.zeros(MEMORIES)
            first[0][MEAN] = first[1][0] = 1.0
            return first
        return mix_jointly(self.known, 2)

    def blended(self, values: Floats, plain: Floats, *, known: bool) -> Floats:
        """Return what the model says beside the last value of a fibre and the mean of its values.

        By their own past errors, on cells of new labels or of `known` ones.  Of a fibre without
        values the model says everything.
        """
        if not len(self.blend) or not self.blend[int(known)].any():
            return values
        gram = self.blend[int(known)].copy()
        gram[[1, 2], [1, 2]] *= 1.0 + WORSE
        return weighted(beside(values, plain), mix(gram))

    def drifted(self, moments: Floats) -> dict[str, Any]:
        """Return the mean of what the outlook missed, with that of more rows."""
        drift, count = self.drift, self.n_drift
        for one in moments:
            count = min(count + 1.0, DRIFTING)
            drift = drift + (one - drift) / count
        return {"drift": drift, "n_drift": count}

    def after_labels(self, n_new: int, misses: Misses) -> dict[str, Any]:
        """Return what a step with new labels of the ordered mode changes."""
        return {
            "grown": self.grown + n_new, "blend": self._blend_after(misses, n_new),
            "ahead": _added(self.ahead, misses.ahead, DISCOUNT**n_new),
            "known": _added(self.known, misses.known, DISCOUNT),
        }  # fmt: skip

    def _blend_after(self, misses: Misses, n_new: int) -> Floats:
        """Return the errors of model, last values and means with those of a batch."""
        if not len(self.blend):
            return self.blend
        new, known = self.blend
        return np.array(
            [
                _added(new, misses.blend_ahead, DISCOUNT**n_new),
                _added(known, misses.blend_known, DISCOUNT),
            ]
        )

    def as_memory(self) -> dict[str, Floats]:
        """Return everything as named arrays, for files."""
        facts = [self.noise, self.cells, self.size, self.n_drift]
        line = [self.timeline, self.grown, self.unit, self.monthly, *self.periods]
        return {
            "facts": np.array(facts, np.float64),
            "line": np.array(line, np.float64),
            "spread": self.spread,
            "ahead": self.ahead,
            "known": self.known,
            "blend": self.blend,
            "drift": self.drift,
        }

    @classmethod
    def of_memory(cls, memory: Memory) -> Beliefs:
        """Return what `as_memory` named."""
        noise, cells, size, n_drift = memory["facts"].tolist()
        timeline, grown, unit, monthly, *periods = map(int, memory["line"].tolist())
        return cls(
            noise=noise, cells=cells, size=size, n_drift=n_drift, timeline=timeline, grown=grown,
            unit=unit, monthly=bool(monthly), periods=tuple(periods),
            spread=memory["spread"], ahead=memory["ahead"], known=memory["known"],
            blend=memory["blend"], drift=memory["drift"],
        )  # fmt: skip


def _added(past: Floats, missed: Missed | None, discount: float) -> Floats:
    """Return the Gram matrix of errors with those of some cells."""
    return past if missed is None or not missed.n else np.asarray(discount * past + missed.gram)
