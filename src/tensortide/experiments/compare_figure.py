"""The picture of a comparison: errors step by step, for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensortide.experiments.compare import PAPER, Result, Task
from tensortide.experiments.cut_table import Steps
from tensortide.palette import are_dates, cut_off, line_style, place_ticks, plotting, save_picture


def draw(task: Task, steps: Steps, results: Sequence[Result], file: Path, title: str) -> None:
    """Write the picture: errors of new cells, and of those held out or just learned."""
    pyplot = plotting()
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.8), sharex=True, layout="constrained")
    panels = [("errors", "each batch, before it was learned")]
    if steps.n_held:
        panels.append(("errors_held", "cells held out, after the rest of the batch was learned"))
    else:
        panels.append(("errors_after", "each batch, after it was learned"))
    done = [r for r in results if r.refused is None]
    for axis, (which, what) in zip(axes, panels, strict=True):
        levels: list[float] = []
        for result in reversed(done):  # the best one on top
            errors = [np.nan if e is None else e for e in getattr(result, which)]
            axis.plot(_along(steps.labels), errors, label=result.method,
                      marker="o" if len(errors) < 30 else None, markersize=3,
                      **line_style(result.method.removesuffix(PAPER),
                                   variant=result.method.endswith(PAPER)))  # fmt: skip
            levels += [e for e in errors if np.isfinite(e)]
        _limit(axis, levels)
        axis.set_title(what, fontsize=10, loc="left")
        axis.set_xlabel(_axis_label(task, steps.labels))
        axis.set_ylabel("error |x - y| / |x|")
        axis.grid(alpha=0.3)
        place_ticks(axis, steps.labels)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=6, fontsize=9)
    figure.suptitle(f"{title}: {len(done)} methods, rank {task.rank}", fontsize=11)
    save_picture(figure, file)


def _is_number(labels: Sequence[Any]) -> bool:
    return all(isinstance(label, (int, float)) for label in labels)


def _along(labels: Sequence[Any]) -> Sequence[Any]:
    """Return where the steps stand: their dates or numbers, else one, two, three."""
    return labels if are_dates(labels) or _is_number(labels) else range(1, len(labels) + 1)


def _axis_label(task: Task, labels: Sequence[Any]) -> str:
    if are_dates(labels) or _is_number(labels):
        return task.step_by
    return f"steps after preparation (one for each {task.step_by})"


def _limit(axis: Any, levels: Sequence[float]) -> None:
    """Cut off what is far above the rest, and say so."""
    if not levels:
        axis.text(0.5, 0.5, "no step has values other than zero", ha="center",
                  transform=axis.transAxes)  # fmt: skip
        return
    top = 2.0 * float(np.quantile(levels, 0.95))
    if max(levels) > top > 0.0:
        cut_off(axis, 0.0, top, f"largest error {max(levels):.3g} is above", above=True)
