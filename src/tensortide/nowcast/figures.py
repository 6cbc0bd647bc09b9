"""Pictures of nowcasts as plain data that plotly draws, on pages and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.drawing import Spec, layout, line, plain, style
from tensortide.palette import BLACK, BLUE, GREY, ORANGE
from tensortide.wording import counted

if TYPE_CHECKING:
    from tensortide.nowcast.nowcast import Nowcast
    from tensortide.nowcast.replay_result import Replay
    from tensortide.nowcast.triangle import Triangle

_BEFORE = 28  # complete dates that are drawn before the open ones
_MOST_LINES = 8


def nowcast_figure(
    nowcast: Nowcast, unit: int = 0, *, days: int = 1, later: Triangle | None = None
) -> Spec:
    """Draw what is reported, the nowcast with its intervals, and what came later if it is known."""
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    found = nowcast.quantiles(levels, days=days)
    dates = nowcast.triangle.days()[::-1]
    n_ages = len(found.dates)
    past = _final_counts(nowcast, unit, days)
    x_open = [str(d) for d in dates[:n_ages]][::-1]
    bands = [plain(found.values[unit, ::-1, k]) for k in range(len(levels))]
    if len(past):  # the ribbon begins where everything is known
        x_open = [str(dates[n_ages]), *x_open]
        bands = [[*plain(past[:1]), *band] for band in bands]
    data = [
        _band(x_open, bands[0], bands[4], "95 % interval", "rgba(0,114,178,0.18)"),
        _band(x_open, bands[1], bands[3], "50 % interval", "rgba(0,114,178,0.40)"),
        line(x_open, bands[2], "nowcast (median)", BLUE, width=3),
    ]
    shown = past[: _BEFORE + 1]
    x_past = [str(d) for d in dates[n_ages : n_ages + len(shown)]][::-1]
    x_all = [*x_past, *(str(d) for d in dates[:n_ages][::-1])]
    data.append(line(x_past, plain(shown[::-1]), "final", GREY, width=2))
    reported = _published_yet(nowcast, found.reported[unit])
    joint = plain(shown[:1])  # the open dates go on from the newest final one
    x_reported = x_all[len(x_past) - len(joint) :]
    y_reported = [*joint, *plain(reported[::-1])]
    data.append(line(x_reported, y_reported, "reported so far", ORANGE, width=2, dash="dot"))
    if later is not None:
        truth = _later(nowcast, unit, days, later)
        y = plain(truth[: n_ages + len(shown)][::-1])
        data.append(line(x_all, y, "as it turned out", BLACK, width=2))
    frame = layout("counts" if days == 1 else f"{days}-day sums")
    who = [str(label) for label in nowcast.units.keys[unit] if label is not None]
    words = ", ".join([*who, f"as of {nowcast.as_of_date}"])
    frame["title"] = _title(words)
    frame["margin"]["t"] = 64
    frame["height"] = 400
    return {"data": data, "layout": frame}


def triangle_figure(triangle: Triangle, dates: int = 60) -> Spec:
    """Draw the newest dates of a triangle as a heat map; what is not known yet stays empty."""
    square = triangle.by_delay()[-dates:]
    days = [str(d) for d in triangle.days()[-dates:]]
    heat = {
        "type": "heatmap",
        "x": list(range(square.shape[1])),
        "y": days,
        "z": [plain(row) for row in np.log10(1.0 + np.maximum(square, 0.0))],
        "text": [["" if np.isnan(v) else f"{v:,.0f}" for v in row] for row in square],
        "hovertemplate": "%{y}, delay %{x}: %{text}<extra></extra>",
        "colorscale": "Cividis",
        "colorbar": _log_ticks(float(np.nanmax(np.maximum(square, 0.0)))),
    }  # fmt: skip
    frame = layout("reference date", x=f"delay ({triangle.every}s)")
    frame["xaxis"] |= _whole(triangle.max_delay)
    frame["yaxis"] |= {"autorange": "reversed", "rangemode": "normal", "type": "category",
                        "nticks": 10}  # fmt: skip
    frame["height"] = 460
    return {"data": [heat], "layout": frame}


def delay_figure(triangle: Triangle, by: str | None = None) -> Spec:
    """Draw the share that is reported by each delay, of all or of the labels of a stratum."""
    complete = triangle.n_dates - triangle.max_delay
    if complete < 1:
        return _nothing_complete(triangle)
    square = triangle.by_delay([by] if by else [])
    groups = square if by else square[None]
    names = [str(label) for label in triangle.labels[triangle.axis_of(by)]] if by else ["all"]
    sizes = np.nansum(groups[:, :complete], axis=(1, 2))
    data: list[Spec] = []
    for k in np.argsort(-sizes, kind="stable")[:_MOST_LINES]:
        share = _cumulate(groups[k, :complete])
        colour, dash = style(len(data))
        data.append(line(list(range(len(share))), plain(share), names[k], colour, dash=dash))
    frame = layout("share reported", x=f"delay ({triangle.every}s)")
    frame["yaxis"] |= {"tickformat": ".0%", "range": [0, 1.02]}
    frame["xaxis"] |= _whole(triangle.max_delay)
    return {"data": data, "layout": frame}


def delay_course_figure(triangle: Triangle, delays: tuple[int, ...] = (0, 3, 7, 14)) -> Spec:
    """Draw over time which share of each date's final count was out after some delays."""
    window = 7 if triangle.every == "day" else 1
    complete = triangle.n_dates - triangle.max_delay
    if complete < window:
        return _nothing_complete(triangle)
    square = np.nan_to_num(triangle.by_delay()[:complete])
    kernel = np.ones(window)
    total = np.convolve(square.sum(axis=1), kernel, "valid")
    dates = [str(d) for d in triangle.days()[window - 1 : complete]]
    data: list[Spec] = []
    for delay in (d for d in delays if d < triangle.max_delay):
        part = np.convolve(square[:, : delay + 1].sum(axis=1), kernel, "valid")
        share = np.where(total > 0.0, part / np.where(total > 0.0, total, 1.0), np.nan)
        colour, dash = style(len(data))
        same = "on the day" if triangle.every == "day" else f"in the same {triangle.every}"
        word = same if delay == 0 else f"within {counted(delay, triangle.every)}"
        data.append(line(dates, plain(share), word, colour, dash=dash))
    frame = layout("share reported")
    frame["yaxis"] |= {"tickformat": ".0%", "range": [0, 1.02]}
    frame["showlegend"] = True
    return {"data": data, "layout": frame}


def wis_figure(replay: Replay, level: str = "all") -> Spec:
    """Draw the mean WIS of each model by horizon."""
    return _by_horizon(replay, level, "wis", "mean WIS")


def coverage_figure(
    replay: Replay, level: str = "all", intervals: tuple[float, ...] = (0.5, 0.95)
) -> Spec:
    """Draw how often the 50 % and 95 % intervals hold the truth, by horizon."""
    figure: Spec = {}
    for interval in intervals:
        part = _by_horizon(
            replay, level, f"coverage_{100 * interval:.0f}", "intervals with the truth"
        )
        for drawn in part["data"]:
            drawn["showlegend"] = not figure
        figure = {**part, "data": figure.get("data", []) + part["data"]}
    n = replay.truth.shape[2]
    if len(intervals) == 1:
        figure["layout"]["title"] = _title(f"{100 * intervals[0]:.0f} % intervals")
        figure["layout"]["margin"]["t"] = 64
    figure["layout"]["annotations"] = []
    for aim in intervals:
        words = f"aim of the {100 * aim:.0f} % intervals"
        figure["data"].append(line([0, n - 1], [aim, aim], words, GREY, width=1, dash="dot"))
        figure["data"][-1]["showlegend"] = False
        figure["layout"]["annotations"].append(
            _note(words, x=n - 1, y=aim - 0.01, xanchor="right", yanchor="top")
        )
    figure["layout"]["yaxis"] |= {"tickformat": ".0%", "range": [0, 1.05]}
    return figure


def _by_horizon(replay: Replay, level: str, measure: str, unit: str) -> Spec:
    replay.level_number(level)
    rows = replay.summary(by=("level", "horizon")).to_pylist()
    data = []
    for k, model in enumerate(m for m in replay.quantiles if m != "unadjusted"):  # far above all
        mine = [r for r in rows if r["model"] == model and r["level"] == level]
        colour, dash = style(k)
        x, y = [r["horizon"] for r in mine], [r[measure] for r in mine]
        data.append(line(x, y, model, colour, dash=dash))
    frame = layout(unit, x=f"horizon ({replay.every}s back from the as-of date)")
    return {"data": data, "layout": frame}


def _title(words: str) -> Spec:
    return {"text": words, "x": 0.01, "y": 0.98, "font": {"size": 14}}


def _nothing_complete(triangle: Triangle) -> Spec:
    words = f"no date is complete yet: that takes {triangle.max_delay} {triangle.every}s"
    frame = layout("reported", x=f"delay ({triangle.every}s)")
    frame["annotations"] = [_note(words, x=0.5, y=0.5, xref="paper", yref="paper")]
    return {"data": [], "layout": frame}


def _note(text: str, **where: Any) -> Spec:
    return {"text": text, "showarrow": False, "font": {"color": "#555", "size": 12}, **where}


def _published_yet(nowcast: Nowcast, published: Floats) -> Floats:
    """Leave out dates of a silence: nothing published is no zero."""
    ages = np.arange(len(published))
    return np.where((ages < nowcast.silent) & (published == 0.0), np.nan, published)


def _final_counts(nowcast: Nowcast, unit: int, days: int) -> Floats:
    from tensortide.nowcast.intervals import sum_windows

    past = nowcast.today.past[unit]
    return sum_windows(past, days) if len(past) >= days else past[:0]


def _later(nowcast: Nowcast, unit: int, days: int, later: Triangle) -> Floats:
    """Return the final counts of a unit, newest date first, from a later triangle."""
    from tensortide.nowcast.intervals import sum_windows

    chosen = {
        name: label
        for name, label in zip(nowcast.units.strata, nowcast.units.keys[unit], strict=True)
        if label is not None
    }
    part = later.select(**chosen) if chosen else later
    totals = part.totals()
    last = nowcast.triangle.last - later.first
    complete = later.last - later.max_delay - later.first
    totals = np.where(np.arange(len(totals)) <= complete, totals, np.nan)
    newest = totals[: last + 1][::-1]
    gaps = np.isnan(newest)  # sums that hold a date which is not final are not known
    sums = sum_windows(np.where(gaps, 0.0, newest), days)
    return np.where(sum_windows(gaps.astype(float), days) > 0.0, np.nan, sums)


def _cumulate(square: Floats) -> Floats:
    sums = np.nansum(square, axis=0)
    total = sums.sum()
    return np.cumsum(sums) / total if total > 0.0 else np.full(len(sums), np.nan)


def _band(x: list[str], low: list[Any], high: list[Any], name: str, colour: str) -> Spec:
    live = [k for k, v in enumerate(low) if v is not None]
    xs, lows, highs = ([a[k] for k in live] for a in (x, low, high))
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": [*xs, *xs[::-1]],
        "y": [*lows, *highs[::-1]], "fill": "toself", "fillcolor": colour,
        "line": {"width": 0, "color": colour}, "hoverinfo": "skip",
    }  # fmt: skip


def _whole(most: int) -> Spec:
    """Return ticks at whole numbers."""
    return {"dtick": max(1, round(most / 10)), "tick0": 0}


def _log_ticks(most: float) -> Spec:
    ticks = [v for v in (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 100000) if v <= most]
    return {
        "title": {"text": "new counts"},
        "tickvals": [float(np.log10(1.0 + v)) for v in ticks],
        "ticktext": [f"{v:,}" for v in ticks],
    }
