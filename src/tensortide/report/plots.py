"""Figures of runs and models for notebooks, drawn by plotly; the page has the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortide.drawing import figure as _figure
from tensortide.errors import InputError

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tensortide.online.reading import ReadOnlyModel
    from tensortide.tracker.tracker import Tracker


def labels(run: Tracker) -> go.Figure:
    """Return how many labels each mode has over the steps of a run."""
    from tensortide.report.figures.run import Course, labels_figure

    return _figure(labels_figure(Course(_run(run))))


def entries(run: Tracker) -> go.Figure:
    """Return what each step brought: entries that grew, filled or revised the tensor."""
    from tensortide.report.figures.run import Course, entries_figure

    return _figure(entries_figure(Course(_run(run))))


def error(run: Tracker) -> go.Figure:
    """Return the error of each step, predicted before it was learned, with its moving average."""
    from tensortide.report.figures.run import Course, error_figure

    return _figure(error_figure(Course(_run(run))))


def component(model: ReadOnlyModel | Tracker, number: int = 1) -> go.Figure:
    """Return one component (1 is the strongest): a panel for each mode."""
    from tensortide.report.figures.component import component_figure

    fitted: Any = getattr(model, "model", model)  # a run has one
    if not 1 <= number <= fitted.rank:
        raise InputError(f"there is no component {number!r}; the model has {fitted.rank}.")
    return _figure(component_figure(fitted, number - 1))


def _run(run: Tracker) -> Tracker:
    if not hasattr(run, "batches"):
        raise InputError("this figure is of a run over time: give the tracker, not its model.")
    return run
