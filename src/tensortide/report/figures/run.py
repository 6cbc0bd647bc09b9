"""Figures over the steps of a run as plain data that plotly draws, on the page and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.drawing import Spec, layout, line, plain, style
from tensortide.palette import BLUE, GREEN, GREY, ORANGE, RED

if TYPE_CHECKING:
    from tensortide.tracker.tracker import Tracker

AVERAGED = 20  # steps of the moving average
_MOST = 1_500  # points of a line; more would not be seen
_DIGITS = 6


class Course:
    """The steps of a run in order, with what is needed to draw them."""

    def __init__(self, tracker: Tracker) -> None:
        self.batches = tracker.batches().to_pylist()
        self.steps = [b for b in self.batches if b["kind"] in ("prepare", "step")]
        self.modes = list(tracker.params["modes"] or ())
        if tracker.fitted:
            self.modes = list(tracker.model._require_model().modes.names)
        self.keeps_history = bool(tracker.params["method"].keeps_history)
        labels = [b["label"] for b in self.steps]
        dated = all(label is not None and _is_date(label) for label in labels)
        ascending = labels == sorted(labels, key=str)
        self.by_date = bool(labels) and dated and ascending
        self.x: list[Any] = labels if self.by_date else [b["step"] for b in self.steps]
        self.x_title = "" if self.by_date else "step"

    def column(self, name: str) -> list[Any]:
        """Return a column of the ledger, step by step."""
        return [b.get(name) for b in self.steps]

    def drawn_steps(self) -> list[int]:
        """Return the steps that are drawn of a long line."""
        n_steps = len(self.steps)
        if n_steps <= _MOST:
            return list(range(n_steps))
        return sorted({*np.linspace(0, n_steps - 1, _MOST).astype(int).tolist()})


def labels_figure(course: Course) -> Spec:
    """Draw how many labels each mode has over time."""
    some = course.drawn_steps()
    data = [
        _line(course, some, course.column(f"size_{mode}"), mode, style(k)[0])
        for k, mode in enumerate(course.modes)
    ]
    frame = _frame(course, "labels")
    largest = max((size or 1 for mode in course.modes for size in course.column(f"size_{mode}")),
                  default=1)  # fmt: skip
    ticks = [m * 10**k for k in range(len(str(largest))) for m in (1, 2, 5)]
    frame["yaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{t:,}" for t in ticks]}
    return {"data": data, "layout": frame}


def entries_figure(course: Course) -> Spec:
    """Draw how many entries grew, filled or revised the tensor at each step."""
    kinds = [("grown", "new labels", BLUE), ("in_old_box", "filled or revised", ORANGE)]
    if course.keeps_history:
        kinds = [
            ("grown", "new labels", BLUE),
            ("filled", "filled", GREEN),
            ("revised", "revised", RED),
            ("unchanged", "unchanged", GREY),
        ]
    later = range(1, len(course.steps))  # the first one holds much more than any other
    groups = [[later[i] for i in group] for group in _group(len(later))]
    data = []
    for name, word, colour in kinds:
        counts = [c or 0 for c in course.column(name)]
        if not any(counts):
            continue
        data.append({
            "type": "bar", "name": word, "x": [course.x[g[0]] for g in groups],
            "y": [sum(counts[i] for i in g) for g in groups], "marker": {"color": colour},
        })  # fmt: skip
    together = len(groups[0]) if groups else 1
    unit = "entries a step" if together == 1 else f"entries in {together} steps"
    frame = _frame(course, unit) | {"barmode": "stack", "bargap": 0.1}
    return {"data": data, "layout": frame}


def error_figure(course: Course) -> Spec:
    """Draw the error of each batch, predicted before it was learned, and its moving average."""
    errors = np.array([np.nan if e is None else e for e in course.column("prequential_error")])
    some = course.drawn_steps()
    mean = moving_average(errors, AVERAGED)
    dots = _line(course, some, plain(errors, _DIGITS), "each step, predicted", GREY)
    dots |= {"mode": "markers", "marker": {"color": GREY, "size": 4, "opacity": 0.7}}
    before = _line(course, some, plain(mean, _DIGITS), f"mean of {AVERAGED}", BLUE, width=3)
    left = np.array([np.nan if e is None else e for e in course.column("learned_error")])
    mean = moving_average(left, AVERAGED)
    after = _line(course, some, plain(mean, _DIGITS), "after learning, mean", GREEN)
    frame = _frame(course, "error")
    shown = errors[np.isfinite(errors)]
    # a first step that misses everything would press all others to the ground
    top = float(np.quantile(shown, 0.98)) * 1.3 if len(shown) else 1.0
    frame["yaxis"] |= {"tickformat": ".0%", "range": [0.0, max(top, 1e-6)]}
    return {"data": [dots, before, after], "layout": frame}


def moving_average(values: Any, window: int) -> Any:
    """Return the mean of the last `window` numbers that are there.

    >>> moving_average(np.array([1.0, 3.0, np.nan, 5.0]), 2).tolist()
    [1.0, 2.0, 3.0, 5.0]
    """
    there = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(there)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    n_there = counts[ends] - counts[starts]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n_there > 0, (sums[ends] - sums[starts]) / n_there, np.nan)


def _line(
    course: Course, some: list[int], values: list[Any], name: str, colour: str, *, width: int = 2
) -> Spec:
    x, y = [course.x[i] for i in some], [values[i] for i in some]
    return line(x, y, name, colour, width=width)


def _frame(course: Course, unit: str) -> Spec:
    return layout(unit, course.x_title, top=8, bottom=40, height=300)


def _group(n_steps: int) -> list[range]:
    """Put neighbouring steps together where there are more than can be seen."""
    size = -(-n_steps // 400) or 1
    return [range(i, min(i + size, n_steps)) for i in range(0, n_steps, size)]


def _is_date(label: str) -> bool:
    import datetime as dt

    try:
        dt.datetime.fromisoformat(label)
    except ValueError:
        return False
    return len(label) >= 10
