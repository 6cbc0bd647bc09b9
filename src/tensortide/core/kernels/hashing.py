"""Compiled hashing of cells for the sketch of distinct cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tensortide.arrays import Positions
from tensortide.core.kernels.compiled import compiled


@compiled("void(uint8[::1], int64[:,::1])")
def add_hashes(registers: npt.NDArray[np.uint8], cells: Positions) -> None:
    """Raise the register of each cell to the position of the first one bit of its hash."""
    for e in range(cells.shape[0]):
        h = np.uint64(0x9E3779B97F4A7C15)
        for k in range(cells.shape[1]):  # splitmix64, once per mode
            h = (h ^ np.uint64(cells[e, k])) + np.uint64(0x9E3779B97F4A7C15)
            h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            h = h ^ (h >> np.uint64(31))
        register = h & np.uint64(4095)
        rest = h >> np.uint64(12)
        rank = 1
        while rank < 53 and (rest & np.uint64(1)) == np.uint64(0):
            rest = rest >> np.uint64(1)
            rank += 1
        registers[register] = max(registers[register], rank)
