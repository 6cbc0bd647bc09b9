"""Records as positions: the plainest form of input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions, Shape
from tensortide.errors import InputError
from tensortide.validate import (
    check_array,
    check_positions,
    check_shape,
    check_values,
    check_weights,
)


@dataclass(frozen=True, eq=False)
class Batch:
    """Entries of a tensor by position: row e of `coords` is the cell of ``values[e]``.

    `shape` may declare a tensor larger than the cells listed; by default it is the
    smallest that holds them.  `weights` (non-negative) say how much each entry counts.

    >>> batch = Batch([[0, 1], [2, 0]], [3.5, 1.0])
    >>> batch.shape, len(batch)
    ((3, 2), 2)
    """

    coords: Positions
    values: Floats
    shape: Shape
    weights: Floats | None
    declared: bool

    def __init__(self, coords: Any, values: Any, shape: Any = None, weights: Any = None) -> None:
        positions = check_positions(coords)
        numbers = check_values(values)
        if len(numbers) != len(positions):
            raise InputError(f"there are {len(positions)} coords but {len(numbers)} values.")
        put = object.__setattr__
        put(self, "coords", positions)
        put(self, "values", numbers)
        put(self, "shape", check_shape(shape, positions))
        put(self, "weights", None if weights is None else check_weights(weights, len(numbers)))
        put(self, "declared", shape is not None)
        for array in (self.coords, self.values, self.weights):
            if array is not None:  # checked once, so they must not change any more
                array.setflags(write=False)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.values)

    @property
    def order(self) -> int:
        """Number of modes."""
        return int(self.coords.shape[1])

    @classmethod
    def from_array(cls, array: Any, mask: Any = None) -> Batch:
        """List the observed cells of a dense array (NaN, or mask 0: missing).

        >>> Batch.from_array([[1.0, float("nan")], [2.0, 3.0]]).values.tolist()
        [1.0, 2.0, 3.0]
        """
        dense, known = check_array(array, mask)
        return cls(np.argwhere(known), dense[known], shape=dense.shape)

    def to_columns(self, modes: list[str], value: str = "value") -> dict[str, Any]:
        """Return a dict of columns, positions as integer labels: input for any table library."""
        columns: dict[str, Any] = {name: self.coords[:, m] for m, name in enumerate(modes)}
        columns[value] = self.values
        return columns
