"""Arrays that know their labels, as xarray has them: dimensions are modes, coordinates labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.data.tables import Column, Table
from tensortide.errors import InputError
from tensortide.validate import check_array


def is_labelled(records: Any) -> bool:
    """Tell whether the input is an array with named dimensions and labels along them."""
    return all(hasattr(records, name) for name in ("dims", "coords", "to_numpy"))


@dataclass(frozen=True)
class LabelledArray:
    """A dense array, which of its cells are known, and the labels along each named axis."""

    values: Floats
    known: Flags
    labels: dict[str, Column]

    @classmethod
    def of(cls, array: Any, mask: Any = None) -> LabelledArray:
        """Read an array; a dimension without labels has the positions 0, 1, ...

        NaN, or a zero of `mask`, is missing.
        """
        dense, known = check_array(array.to_numpy(), mask)
        labels = {}
        for dim, size in zip(array.dims, dense.shape, strict=True):
            given = array.coords[dim].to_numpy() if dim in array.coords else np.arange(size)
            labels[str(dim)] = Table({str(dim): given}).labels(str(dim))
        return cls(dense, known, labels)

    def turned(self, names: tuple[str, ...]) -> LabelledArray:
        """Return the array with its axes in the order of the modes."""
        have = list(self.labels)
        if sorted(have) != sorted(names):
            raise InputError(
                f"the array has the dimensions {', '.join(have)}, but the modes are "
                f"{', '.join(names)}."
            )
        axes = [have.index(name) for name in names]
        labels = {name: self.labels[name] for name in names}
        return LabelledArray(self.values.transpose(axes), self.known.transpose(axes), labels)
