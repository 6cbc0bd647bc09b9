"""The model in the forms of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.types import Floats, Positions
from tensortide.data.labels import NamedLabels
from tensortide.data.modes import Modes
from tensortide.data.tables import Table
from tensortide.errors import InputError, TensortideError

if TYPE_CHECKING:
    import xarray


def dense_box(
    rows: Sequence[Floats], modes: Modes, labels: Mapping[str, Sequence[Any]] | None, max_cells: int
) -> Floats:
    """Return the model's values as a dense array over all labels, or over those chosen."""
    chosen = list(rows)
    for name, wanted in (labels or {}).items():
        mode = modes.index(name)
        chosen[mode] = rows[mode][label_positions(modes, mode, wanted)]
    cells = 1
    for factor in chosen:
        cells *= len(factor)
    if cells > max_cells:
        shape = " x ".join(str(len(factor)) for factor in chosen)
        raise InputError(
            f"the box {shape} has {cells:,} cells ({cells * 8 / 1e9:,.1f} GB); choose labels, use "
            f"predict for single cells, or raise max_cells above {max_cells:,}."
        )
    flat = chosen[0]
    for factor in chosen[1:]:
        flat = (flat[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return np.asarray(flat.sum(axis=1).reshape([len(factor) for factor in chosen]))


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


def label_positions(modes: Modes, mode: int, wanted: Sequence[Any]) -> Positions:
    """Return the positions of labels of one mode."""
    labels, name = modes.labels[mode], modes.names[mode]
    if isinstance(wanted, str) or not hasattr(wanted, "__len__"):
        raise InputError(f"labels must be a list, not the single {wanted!r}.")
    if not len(wanted):
        return np.empty(0, np.int64)
    if isinstance(labels, NamedLabels):
        encoded = labels.encode(Table({name: wanted}).labels(name), name)
        if encoded.fresh:
            raise InputError(f"mode {name!r} has no label {encoded.fresh[0]!r}.")
        return encoded.positions
    positions = np.asarray(wanted)
    if positions.dtype.kind not in "iu":
        raise InputError(f"labels of mode {name!r} are positions, not {wanted[0]!r}.")
    for position in positions[(positions < 0) | (positions >= len(labels))]:
        raise InputError(f"mode {name!r} has no label {int(position)!r}.")
    return positions.astype(np.int64)
