"""Figures of the experiments as PNG and SVG: one colour and line per method, everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.experiments.scenario import Scenario, Source
from tensortide.experiments.tables import CELLS, nearly_exact
from tensortide.palette import BLUE, cut_off, line_style, plotting, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Row = dict[str, Any]
ROUNDED = 1e-10  # to what fitness is rounded in the results


def draw(scenario: Scenario, rows: Sequence[Row], folder: Path, stem: str) -> list[Path]:
    """Write the figure of a scenario as PNG and SVG; return the files."""
    pyplot = plotting()
    rows = [r for r in rows if "failed" not in r]
    panels = {"complexity": _complexity, "ablation": _ablation}.get(scenario.setting, _curves)
    figure = panels(pyplot, scenario, rows)
    n_seeds = len({r["seed"] for r in rows})
    over = f" (mean over {n_seeds} seeds)" if n_seeds > 1 else ""
    figure.suptitle(scenario.title + over, fontsize=12)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{stem}.{kind}" for kind in ("png", "svg")]
    save_picture(figure, *files)
    return files


def _curves(pyplot: Any, scenario: Scenario, rows: Sequence[Row]) -> Any:
    """Fitness against steps and against time, mean over seeds, one row of panels per data set."""
    sources = [s for s in scenario.data if any(r["case"] == s.label for r in rows)]
    figure, axes = pyplot.subplots(
        len(sources), 2, figsize=(11, 0.6 + 3.3 * len(sources)), squeeze=False,
        sharey="row", layout="constrained",
    )  # fmt: skip
    for (left, right), source in zip(axes, sources, strict=True):
        shown = [r for r in rows if r["case"] == source.label]
        exact = nearly_exact(point[2] for r in shown for point in r["curve"])
        levels = []
        for contender in scenario.contenders:
            mine = [r for r in shown if r["contender"] == contender.label]
            if not mine:
                continue
            curve = np.mean([r["curve"] for r in mine], axis=0)
            if exact:
                curve[:, 2] = np.maximum(1.0 - curve[:, 2], ROUNDED)
            style = line_style(contender.method, variant=bool(contender.options))
            left.plot(curve[:, 0] + 1, curve[:, 2], label=contender.label, **style)
            right.plot(curve[:, 1], curve[:, 2], **style)
            levels += [curve[:, 2].min(), curve[:, 2].max()]
        if exact:
            left.set_yscale("log")
        else:
            _limit(left, levels)
        left.set_title(_label(scenario, source, rows), fontsize=10, loc="left")
        left.set_xlabel("steps")
        cells = CELLS.get(scenario.setting, "all cells")
        left.set_ylabel(f"1 - fitness, {cells} (log)" if exact else f"fitness, {cells} (1 = exact)")
        right.set_xlabel("time of the updates, seconds (log)")
        right.set_xscale("log")
        _plain_ticks(right.xaxis)
        for axis in (left, right):
            axis.grid(alpha=0.3)
    _legend(figure, axes[0][0])
    return figure


def _ablation(pyplot: Any, scenario: Scenario, rows: Sequence[Row]) -> Any:
    figure, axes = pyplot.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for axis, source in zip(axes.flat, scenario.data, strict=False):
        for contender, line in zip(scenario.contenders, ("o-", "s--"), strict=True):
            mine = [r for r in rows if r["case"] == source.label]
            mine = [r for r in mine if r["contender"] == contender.label]
            if mine:
                curve = np.mean([r["curve"] for r in mine], axis=0)[1:]
                axis.plot(curve[:, 1], curve[:, 2], line, color=BLUE, label=contender.label,
                          markersize=3,
                          markerfacecolor="white" if "s" in line else BLUE)  # fmt: skip
        axis.set_title(_label(scenario, source, rows), fontsize=10)
        axis.set_xlabel("time, seconds (log)")
        axis.set_xscale("log")
        _plain_ticks(axis.xaxis)
        axis.set_ylabel("fitness on hidden cells")
        axis.grid(alpha=0.3)
    _legend(figure, axes[0][0])
    return figure


def _complexity(pyplot: Any, scenario: Scenario, rows: Sequence[Row]) -> Any:
    figure, axes = pyplot.subplots(len(scenario.data), 3, figsize=(12, 6.6), layout="constrained")
    what = [("side", "seconds", "cells of a slice, P", "time of a step, ms", 1e3),
            ("slices", "seconds", "slices seen before, I", "time of a step, ms", 1e3),
            ("slices", "bytes", "slices seen before, I", "model, KB", 1e-3)]  # fmt: skip
    for line, source in zip(axes, scenario.data, strict=True):
        for axis, (varied, cost, x_label, y_label, unit) in zip(line, what, strict=True):
            for contender in scenario.contenders:
                for r in rows:
                    if r["case"] == source.label and r["contender"] == contender.label:
                        sizes = np.array(r[f"{varied}_sizes"], float)
                        axis.loglog(
                            sizes**2 if varied == "side" else sizes,
                            unit * np.array(r[f"{varied}_{cost}"]),
                            label=contender.label,
                            marker="o",
                            markersize=2.5,
                            **line_style(contender.method),
                        )
            axis.set_xlabel(x_label)
            axis.set_ylabel(y_label)
            _plain_ticks(axis.xaxis)
            _plain_ticks(axis.yaxis)
            axis.grid(alpha=0.3, which="both")
            axis.set_title(_label(scenario, source, rows), fontsize=10, loc="left")
    _legend(figure, *axes[:, 0])
    return figure


def _label(scenario: Scenario, source: Source, rows: Sequence[Row]) -> str:
    return scenario.label_of(source, quick=any(r["quick"] for r in rows))


def _plain_ticks(side: Axis) -> None:
    """Write numbers out, at a few places: powers of ten in small print cannot be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = side.get_view_interval()
    places = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
    side.set_major_locator(LogLocator(base=10, subs=places))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    side.set_minor_formatter(NullFormatter())


def _limit(axis: Axes, levels: Sequence[float]) -> None:
    """Show the top of the range; a method far below is cut off, and a note says so."""
    top, middle, bottom = max(levels), float(np.quantile(levels, 0.5)), min(levels)
    floor = middle - 3.0 * (top - middle) - 0.01
    if bottom < floor:
        high = top + 0.05 * (top - floor)
        cut_off(axis, floor, high, f"lowest value {bottom:.2f} is below", above=False)


def _legend(figure: Figure, *axes: Axes) -> None:
    """Put one legend below all panels, where it covers no data."""
    found: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=5, fontsize=9)
