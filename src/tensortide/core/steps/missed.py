"""What ways to expect cells missed on some of them, cells that are not listed and mean zero too.

For candidates F, rows one below the other, and listed cells with values x and products z of the
other modes' rows, all cells of a label miss together

    E'E = F G F' - Y'Y + (x - Y)'(x - Y),      Y = z F',   G = product of the other modes' Gram

matrices element by element: no zero is looked at.  Only log odds have to be looked at, all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times, times_thin
from tensortide.core.losses.direct import Direct
from tensortide.core.losses.standard import Loss
from tensortide.core.tensor.dense_box import khatri_rao

PIECE = 1 << 16  # rows of a Khatri-Rao product that are looked at together


@dataclass(frozen=True, slots=True)
class Missed:
    """The Gram matrix of errors, and on how many listed cells it rests."""

    n: int
    gram: Floats

    @classmethod
    def of(cls, errors: Floats) -> Missed:
        """Return what errors, a row for each cell, add up to."""
        return cls(len(errors), thin_times(errors, errors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """What was missed on cells of a batch; None where nothing judges.

    `ahead` and `known` are of the ways to expect cells of new and of known labels, `blend_ahead`
    and `blend_known` of what is made of them, beside the last value and the mean of a fibre.
    """

    ahead: Missed | None = None
    known: Missed | None = None
    blend_ahead: Missed | None = None
    blend_known: Missed | None = None


class UnlistedZeros:
    """Cells of a label that are not listed: the other modes' rows, and their Gram matrices.

    `rows` are all rows of the other modes, and are needed for log odds only.
    """

    def __init__(self, loss: Loss, grams: Sequence[Floats], rows: Sequence[Floats]) -> None:
        self._loss, self._rows = loss, rows
        self._gram = np.prod(list(grams), axis=0)

    def missed(self, found: Floats, z: Floats) -> Floats:
        """Return the Gram matrix of what candidates of one label miss on cells not listed."""
        listed = self._loss.mean(times_thin(z, found))
        gram = found @ self._gram @ found.T if isinstance(self._loss, Direct) else self._seen(found)
        return np.asarray(gram - thin_times(listed, listed))

    def _seen(self, found: Floats) -> Floats:
        """Return the Gram matrix of all cells as if all were zero, piece by piece."""
        head, *tail = sorted(self._rows, key=len, reverse=True)
        others = khatri_rao(tail) if tail else np.ones((1, found.shape[1]))
        step = max(1, PIECE // len(others))
        gram = np.zeros((len(found),) * 2)
        for start in range(0, len(head), step):
            y = self._loss.mean(times_thin(khatri_rao([head[start : start + step], others]), found))
            gram += thin_times(y, y)
        return gram
