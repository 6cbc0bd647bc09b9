"""Figures of runs and models for notebooks, drawn by plotly; the page has the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortide.errors import InputError, TensortideError

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tensortide.estimator import OnlineCP
    from tensortide.tracker.run import Tracker


def labels(run: Tracker) -> go.Figure:
    """Return how many labels each mode has over the steps of a run."""
    from tensortide.report.figures import Course, labels_figure

    return _figure(labels_figure(Course(run)))


def entries(run: Tracker) -> go.Figure:
    """Return what each step brought: entries that grew, filled or revised the tensor."""
    from tensortide.report.figures import Course, entries_figure

    return _figure(entries_figure(Course(run)))


def error(run: Tracker) -> go.Figure:
    """Return the error of each step, predicted before it was learned, with its moving average."""
    from tensortide.report.figures import Course, error_figure

    return _figure(error_figure(Course(run)))


def component(model: OnlineCP, number: int = 1) -> go.Figure:
    """Return one component (1 is the strongest): a panel for each mode."""
    from tensortide.report.components import component_figure

    if not 1 <= number <= model.rank:
        raise InputError(f"there is no component {number!r}; the model has {model.rank}.")
    return _figure(component_figure(model, number - 1))


def _figure(spec: dict[str, Any]) -> go.Figure:
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise TensortideError(
            "figures need plotly; install it with: python -m pip install plotly."
        ) from None
    return go.Figure(spec)
