"""Figures of runs and models for notebooks, drawn by plotly; the page has the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortide.drawing import figure as _figure
from tensortide.errors import InputError
from tensortide.report.figures import component as _component
from tensortide.report.figures import forecast as _forecast
from tensortide.report.figures import run as _run

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tensortide.online.reading import ReadOnlyModel
    from tensortide.tracker.tracker import Tracker


def labels(run: Tracker) -> go.Figure:
    """Return how many labels each mode has over the steps of a run."""
    return _figure(_run.labels_figure(_course(run)))


def entries(run: Tracker) -> go.Figure:
    """Return what each step brought: entries that grew, filled or revised the tensor."""
    return _figure(_run.entries_figure(_course(run)))


def error(run: Tracker) -> go.Figure:
    """Return the error of each step, predicted before it was learned, with its moving average."""
    return _figure(_run.error_figure(_course(run)))


def component(model: ReadOnlyModel | Tracker, number: int = 1) -> go.Figure:
    """Return one component (1 is the strongest): a panel for each mode."""
    fitted: Any = getattr(model, "model", model)  # a run has one
    if not 1 <= number <= fitted.rank:
        raise InputError(f"there is no component {number!r}; the model has {fitted.rank}.")
    return _figure(_component.component_figure(fitted, number - 1))


def forecast(
    model: ReadOnlyModel | Tracker, steps: int = _forecast.STEPS, mode: str | None = None
) -> go.Figure:
    """Return the largest series and how they are expected to go on, dashed on grey."""
    fitted: Any = getattr(model, "model", model)  # a run has one
    return _figure(_forecast.forecast_figure(fitted, steps, mode))


def _course(run: Tracker) -> _run.Course:
    if not hasattr(run, "batches"):
        raise InputError("this figure is of a run over time: give the tracker, not its model.")
    return _run.Course(run)
