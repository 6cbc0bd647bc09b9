"""One component as a figure, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.online.components import largest, normalised
from tensortide.palette import BLUE
from tensortide.report.figures.panels import ORDERED, label_text

if TYPE_CHECKING:
    from tensortide.online.reading import ReadOnlyModel

_BARS = 12


def component_figure(model: ReadOnlyModel, number: int) -> dict[str, Any]:
    """Draw a line for each mode with an order and bars with the top labels for the others."""
    inner = model._require_model()
    weights, factors = normalised(inner.rows())
    order = len(factors)
    layout: dict[str, Any] = {
        "title": {"text": f"component {number + 1}, weight {weights[number]:.4g}"},
        "grid": {"rows": 1, "columns": order, "pattern": "independent"},
        "showlegend": False,
        "height": 320,
    }
    data = []
    for mode, (name, labels) in enumerate(
        zip(inner.modes.names, inner.modes.labels, strict=True), start=1
    ):
        suffix = "" if mode == 1 else str(mode)
        loadings = factors[mode - 1][:, number]
        trace: dict[str, Any] = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        if labels.kind in ORDERED:
            by_label = np.argsort(labels.array(), kind="stable")
            trace |= {"type": "scatter", "mode": "lines", "line": {"color": BLUE}}
        else:
            by_label = largest(loadings, _BARS)
            trace |= {"type": "bar", "marker": {"color": BLUE}}
        trace["x"] = [label_text(labels.label(int(i))) for i in by_label]
        trace["y"] = [float(loadings[i]) for i in by_label]
        data.append(trace)
        layout[f"xaxis{suffix}"] = {"title": {"text": name}, "automargin": True}
    return {"data": data, "layout": layout}
