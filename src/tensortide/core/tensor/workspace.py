"""The rows that a step works on, stacked.

A step never sees the whole factors.  It gets copies of the rows it touches (upper rows,
known before, then lower rows, new) and, for every mode, the Gram matrix of all other old
rows (`rest`), which do not move.  So an economy step costs what its batch costs, the old
rows are at hand as the paper's ``A^{t-1}``, and a failed step has nothing to undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tensortide.arrays import Floats, Shape


class Block(NamedTuple):
    """Neighbouring rows of one mode that are solved together: a part of the paper's U^n or L^n."""

    mode: int
    first: int
    last: int
    upper: bool

    @property
    def name(self) -> str:
        """Return U1, L1, U2, ..."""
        return f"{'U' if self.upper else 'L'}{self.mode + 1}"


class Workspace:
    """Stacked rows of all modes: the parameters of one step."""

    def __init__(self, n_upper: Sequence[int], n_lower: Sequence[int], rank: int) -> None:
        self.order, self.rank = len(n_upper), rank
        self.n_upper: Shape = tuple(n_upper)
        self.n_rows: Shape = tuple(u + n for u, n in zip(n_upper, n_lower, strict=True))
        self.bounds = [0, *accumulate(self.n_rows)]
        self.growing = [m for m, n in enumerate(n_lower) if n]
        self.stack = np.zeros((self.bounds[-1], rank))
        self.rest = np.zeros((self.order, rank, rank))
        self.whole = True
        self.firsts = np.array(self.bounds)
        self.upper_counts = np.array(self.n_upper)
        #: for each mode, the first rows of all other modes
        self.other_offsets = np.array(
            [self.bounds[:m] + self.bounds[m + 1 : -1] for m in range(self.order)]
        )

    def leave_out(self, rest: Floats) -> None:
        """Say that there are old rows outside, and what their Gram matrices are."""
        self.rest, self.whole = rest, False

    def part(self, mode: int) -> slice:
        """Return where the rows of a mode stand in the stack."""
        return slice(self.bounds[mode], self.bounds[mode + 1])

    def upper_part(self, mode: int) -> slice:
        """Return where the old rows of a mode stand in the stack."""
        return slice(self.bounds[mode], self.bounds[mode] + self.n_upper[mode])

    def lower_part(self, mode: int) -> slice:
        """Return where the new rows of a mode stand in the stack."""
        return slice(self.bounds[mode] + self.n_upper[mode], self.bounds[mode + 1])

    def stacked(self, block: Block) -> slice:
        """Return where the rows of a block stand in the stack."""
        start = self.bounds[block.mode]
        return slice(start + block.first, start + block.last)

    def blocks(self, first: int = 0) -> list[Block]:
        """Return U1, L1, ..., UN, LN, without those that have no row; mode `first` comes first."""
        blocks = []
        for mode in (first, *(m for m in range(self.order) if m != first)):
            upper, rows = self.n_upper[mode], self.n_rows[mode]
            if upper:
                blocks.append(Block(mode, 0, upper, True))
            if rows > upper:
                blocks.append(Block(mode, upper, rows, False))
        return blocks

    def rows(self) -> list[Floats]:
        """Return views of the rows of each mode."""
        return [self.stack[self.part(mode)] for mode in range(self.order)]
