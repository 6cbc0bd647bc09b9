"""Penalties and constraints of a whole factor, by their proximal map.

``apply(rows, weight)`` is ``argmin_Z weight r(Z) + 1/2 || Z - rows ||^2``.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import numpy as np

from tensortide.arrays import Floats
from tensortide.validate import check_number


@dataclass(frozen=True, slots=True)
class NonNegative:
    """``r(Z) = 0`` where no element is negative, else infinity.

    >>> NonNegative().apply(np.array([[1.0, -2.0]]), 0.1).tolist()
    [[1.0, 0.0]]
    """

    def apply(self, rows: Floats, weight: float) -> Floats:  # noqa: ARG002 - one form for all
        """Return the nearest rows that satisfy the constraint."""
        return np.maximum(rows, 0.0)

    def value(self, rows: Floats) -> float:  # noqa: ARG002
        """Return zero: the constraint holds."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Nuclear:
    """``r(Z) = weight || Z ||_*``, the sum of the singular values.

    The proximal map shrinks every singular value (it does not cut them off).

    >>> Nuclear(1.0).apply(np.diag([3.0, 0.5]), 1.0).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """

    weight: float

    def __post_init__(self) -> None:
        """Refuse what is no weight."""
        check_number("the weight of the nuclear norm", self.weight, least=0.0)

    def apply(self, rows: Floats, weight: float) -> Floats:
        """Return the rows with shrunken singular values."""
        from tensortide.core.kernels.dense import thin_times, times_thin  # compiles: not on import

        # ``U (S - w)_+ V' = A V (1 - w / S)_+ V'``: the small decomposition of A'A is enough.
        squares, right = np.linalg.eigh(thin_times(rows, rows))
        sizes = np.sqrt(np.maximum(squares, 0.0))
        live = sizes > max(weight * self.weight, 1e-12 * sizes[-1])
        kept = np.where(live, 1.0 - weight * self.weight / np.where(live, sizes, 1.0), 0.0)
        return times_thin(rows, (right * kept) @ right.T)

    def value(self, rows: Floats) -> float:
        """Return the penalty of a factor."""
        return self.weight * float(np.linalg.svd(rows, compute_uv=False).sum())


@dataclass(frozen=True, slots=True)
class Simplex:
    """``r(Z) = 0`` where every column is non-negative and sums to one, else infinity.

    The scale of the components then lives in the other modes: a delay mode of this kind holds
    one distribution of delays per component.

    >>> Simplex().apply(np.array([[1.0], [0.5]]), 1.0).tolist()
    [[0.75], [0.25]]
    """

    def apply(self, rows: Floats, weight: float) -> Floats:  # noqa: ARG002
        """Return the nearest columns on the simplex."""
        falling = -np.sort(-rows, axis=0)
        excess = (np.cumsum(falling, axis=0) - 1.0) / np.arange(1, len(rows) + 1)[:, None]
        last = (falling > excess).sum(axis=0) - 1
        return np.asarray(np.maximum(rows - excess[last, np.arange(rows.shape[1])], 0.0))

    def value(self, rows: Floats) -> float:  # noqa: ARG002
        """Return zero: the constraint holds."""
        return 0.0


Prox: TypeAlias = NonNegative | Nuclear | Simplex


@dataclass(frozen=True, slots=True)
class Penalty:
    """A proximal map and how ADMM is to use it (`core.admm`).

    With a `weight`, copies and multipliers are updated once per sweep and the weight grows
    by `growth`; without, every block is iterated to `tol` (of squared norms), at most
    `inner` times.
    """

    prox: Prox
    weight: float | None = None
    growth: float = 1.0
    _: KW_ONLY
    inner: int = 100
    tol: float = 1e-10
