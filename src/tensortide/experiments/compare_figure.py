"""The picture of a comparison: errors step by step, for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.experiments.compare import PAPER, Task, method_of
from tensortide.palette import (
    are_dates,
    cut_off,
    line_style,
    place_ticks,
    plotting,
    rival_style,
    save_picture,
)
from tensortide.wording import counted

if TYPE_CHECKING:
    from tensortide.experiments.compare_result import Result
    from tensortide.experiments.comparison import Comparison


def draw(comparison: Comparison, file: Path, title: str) -> None:
    """Write the picture: errors of new cells, and of those held out or just learned."""
    task, steps = comparison.task, comparison.steps
    pyplot = plotting()
    done = [r for r in comparison.rows if r.refused is None]
    height = 4.6 + 0.2 * (len(done) // 6 + len(comparison.notes))
    figure, axes = pyplot.subplots(1, 2, figsize=(11, height), sharex=True, layout="constrained")
    panels = [("errors", "each batch, before it was learned")]
    if steps.n_held:
        panels.append(("errors_held", "cells held out, after the rest of the batch was learned"))
    else:
        panels.append(("errors_after", "each batch, after it was learned"))
    for axis, (which, what) in zip(axes, panels, strict=True):
        levels: list[float] = []
        for result in reversed(done):  # the best one on top
            errors = [np.nan if e is None else e for e in getattr(result, which)]
            if errors:  # rivals have none after learning
                axis.plot(_along(steps.labels), errors, label=result.method, **_style(result))
            levels += [e for e in errors if np.isfinite(e)]
        _limit(axis, levels)
        axis.set_title(what, fontsize=10, loc="left")
        axis.set_xlabel(_axis_label(task, steps.labels))
        axis.set_ylabel("error |x - y| / |x|")
        axis.grid(alpha=0.3)
        place_ticks(axis, steps.labels)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=6, fontsize=9)
    n_rivals = sum(r.kind == "rival" for r in done)
    told = counted(len(done) - n_rivals, "method")
    told += f" and {counted(n_rivals, 'rival')} that need no model" if n_rivals else ""
    lines = [f"{title}: {told}, rank {task.rank}", *map(_sentence, comparison.notes)]
    figure.suptitle("\n".join(lines), fontsize=11)
    save_picture(figure, file)


def _style(result: Result) -> dict[str, Any]:
    """Return how a row is drawn."""
    n = len(result.errors)
    if result.kind == "rival":
        return rival_style(result.method, n)
    method = method_of(result.method)
    mark = {"marker": "o" if n < 30 else None, "markersize": 3}
    return mark | line_style(method, variant=result.method.endswith(PAPER))


def _sentence(note: str) -> str:
    return note[0].upper() + note[1:]


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
