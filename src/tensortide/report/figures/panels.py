"""Components as small panels: lines for modes with an order, else bars with the top labels."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.markup import escape
from tensortide.online.components import largest, normalised
from tensortide.wording import listed, short

if TYPE_CHECKING:
    from tensortide.data.labels import Labels
    from tensortide.online.reading import ReadOnlyModel

ORDERED = ("date", "datetime", "datetime UTC", "integer", "position")
_POINTS = 160  # of a line in a panel, two for each column of pixels that matter
_BARS = 6


@dataclass(frozen=True)
class Component:
    """One component: its share, its title in words, and a panel of HTML for each mode."""

    number: int
    share: float
    title: str
    panels: list[tuple[str, str]]


def components(model: ReadOnlyModel) -> list[Component]:
    """Return all components, strongest first."""
    inner = model._require_model()
    weights, factors = normalised(inner.rows())
    total = float(np.abs(weights).sum()) or 1.0
    found = []
    for number, weight in enumerate(weights):
        panels, words = [], []
        for name, labels, unit in zip(inner.modes.names, inner.modes.labels, factors, strict=True):
            loadings = unit[:, number]
            if labels.kind in ORDERED and len(labels) > 2:
                order = np.argsort(labels.array(), kind="stable")
                panels.append((name, line_panel(labels, loadings, order)))
                words.append(_peak(name, labels, loadings))
            else:
                panels.append((name, bar_panel(labels, loadings)))
                words.append(_who(labels, loadings))
        title = "; ".join(word for word in words if word)
        found.append(Component(number + 1, abs(float(weight)) / total, title, panels))
    return found


def line_panel(labels: Labels, loadings: Floats, order: Any) -> str:
    """Draw loadings over labels that have an order; text stays outside of the picture."""
    values = loadings[order]
    xs, ys = thin(values, _POINTS)
    low, high = min(0.0, float(ys.min())), max(0.0, float(ys.max()))
    span = (high - low) or 1.0
    width = max(len(values) - 1, 1)
    points = " ".join(
        f"{300 * x / width:.0f},{4 + 72 * (high - y) / span:.1f}"
        for x, y in zip(xs, ys, strict=True)
    )
    zero = 4 + 72 * high / span
    first, last = (label_text(labels.label(int(order[i]))) for i in (0, -1))
    return (
        '<svg class="line" viewBox="0 0 300 80" preserveAspectRatio="none" role="img" '
        f'aria-label="from {escape(first)} to {escape(last)}">'
        f'<path class="zero" d="M0 {zero:.1f}H300"/><polyline points="{points}"/></svg>'
        f'<div class="ends"><span>{escape(first)}</span><span>{escape(last)}</span></div>'
    )


def bar_panel(labels: Labels, loadings: Floats) -> str:
    """Draw the largest loadings as bars."""
    top = largest(loadings, _BARS)
    most = float(np.abs(loadings[top]).max()) or 1.0
    rows = []
    for position in top:
        value = float(loadings[position])
        label = escape(label_text(labels.label(int(position))))
        sign = " minus" if value < 0 else ""
        width = 100 * abs(value) / most
        rows.append(
            f'<div class="bar{sign}" title="{label}: {value:.3f}"><span>{label}</span>'
            f'<i><b style="width:{width:.0f}%"></b></i><em>{value:.2f}</em></div>'
        )
    more = len(labels) - len(top)
    rest = f'<div class="more">and {more:,} more</div>' if more else ""
    return "".join(rows) + rest


def thin(values: Floats, most: int) -> tuple[Any, Floats]:
    """Keep the lowest and the highest number of each stretch, so that no peak is lost.

    >>> xs, ys = thin(np.array([0.0, 9.0, 1.0, 1.0, 1.0, -5.0]), 4)
    >>> float(ys.max()), float(ys.min())
    (9.0, -5.0)
    """
    if len(values) <= most:
        return np.arange(len(values)), values
    kept: set[int] = {0, len(values) - 1}
    for stretch in np.array_split(np.arange(len(values)), most // 2):
        part = values[stretch]
        kept |= {int(stretch[part.argmin()]), int(stretch[part.argmax()])}
    xs = np.array(sorted(kept))
    return xs, values[xs]


def _who(labels: Labels, loadings: Floats) -> str:
    """Name the labels that make up most of a component."""
    size = np.abs(loadings)
    top = [int(p) for p in largest(loadings, 3) if size[p] >= 0.5 * size.max() > 0.0]
    if not top:
        return ""
    if len(labels) > 3 and int((size >= 0.5 * size.max()).sum()) > max(6, len(labels) // 2):
        return f"most of {len(labels):,}, first {label_text(labels.label(top[0]))}"
    sides: dict[bool, list[str]] = {True: [], False: []}
    for p in top:
        sides[loadings[p] * loadings[top[0]] > 0.0].append(label_text(labels.label(p)))
    against = f" against {listed(sides[False])}" if sides[False] else ""
    return listed(sides[True]) + against


def _peak(name: str, labels: Labels, loadings: Floats) -> str:
    """Say where an ordered mode is farthest from nothing."""
    if not np.abs(loadings).max():
        return ""
    at = int(np.abs(loadings).argmax())
    label = labels.label(at)
    word = "highest" if loadings[at] > 0.0 else "lowest"
    text = label.strftime("%-d %B %Y") if isinstance(label, dt.date) else f"{name} {label}"
    return f"{word} at {text}"


def label_text(label: Any) -> str:
    """Return a label for people, not too long."""
    if isinstance(label, dt.datetime):
        return label.isoformat(" ", "minutes")
    return short(str(label), 40)
