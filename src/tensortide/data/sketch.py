"""How many distinct cells were seen, without remembering them (HyperLogLog).

4,096 registers of one byte: standard error 1.6 %.  As long as every entry brought a new
label (pure growth) all cells are distinct for certain and the count is exact; it is also
never outside the bounds that are certain.  Registers hold hash ranks of positions, no value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import numpy.typing as npt

from tensortide.arrays import Positions, Shape
from tensortide.core.kernels.hashing import add_hashes

REGISTERS = 4096
STANDARD_ERROR = 1.04 / REGISTERS**0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctCells:
    """A running count of distinct cells.

    Every cell of the corner box `full` is known, so none of them is hashed.  Outside of it
    `grown` entries came with a new label and `reported` is the number of all of them; `base` is
    what an earlier sketch had counted (labels were retired since).
    """

    registers: npt.NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros(REGISTERS, np.uint8), repr=False
    )
    grown: int = 0
    reported: int = 0
    base: float = 0.0
    full: Shape = ()

    def covers(self, shape: Shape) -> bool:
        """Whether every cell of a tensor of this shape, and nothing else, is known."""
        if self.reported:
            return False
        return self.full == shape if self.full else not prod(shape)

    def filled(self, shape: Shape) -> DistinctCells:
        """Return the count after all other cells of a larger box have come."""
        return replace(self, full=shape)

    def after(self, coords: Positions | None, n_grown: int, n_cells: int) -> DistinctCells:
        """Return the count after a batch of `n_cells` distinct cells, `n_grown` surely new.

        Without `coords`, which a method may leave out that never takes a cell twice, the
        registers stay as they are.
        """
        registers = self.registers
        if coords is not None:
            if self.full:
                coords = coords[(coords >= self.full).any(axis=1)]
                n_cells = min(n_cells, len(coords))
            registers = registers.copy()
            add_hashes(registers, coords.copy())  # kernels take arrays that may be written
        return replace(
            self, registers=registers, grown=self.grown + n_grown, reported=self.reported + n_cells
        )

    def shrunk(self, share: float) -> DistinctCells:
        """Return the count after a share of the tensor was kept: positions start to mean others."""
        return replace(DistinctCells(), base=share * self.count())

    def count(self) -> float:
        """Return the estimate: exact under pure growth, else within its certain bounds."""
        known = self.base + (prod(self.full) if self.full else 0)
        if self.grown == self.reported:
            return known + self.reported
        return known + min(max(_estimate(self.registers), self.grown), self.reported)


def _estimate(registers: npt.NDArray[np.uint8]) -> float:
    """Ertl's estimator (2017), which needs no correction tables for small or large counts."""
    m, q = REGISTERS, 52
    histogram = np.bincount(registers, minlength=q + 2).astype(float)
    z = m * _tau(1.0 - histogram[q + 1] / m)
    for k in range(q, 0, -1):
        z = 0.5 * (z + histogram[k])
    z += m * _sigma(histogram[0] / m)
    return float(m * m / (2.0 * np.log(2.0)) / z)


def _sigma(x: float) -> float:
    if x == 1.0:
        return float("inf")
    y, z = 1.0, x
    while True:
        x, before = x * x, z
        z += x * y
        y += y
        if z == before:
            return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z = 1.0, 1.0 - x
    while True:
        x, before = x**0.5, z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
        if z == before:
            return z / 3.0
