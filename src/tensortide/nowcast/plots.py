"""Figures of triangles, nowcasts and replays for notebooks, drawn by plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortide.drawing import figure as _figure
from tensortide.nowcast import figures

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tensortide.nowcast.nowcast import Nowcast
    from tensortide.nowcast.replay_result import Replay
    from tensortide.nowcast.triangle import Triangle


def nowcast(
    result: Nowcast, *, days: int = 1, later: Triangle | None = None, **labels: Any
) -> go.Figure:
    """Return what is reported, the nowcast with its intervals, and what came later if given.

    Strata that are not named are summed over: ``nowcast(result, age_group="80+")``.
    """
    return _figure(figures.nowcast_figure(result, result.unit(**labels), days=days, later=later))


def triangle(counts: Triangle, dates: int = 60) -> go.Figure:
    """Return the newest dates as a heat map; what is not known yet stays empty."""
    return _figure(figures.triangle_figure(counts, dates))


def delays(counts: Triangle, by: str | None = None) -> go.Figure:
    """Return the share that is reported by each delay, of all or by a stratum's labels."""
    return _figure(figures.delay_figure(counts, by))


def delays_over_time(counts: Triangle) -> go.Figure:
    """Return over time which share of the final count was out after some delays."""
    return _figure(figures.delay_course_figure(counts))


def wis(result: Replay, level: str = "all") -> go.Figure:
    """Return the mean WIS of each model by horizon."""
    return _figure(figures.wis_figure(result, level))


def coverage(result: Replay, level: str = "all") -> go.Figure:
    """Return how often the intervals of each model hold the truth, by horizon."""
    return _figure(figures.coverage_figure(result, level))
