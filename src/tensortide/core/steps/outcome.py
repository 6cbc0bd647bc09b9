"""What a step has computed, and the two ends that the steps of all methods share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tensortide.arrays import Floats, Positions, Shape
from tensortide.core.kernels.entries import predict_cells
from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Memory
from tensortide.core.tensor.dense_box import DenseBox, box_values
from tensortide.core.tensor.factors import Factors, RunningGrams
from tensortide.core.tensor.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The touched rows as they were: the undo of a step."""

    positions: Sequence[Positions | None]
    rows: Sequence[Floats]
    shape: Shape
    grams: RunningGrams
    precisions: Sequence[Floats] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """New rows and what a person wants to know about them.  Nothing is written yet."""

    positions: Sequence[Positions | None]
    rows: Sequence[Floats]
    new_shape: Shape
    grams: RunningGrams
    before: Journal
    objective: float
    largest_move: float
    strategy: str
    alpha: float | None
    sweeps: int
    predicted: Floats
    memory: Memory = field(default_factory=dict)
    precisions: Sequence[Floats] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The rows of a step, with new rows at the mean of their mode, and what they were."""

    work: Workspace
    previous: Floats
    means: Floats
    rest: RunningGrams | None
    predicted: Floats
    n_upper: Shape


def begin_step(factors: Factors, change: Change) -> Begun:
    """Load the rows that a step works on and predict the batch from them."""
    begun = load_rows(factors, change)
    return replace(begun, predicted=predict_arrived(begun.work, change))


def load_rows(factors: Factors, change: Change) -> Begun:
    """Load the rows that a step works on; new ones are at the mean of their mode."""
    n_upper, n_lower = _count_touched(change)
    work = factors.load(change.positions, n_upper, n_lower)
    rest = None
    if change.positions[0] is not None:
        rest = factors.grams.minus_upper(work)
        work.leave_out(rest.matrices())
    means = factors.means()
    for mode in work.growing:
        work.stack[work.lower_part(mode)] = means[mode]
    return Begun(
        work=work, previous=work.stack.copy(), means=means, rest=rest,
        predicted=np.empty(0), n_upper=n_upper,
    )  # fmt: skip


def predict_arrived(work: Workspace, change: Change) -> Floats:
    """Return the model's values of the cells that have just come."""
    if isinstance(change.arrived, DenseBox):
        return box_values(change.arrived.last_rows(work.rows()))
    predicted = np.empty(len(change.arrived))
    predict_cells(change.arrived, work.firsts, work.stack, predicted)
    return predicted


def finish_step(
    begun: Begun,
    change: Change,
    factors: Factors,
    objective: float,
    strategy: str,
    *,
    alpha: float | None = None,
    sweeps: int = 1,
    memory: Memory | None = None,
    precisions: tuple[Floats, Floats] | None = None,
) -> Outcome:
    """Wrap up: the new rows, their Gram matrices, and the journal of the old ones.

    `precisions` are those of the stacked rows before and after.
    """
    work, previous = begun.work, begun.previous
    rows, every = work.rows(), range(work.order)
    touched = zip(change.positions, begun.n_upper, strict=True)
    journal = Journal(
        positions=[None if p is None else p[:n] for p, n in touched],
        rows=[previous[work.upper_part(mode)] for mode in every],
        shape=change.old_shape,
        grams=factors.grams,
        precisions=None if precisions is None else [
            precisions[0][work.upper_part(mode)] for mode in every
        ],
    )  # fmt: skip
    return Outcome(
        positions=change.positions, rows=rows, new_shape=change.new_shape,
        grams=RunningGrams.of(rows) if begun.rest is None else begun.rest.plus(work),
        before=journal, objective=objective, largest_move=_largest_move(work, previous),
        strategy=strategy, alpha=alpha, sweeps=sweeps, predicted=begun.predicted,
        memory=memory or {},
        precisions=None if precisions is None else [precisions[1][work.part(m)] for m in every],
    )  # fmt: skip


def commit(factors: Factors, outcome: Outcome) -> None:
    """Write the outcome into the factors."""
    factors.put(
        outcome.positions, outcome.rows, outcome.new_shape, outcome.grams, outcome.precisions
    )


def undo(factors: Factors, outcome: Outcome) -> None:
    """Put everything back as it was before `commit`, however far that got."""
    before = outcome.before
    factors.put(before.positions, before.rows, before.shape, before.grams, before.precisions)


def _count_touched(change: Change) -> tuple[Shape, Shape]:
    """Return how many old and how many new rows of each mode take part."""
    old, new = change.old_shape, change.new_shape
    if change.positions[0] is None:
        return old, tuple(n - o for o, n in zip(old, new, strict=True))
    upper = tuple(map(change.n_upper, range(len(old))))
    counts = zip(change.positions, upper, strict=True)
    return upper, tuple(len(rows) - n for rows, n in counts if rows is not None)


def _largest_move(work: Workspace, previous: Floats) -> float:
    """Return the largest change of a number in the old rows."""
    moves = np.abs(work.stack - previous)
    for mode in work.growing:
        moves[work.lower_part(mode)] = 0.0
    return float(moves.max())
