"""A comparison in words: what was compared, the table, and what its columns mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tensortide.wording import counted, listed

if TYPE_CHECKING:
    from tensortide.experiments.compare import Task
    from tensortide.experiments.compare_result import Result
    from tensortide.experiments.comparison import Comparison
    from tensortide.experiments.cut_table import Steps


def in_words(comparison: Comparison, width: int | None = None) -> str:
    """Return the whole comparison as text, as wide as a terminal or as it is said."""
    task, steps = comparison.task, comparison.steps
    results = comparison.rows
    out = StringIO()
    console = Console(file=out, width=width, highlight=False)
    console.print(_introduction(task, steps) + "\n")
    able = [r for r in results if r.refused is None]
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("", no_wrap=True)
    held = ["error of cells\nheld out"] if steps.n_held else []
    for name in (*held, "error of\nnew cells", "fitness", "seconds", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in able:
        table.add_row(
            r.method,
            "rival" if r.kind == "rival" else "",
            *([_with_spread(r)] if steps.n_held else []),
            _number(r.error),
            _number(r.fitness),
            f"{r.seconds:.2f}",
            _size(r.bytes),
        )
    console.print(table)
    for note in comparison.notes:
        console.print("\n" + note[0].upper() + note[1:])
    console.print("\n" + _explanation(steps, comparison.fibre))
    for line in _refusals(results):
        console.print(line, soft_wrap=True)
    console.print("parameters:")
    for r in able:
        given = ", ".join(f"{name}={value}" for name, value in r.parameters.items())
        console.print(f"  {r.method}: {given or 'none'}", soft_wrap=True)
    return out.getvalue().rstrip("\n")


def _introduction(task: Task, steps: Steps) -> str:
    n, n_first = len(steps.batches), steps.first.num_rows
    told = [
        f"{task.table.num_rows:,} records, rank {task.rank}; prepared on the first {n_first:,}, "
        f"then {counted(n, 'step')} by {task.step_by}: each batch is predicted, "
        "then learned."
    ]
    if all(isinstance(label, str) for label in steps.labels):
        shown = ", ".join(map(repr, steps.labels[:3]))
        told.append(
            f"{task.step_by} is text, so the steps go in its alphabetical order: {shown} ..."
        )
    if steps.within:
        told.append(
            f"{steps.within:,} records repeat a cell of their own step: {_RULES[task.duplicates]}."
        )
    if steps.across:
        told.append(f"{steps.across:,} records repeat or correct a cell of an earlier step.")
    if task.duplicates == "count" and task.absent != "zero":
        told.append("Cells without a record are unknown; --absent zero makes them zeros.")
    told.append(_about_held(task, steps))
    n_parameters = task.rank * sum(len(set(steps.first[m].to_pylist())) for m in task.modes)
    if n_parameters > n_first:
        told.append(
            f"The first data have fewer records than the model numbers ({n_parameters:,}): take "
            "a smaller --rank or a larger --start."
        )
    return "\n".join(told)


def _about_held(task: Task, steps: Steps) -> str:
    if steps.n_held:
        return f"{steps.n_held:,} cells are held out: no method learns them (see --hold-out)."
    if task.absent == "zero":
        return "No cell is held out, as it would count as zero."
    if task.hold_out is None and steps.complete:
        return (
            "The first data have no hole, so no cell is held out; --hold-out 0.1 does, and leaves "
            "out the methods that need complete slices."
        )
    return "No cell is held out."


_RULES = {
    "last": "only the last one counts (events are added up with --duplicates sum or count, later "
    "versions of a value are told apart with --step-by and the column that says when they came)",
    "sum": "they are summed",
    "mean": "their mean counts",
    "count": "they are counted",
}


def _explanation(steps: Steps, fibre: Sequence[str]) -> str:
    text = "error: |x - y| / |x|, over all steps; of new cells before their batch was learned"
    if steps.n_held:
        text += (
            "; of cells held out after the rest of their batch was learned (± its standard error, "
            "from leaving out one step each; best first)"
        )
    else:
        text += " (best first)"
    text += ". fitness: 1 - |x - y| / |x| on all cells learned, at the end"
    if not steps.n_held:
        text += " (it favours methods that keep history and says little of other cells)"
    if fibre:
        text += (
            f". A rival needs no model: it says what came before of the same {listed(fibre)}, or "
            "adds an effect of each label to the mean"
        )
    return text + "."


def _refusals(results: list[Result]) -> list[str]:
    """Return one line for each reason, with the methods that gave it, without the advice."""
    reasons = defaultdict(list)
    for r in results:
        if r.refused is not None:
            reason = r.refused.replace(f"method {r.method!r} ", "").partition(";")[0].rstrip(".")
            when = f"at step {r.refused_at}" if r.refused_at else "in the preparation"
            reasons[f"{when}: {reason}"].append(r.method)
    return [f"not run: {', '.join(names)} ({reason})" for reason, names in reasons.items()]


def _with_spread(result: Result) -> str:
    spread = result.error_held_spread
    return _number(result.error_held) + (f" ± {spread:.3f}" if spread is not None else "")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _size(n_bytes: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes = round(n_bytes / 1000)
    return f"{n_bytes:.0f} GB"
