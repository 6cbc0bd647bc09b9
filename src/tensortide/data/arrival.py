"""Records that have arrived, as positions in the tensor as it will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats, Positions, Shape

if TYPE_CHECKING:
    from tensortide.core.tensor.dense_box import DenseBox


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """Records as positions in the tensor as it will be, and the labels that are new.

    An array without holes comes as a `block`, whose cells are listed only on demand.
    """

    listed: Positions | None
    values: Floats
    weights: Floats
    fresh: tuple[Sequence[Any], ...]
    old_shape: Shape
    new_shape: Shape
    block: DenseBox | None = None

    @cached_property
    def coords(self) -> Positions:
        """The cell of each record."""
        if self.listed is not None:
            return self.listed
        assert self.block is not None
        offsets = np.array(self.new_shape) - np.array(self.block.shape)
        return np.asarray(self.block.coords().astype(np.int64) + offsets)

    def grown_modes(self) -> list[int]:
        """Return the modes that have new labels."""
        return [m for m, fresh in enumerate(self.fresh) if len(fresh)]

    def grown_mode(self) -> int | None:
        """Return the mode that grows (the largest, if several do), or None."""
        grown = self.grown_modes()
        return max(grown, key=self.new_shape.__getitem__) if grown else None
