"""Arrays that know their labels, as xarray has them, become tables of their known cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensortide.errors import InputError
from tensortide.validate import check_array


def is_labelled(records: Any) -> bool:
    """Tell whether the input is an array with named dimensions and labels along them."""
    return all(hasattr(records, name) for name in ("dims", "coords", "to_numpy"))


def labelled_table(array: Any, value: str, mask: Any = None) -> dict[str, Any]:
    """Return the known cells of a labelled array: a column per dimension, and one of values.

    A dimension without labels has the positions 0, 1, ...; NaN, or a zero of `mask`, is missing.
    """
    import pyarrow as pa

    names = [str(name) for name in array.dims]
    if value in names:
        raise InputError(
            f"a dimension is named {value!r}, as the values are; pass value=... another name."
        )
    dense, known = check_array(array.to_numpy(), mask)
    places = np.nonzero(known)
    table: dict[str, Any] = {}
    for name, dim, rows in zip(names, array.dims, places, strict=True):
        size = dense.shape[len(table)]
        labels = array.coords[dim].to_numpy() if dim in array.coords else np.arange(size)
        if labels.dtype.kind == "O":
            labels = labels.tolist()
        try:
            table[name] = pa.array(labels).take(pa.array(rows))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise InputError(
                f"the labels of dimension {name!r} are of several types, or of none that labels "
                "can have; give text, whole numbers or dates."
            ) from None
    return table | {value: dense[places]}
