"""All methods on one's own data: predict each batch, then learn it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.types import Floats
from tensortide.errors import InputError, TensortideError
from tensortide.estimator import OnlineCP
from tensortide.methods import METHODS
from tensortide.readers.styles import line_style, plotting

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Task:
    """Records, what they mean, and how they are cut into steps."""

    table: pa.Table
    modes: list[str]
    value: str
    step_by: str
    rank: int = 5
    start: float = 0.5
    absent: str = "missing"
    duplicates: str = "last"
    seed: int = 0


@dataclass
class Result:
    """How a method did; `refused` says why it could not take part."""

    method: str
    parameters: str
    errors: list[float] = field(default_factory=list)
    errors_after: list[float] = field(default_factory=list)
    error: float | None = None
    fitness: float | None = None
    seconds: float = 0.0
    bytes: int = 0
    steps: int = 0
    refused: str | None = None


def batches(task: Task) -> list[pa.Table]:
    """Cut the records into steps: one for each value of a column, in ascending order.

    The first is the preparation: the leading share `start` of the values.
    """
    import pyarrow.compute as pc

    values = [] if task.duplicates == "count" else [task.value]
    needed = (*task.modes, *values, task.step_by)
    missing = [c for c in needed if c not in task.table.column_names]
    if missing:
        raise InputError(
            f"there is no column {missing[0]!r}; the columns are "
            f"{', '.join(task.table.column_names)}."
        )
    column = task.table[task.step_by]
    if column.null_count:
        raise InputError(f"column {task.step_by!r} has {column.null_count} missing values.")
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()
    codes = ranks.astype(np.int64) - 1
    n_values = int(codes.max()) + 1 if len(codes) else 0
    if n_values < 3:
        raise InputError(
            f"column {task.step_by!r} has {n_values} distinct values; a comparison needs at "
            "least 3 steps."
        )
    first = min(max(1, round(task.start * n_values)), n_values - 1)
    columns = list(dict.fromkeys([*task.modes, *values]))
    table = task.table.select(columns)
    groups = np.maximum(codes - first + 1, 0)
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    return [table.take(order[a:b]) for a, b in pairwise(ends)]


def compare(
    task: Task, methods: Sequence[str], tell: Callable[[str], None] = lambda _: None
) -> Iterator[Result]:
    """Run the methods one after the other, all from the same preparation."""
    steps = batches(task)
    prepared = _model(task, "gocpt").fit(steps[0], progress=False)
    for name in methods:
        yield _run(task, name, steps, prepared.factors_, tell)


def parameters_of(name: str) -> str:
    """Return the parameters of a method by name, for people.

    >>> parameters_of("olstec")
    'forgetting=0.98, beta=1e-05'
    """
    given = signature(METHODS[name]).parameters.values()
    shown = (f"{p.name}={p.default}" for p in given if p.default is not False)
    return ", ".join(shown).replace("factor=", "")


def _model(task: Task, method: str) -> OnlineCP:
    return OnlineCP(
        task.rank,
        method,
        modes=task.modes,
        value=task.value,
        absent=task.absent,
        duplicates=task.duplicates,
        seed=task.seed,
    )


def _run(
    task: Task,
    name: str,
    steps: Sequence[pa.Table],
    start: list[Floats],
    tell: Callable[[str], None],
) -> Result:
    result = Result(name, parameters_of(name))
    missed = size = 0.0
    model = _model(task, name)
    try:
        model.fit(steps[0], init=start, max_sweeps=0, progress=False)
        for batch in steps[1:]:
            began = time.perf_counter()
            info = model.update(batch)
            result.seconds += time.perf_counter() - began
            if info.prequential_error is not None and info.norm is not None:
                result.errors.append(info.prequential_error)
                result.errors_after.append(1.0 - model.score(batch))
                missed += (info.prequential_error * info.norm) ** 2
                size += info.norm**2
            tell(name)
    except TensortideError as error:
        result.refused = str(error)
        return result
    result.steps = len(steps) - 1
    result.bytes = model.state_bytes_
    result.error = float(np.sqrt(missed / size)) if size else None
    result.fitness = _fitness(model, task, steps)
    return result


def _fitness(model: OnlineCP, task: Task, steps: Sequence[pa.Table]) -> float:
    """Return the fitness on all cells at the end, each with the value that was given last."""
    import pyarrow as pa

    everything = pa.concat_tables(steps)
    if task.duplicates == "last":
        return model.score(everything)
    # The rule holds within a batch: the last batch that has a cell says what it is.
    keeper = OnlineCP(1, "gocpt", modes=task.modes, value=task.value, duplicates=task.duplicates)
    keeper.fit(steps[0], max_sweeps=1, starts=1, progress=False)
    for batch in steps[1:]:
        keeper.update(batch)
    store = keeper._fitted().store
    assert store is not None
    coords, values = store.entries.coords(), store.entries.orders[0].values
    labels = {m: keeper.labels_[m][coords[:, k]] for k, m in enumerate(task.modes)}
    y = model.predict(labels)
    return float(1.0 - np.linalg.norm(values - y) / np.linalg.norm(values))


def draw(task: Task, results: Sequence[Result], file: Path) -> None:
    """Write the picture: errors before and after learning, step by step, for each method."""
    pyplot = plotting()
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    panels = (("errors", "before it was learned"), ("errors_after", "after it was learned"))
    done = [r for r in results if r.errors]
    for axis, (which, when) in zip(axes, panels, strict=True):
        for result in done:
            errors = getattr(result, which)
            axis.plot(range(1, len(errors) + 1), errors, label=result.method,
                      **line_style(result.method))  # fmt: skip
        _limit(axis, [e for r in done for e in getattr(r, which)])
        axis.set_title(f"each batch, {when}", fontsize=10, loc="left")
        axis.set_xlabel(f"steps after preparation (one for each {task.step_by})")
        axis.set_ylabel("error |x - y| / |x|")
        axis.grid(alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=9)
    figure.suptitle(f"Rank {task.rank}", fontsize=11)
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: the picture cannot be written: {error}.") from None
    finally:
        pyplot.close(figure)


def _limit(axis: Any, levels: Sequence[float]) -> None:
    """Cut off what is far above the rest, and say so."""
    if not levels:
        return
    top = 2.0 * float(np.quantile(levels, 0.95))
    if max(levels) > top > 0.0:
        axis.set_ylim(0.0, top)
        axis.text(0.99, 0.97, f"largest error {max(levels):.3g} is above", fontsize=8,
                  transform=axis.transAxes, va="top", ha="right")  # fmt: skip
