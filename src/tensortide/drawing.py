"""Figures as plain data that plotly draws, on pages and in notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.errors import TensortideError
from tensortide.palette import COLOURS, DASHES

if TYPE_CHECKING:
    import plotly.graph_objects as go

Spec = dict[str, Any]


def line(
    x: list[Any], y: list[Any], name: str, colour: str, *, width: int = 2, dash: str = "solid"
) -> Spec:
    """Return a line."""
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": y,
        "line": {"color": colour, "width": width, "dash": dash},
    }  # fmt: skip


def layout(unit: str, x: str = "", *, top: int = 36, bottom: int = 44, height: int = 320) -> Spec:
    """Return the frame around lines: what is drawn upwards and along, and the room for words."""
    return {
        "margin": {"l": 56, "r": 12, "t": top, "b": bottom},
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": unit}, "automargin": True, "rangemode": "tozero"},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "hovermode": "x unified",
        "height": height,
    }


def plain(values: Iterable[float], digits: int = 3) -> list[float | None]:
    """Return numbers as JSON knows them, rounded; None where there is no number."""
    return [None if not np.isfinite(v) else round(float(v), digits) for v in values]


def style(k: int) -> tuple[str, str]:
    """Return colour and dashes of the k-th line."""
    return COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]


def figure(spec: Spec) -> go.Figure:
    """Return plotly's figure; without plotly, say how to get it."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise TensortideError(
            "figures need plotly; install it with: python -m pip install plotly."
        ) from None
    return go.Figure(spec)
