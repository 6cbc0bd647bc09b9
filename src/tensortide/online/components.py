"""Components in a form that people can compare: sorted, normalised, signs fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.data.modes import Modes

if TYPE_CHECKING:
    import pyarrow as pa


def normalised(rows: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
    """Return weights (descending) and factors whose columns have norm one.

    Signs: in every mode but the last the loading of largest size is positive; the last
    mode takes the sign that is left.  Values of the model stay the same.
    """
    rank = rows[0].shape[1]
    weights = np.ones(rank)
    columns = []
    for mode, factor in enumerate(rows):
        norms = np.sqrt((factor * factor).sum(axis=0))
        unit = factor / np.where(norms > 0.0, norms, 1.0)
        if mode < len(rows) - 1:
            largest = np.abs(unit).argmax(axis=0)
            sign = np.where(unit[largest, np.arange(rank)] < 0.0, -1.0, 1.0)
        else:
            sign = np.where(weights < 0.0, -1.0, 1.0)
        weights = weights * norms * sign
        columns.append(unit * sign)
    order = np.argsort(-weights, kind="stable")
    return weights[order], [unit[:, order] for unit in columns]


def components_table(rows: Sequence[Floats], modes: Modes, top: int) -> pa.Table:
    """Return the labels with the largest loadings of each component as a tidy table."""
    import pyarrow as pa

    weights, factors = normalised(rows)
    columns: dict[str, list[Any]] = {
        "component": [],
        "weight": [],
        "mode": [],
        "label": [],
        "loading": [],
    }
    for component, weight in enumerate(weights):
        for name, labels, unit in zip(modes.names, modes.labels, factors, strict=True):
            loadings = unit[:, component]
            for position in largest(loadings, top):
                columns["component"].append(component)
                columns["weight"].append(float(weight))
                columns["mode"].append(name)
                columns["label"].append(str(labels.label(int(position))))
                columns["loading"].append(float(loadings[position]))
    return pa.table(columns)


def largest(loadings: Floats, top: int) -> Any:
    """Return the positions of the largest loadings by size, largest first."""
    size = np.abs(loadings)
    if top < len(size):
        some = np.argpartition(-size, top)[:top]
        return some[np.argsort(-size[some], kind="stable")]
    return np.argsort(-size, kind="stable")
