"""All sums over strata that a nowcast is about: the whole, each stratum, pairs, single cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.nowcast.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Units:
    """All sums over strata: the whole, then each stratum, pairs of strata, ..., single cells.

    `keys[u]` gives the label of each
    stratum, None where the unit sums over it; `level[u]` numbers the kind of sum, and
    `groups` holds for each kind the unit of each cell and the number of units.
    """

    strata: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    level: Positions
    groups: tuple[tuple[Positions, int], ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Units:
        """Return all sums that the strata of a snapshot allow."""
        names, cells = snapshot.triangle.strata, snapshot.cells
        labels = snapshot.triangle.labels
        keys: list[tuple[Any, ...]] = []
        levels: list[int] = []
        groups = []
        kinds = [c for n in range(len(names) + 1) for c in combinations(range(len(names)), n)]
        for number, kind in enumerate(kinds):
            codes = cells[:, list(kind)]
            distinct, group = np.unique(codes, axis=0, return_inverse=True)
            groups.append((group.reshape(-1), len(distinct)))
            for row in distinct:
                chosen = dict(zip(kind, row, strict=True))
                keys.append(
                    tuple(
                        labels[axis][chosen[axis]] if axis in chosen else None
                        for axis in range(len(names))
                    )
                )
                levels.append(number)
        return cls(names, tuple(keys), np.array(levels), tuple(groups))

    def total(self, cells: Floats) -> Floats:
        """Return the sums of numbers by cell (first axis), unit by unit."""
        parts = []
        for group, _ in self.groups:
            order = np.argsort(group, kind="stable")
            starts = np.flatnonzero(np.diff(group[order], prepend=-1))
            parts.append(np.add.reduceat(cells[order], starts, axis=0))
        return np.concatenate(parts)
