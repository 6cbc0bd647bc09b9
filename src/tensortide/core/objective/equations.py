"""Normal equations of the rows of one factor, and their algebra.

With the other factors fixed, a row ``a`` of a factor minimises the quadratic
``a G a' - 2 q a' + const``.  The pair ``(G, q)`` is the paper's ``(P, q)``; objectives,
parts of the data and points in time all add up to such pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """The quadratic that each of ``n_rows`` rows minimises.

    ``gram`` is ``(R, R)``, shared by all rows, or ``(n_rows, R, R)``; ``rhs`` is
    ``(n_rows, R)``.

    >>> one = NormalEquations(np.eye(2), np.ones((3, 2)))
    >>> (one + 2.0 * one).rhs[0].tolist()
    [3.0, 3.0]
    """

    gram: Floats
    rhs: Floats

    def __add__(self, other: NormalEquations) -> NormalEquations:
        """Add two quadratics: the sum of their equations."""
        return NormalEquations(self.gram + other.gram, self.rhs + other.rhs)

    def __mul__(self, factor: float) -> NormalEquations:
        """Scale the quadratic by a number."""
        return NormalEquations(factor * self.gram, factor * self.rhs)

    __rmul__ = __mul__

    def gradient(self, rows: Floats) -> Floats:
        """Return ``2 (a G - q)`` for each row: the slope of the objective at ``rows``."""
        return np.asarray(
            2.0 * (np.einsum("ir,...rs->is", rows, self.gram) - self.rhs)
            if self.gram.ndim == 2
            else 2.0 * (np.einsum("ir,irs->is", rows, self.gram) - self.rhs)
        )
