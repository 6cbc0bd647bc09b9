"""What may be said about the rows of one mode: penalties, constraints, ties between rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.penalties.prox import NonNegative, Nuclear, Simplex
from tensortide.errors import InputError
from tensortide.validate import brief, check_number


@dataclass(frozen=True, slots=True)
class Ridge:
    """``weight |A|^2`` on one mode, beside the ridge `beta` of all modes.

    The scale of a component may move to another mode: weigh it against `beta`.
    """

    weight: float

    def __post_init__(self) -> None:
        """Refuse what is no weight."""
        check_number("the weight of the ridge", self.weight, least=0.0)


@dataclass(frozen=True, slots=True)
class L1:
    """``weight sum |c_i|``: small loadings become exactly zero.

    ``c_i`` is what a component adds to all cells of label i, so the weight does not depend on
    how the scale is shared among the modes.
    """

    weight: float

    def __post_init__(self) -> None:
        """Refuse what is no weight."""
        check_number("the weight of the L1 penalty", self.weight, least=0.0)


@dataclass(frozen=True, slots=True)
class Smooth:
    """``weight sum |c_i - c_j|^2`` over labels whose distance is `period`.

    ``c_i`` is what a component adds to all cells of label i, so the weight does not depend on
    how the scale is shared among the modes.  The default is a random walk from each label to
    the next: a gap of n times the smallest one ties with one n-th of the weight.  ``Smooth(7)``
    ties a day to the same day of the week before.  Labels have to be dates (distances in
    days), whole numbers or positions; of times the order counts alone.  All rows are read at
    every step.
    """

    period: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no period or no weight."""
        whole = isinstance(self.period, int | np.integer) and not isinstance(self.period, bool)
        if not whole or self.period < 1:
            raise InputError(f"period must be a whole number from 1 on, not {self.period!r}.")
        object.__setattr__(self, "period", int(self.period))
        check_number("the weight of smoothness", self.weight, least=0.0)


@dataclass(frozen=True, slots=True)
class Fixed:
    """The rows of these labels (without labels: all that the model knows) do not move."""

    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        """Keep the labels as a tuple."""
        if self.labels is not None:
            listed = isinstance(self.labels, Sequence | np.ndarray)
            if isinstance(self.labels, str) or not listed:
                raise InputError(f"fixed labels must be a list, not {brief(self.labels)}.")
            object.__setattr__(self, "labels", tuple(self.labels))


Part: TypeAlias = Ridge | L1 | NonNegative | Simplex | Nuclear | Smooth | Fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Everything that is said about one mode, added up.

    >>> Terms.of([Ridge(1.0), Ridge(2.0), NonNegative()]).ridge
    3.0
    """

    ridge: float = 0.0
    l1: float = 0.0
    nonnegative: bool = False
    prox: Simplex | Nuclear | None = None
    smooth: tuple[Smooth, ...] = ()
    fixed: Fixed | None = None

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Terms:
        """Add up the parts; two that exclude each other are refused."""
        prox = [p for p in parts if isinstance(p, Simplex | Nuclear)]
        fixed = [p for p in parts if isinstance(p, Fixed)]
        terms = cls(
            ridge=sum(p.weight for p in parts if isinstance(p, Ridge)),
            l1=sum(p.weight for p in parts if isinstance(p, L1)),
            nonnegative=any(isinstance(p, NonNegative | Simplex) for p in parts),
            prox=prox[0] if prox else None,
            smooth=tuple(p for p in parts if isinstance(p, Smooth)),
            fixed=fixed[0] if fixed else None,
        )
        if len(prox) > 1 or len(fixed) > 1:
            raise InputError("a mode takes one of simplex and nuclear, and one set of fixed rows.")
        others = terms.l1 or terms.fixed or any(isinstance(p, NonNegative) for p in parts)
        if prox and others:
            raise InputError(
                f"{type(prox[0]).__name__.lower()} concerns a whole factor and does not go with "
                "l1, nonnegative or fixed rows of the same mode."
            )
        return terms

    @property
    def coupled(self) -> bool:
        """Tell whether rows of the mode depend on each other."""
        return self.prox is not None or bool(self.smooth)

    @property
    def whole(self) -> bool:
        """Tell whether the terms concern all rows of all modes, not the touched ones alone."""
        return self.coupled or self.l1 > 0.0


NOTHING = Terms()
POSITIVE = Terms(nonnegative=True)


@dataclass(frozen=True, slots=True)
class Ties:
    """What the labels make of the terms of a mode: pairs of rows, their weights, still rows."""

    pairs: Positions = field(default_factory=lambda: np.empty((0, 2), np.int64))
    weights: Floats = field(default_factory=lambda: np.empty(0))
    fixed: Positions = field(default_factory=lambda: np.empty(0, np.int64))

    def by_row(self, n_rows: int) -> tuple[Positions, Positions, Floats]:
        """Return pointers, neighbours and weights: each pair stands at both of its rows."""
        ends = np.concatenate([self.pairs, self.pairs[:, ::-1]])
        order = np.argsort(ends[:, 0], kind="stable")
        pointers = np.searchsorted(ends[order, 0], np.arange(n_rows + 1))
        both = np.concatenate([self.weights, self.weights])
        return pointers, np.ascontiguousarray(ends[order, 1]), both[order]

    def roughness(self, rows: Floats) -> Floats:
        """Return ``sum w (a_i - a_j)^2`` of each component."""
        gaps = rows[self.pairs[:, 0]] - rows[self.pairs[:, 1]]
        return np.asarray((self.weights[:, None] * gaps * gaps).sum(axis=0))

    def still(self, positions: Positions | None, n_rows: int) -> Flags:
        """Return which local rows do not move; row i stands for ``positions[i]``."""
        where = np.arange(n_rows) if positions is None else positions
        return np.asarray(np.isin(where, self.fixed))


NO_TIES = Ties()

# the words that users write: penalties={"date": [smooth(7), nonnegative()]}
ridge, l1, smooth, fixed = Ridge, L1, Smooth, Fixed
nonnegative, simplex, nuclear = NonNegative, Simplex, Nuclear
