"""The model in the forms of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.data.modes import Modes
from tensortide.errors import InputError, TensortideError

if TYPE_CHECKING:
    import xarray


def dense_box(
    rows: Sequence[Floats], modes: Modes, labels: Mapping[str, Sequence[Any]] | None, max_cells: int
) -> Floats:
    """Return the model's values as a dense array over all labels, or over those chosen."""
    from tensortide.core.tensor.dense_box import khatri_rao  # with its kernels, not before

    chosen = list(rows)
    for name, wanted in (labels or {}).items():
        mode = modes.index(name)
        chosen[mode] = rows[mode][modes.positions_of(mode, wanted)]
    cells = 1
    for factor in chosen:
        cells *= len(factor)
    if cells > max_cells:
        shape = " x ".join(str(len(factor)) for factor in chosen)
        raise InputError(
            f"the box {shape} has {cells:,} cells ({cells * 8 / 1e9:,.1f} GB); choose labels, use "
            f"predict for single cells, or raise max_cells above {max_cells:,}."
        )
    flat = khatri_rao(chosen).sum(axis=1)
    return np.asarray(flat.reshape([len(factor) for factor in chosen]))


def to_dataset(rows: Sequence[Floats], modes: Modes) -> xarray.Dataset:
    """Return the factors as an xarray data set: one variable per mode, indexed by its labels."""
    try:
        import xarray as xr
    except ImportError:
        raise TensortideError(
            "to_xarray needs the package xarray: pip install 'tensortide[xarray]'."
        ) from None
    if "component" in modes.names:
        raise InputError("a mode named 'component' has no place beside the components in xarray.")
    data = {
        f"{name}_factor": xr.DataArray(
            np.array(factor),
            dims=(name, "component"),
            coords={name: labels.array(), "component": np.arange(factor.shape[1])},
        )
        for name, labels, factor in zip(modes.names, modes.labels, rows, strict=True)
    }
    return xr.Dataset(data)
