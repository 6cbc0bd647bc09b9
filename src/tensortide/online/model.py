"""The model that evolves: factors, labels, and (for methods that keep it) the history.

`plan` computes a step and writes nothing; `adopt` takes it over, all or nothing: the writing is
taken back if anything, also an interrupt, comes between.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.dense import dot
from tensortide.core.losses.standard import check_unit, check_values
from tensortide.core.steps.flows import begin, preparation, step
from tensortide.core.steps.method import Memory, Method, Recipe
from tensortide.core.steps.outcome import begin_step, commit, undo
from tensortide.core.steps.prepare import Effort, Prepared, prepare
from tensortide.core.steps.rank import lower_rank, raise_rank, revived
from tensortide.core.tensor.dense_box import Complete, box_values
from tensortide.core.tensor.factors import Factors, values_at
from tensortide.core.updates.exact import Run, serially
from tensortide.data.cells import Cells
from tensortide.data.modes import Arrival, Modes
from tensortide.data.sketch import DistinctCells
from tensortide.data.store import Store
from tensortide.errors import InputError, SolveError, TensortideWarning
from tensortide.methods.limits import check_first, check_no_memory, check_step
from tensortide.online.changes import Incoming, Rules, first_cells, next_cells
from tensortide.online.compose import loss_of, ties_for
from tensortide.online.dispersion import Dispersion
from tensortide.online.info import Info
from tensortide.online.plan import Ahead
from tensortide.online.surprise import Judged
from tensortide.validate import check_rank_for


class Model:
    """A CP model and everything that it needs to take the next step."""

    def __init__(
        self,
        recipe: Method,
        rules: Rules,
        modes: Modes,
        factors: Factors,
        store: Store | None,
        seen: DistinctCells,
        n_steps: int,
        grown_last: int,
        memory: Memory | None = None,
        dispersion: Dispersion | None = None,
    ) -> None:
        self.recipe = recipe
        self.rules = rules
        self.modes = modes
        self.factors = factors
        self.store = store
        self.seen = seen
        self.n_steps = n_steps
        self.grown_last = grown_last
        self.memory: Memory = memory or {}
        self.dispersion = dispersion or Dispersion()

    @classmethod
    def prepared(
        cls,
        recipe: Method,
        rules: Rules,
        modes: Modes,
        arrival: Arrival,
        rank: int,
        rng: np.random.Generator,
        effort: Effort,
        run: Run = serially,
        on_sweep: Callable[[int, float], None] | None = None,
    ) -> tuple[Model, Info]:
        """Make a model from first data, from random factors or from those given."""
        shape = arrival.new_shape
        first = first_cells(rules, arrival)
        change, cells = first.change, first.cells
        check_values(loss_of(recipe), cells.values)
        check_unit(loss_of(recipe), cells.values)
        known = modes.copy()
        if effort.given is not None:  # rows that are given can be held fixed
            known.append(arrival.fresh)
        fresh = arrival.fresh if effort.given is None else ((),) * len(shape)
        change = replace(change, ties=ties_for(recipe, known, fresh))
        check_rank_for(rank, len(cells.values))
        _check_given(recipe, modes, effort.given)
        check_first(recipe, modes, change)
        try:
            best = prepare(preparation(recipe), change, rank, rng, effort, run, on_sweep)
        except SolveError as error:
            raise _named(error, modes, arrival, (None,) * len(shape)) from None
        if loss_of(recipe).name not in ("bernoulli", "custom"):  # whose zero is no small value
            _judge_ridge(recipe.beta, best, cells)
        modes = modes.copy()
        modes.append(arrival.fresh)
        store = Store(change.entries) if recipe.keeps_history else None
        seen = DistinctCells()
        if store is None:
            seen = first.counted(seen, arrival, repeats=not recipe.limits.new_cells)
        factors = Factors(_revived(recipe, best.rows, rng) if effort.max_sweeps else best.rows)
        memory = begin(recipe, factors.rows(), change)
        fitted = loss_of(recipe).mean(_fitted(best.rows, first))
        spread = Dispersion.first(loss_of(recipe), cells.values, fitted)
        model = cls(recipe, rules, modes, factors, store, seen, 1, change.time, memory, spread)
        info = Info(
            step=1,
            entries=len(cells.values),
            learned_error=_left(cells.values, fitted),
            duplicates=cells.n_duplicates,
            grown=len(cells.values),
            filled=0,
            revised=0,
            unchanged=0,
            new_labels=dict(zip(modes.names, shape, strict=True)),
            objective=best.objective,
            strategy=best.strategy,
            sweeps=best.sweeps,
            converged=best.converged,
            rows_written=sum(shape),
        )
        return model, info

    @property
    def rank(self) -> int:
        """Number of components."""
        return self.factors.rank

    @property
    def n_entries(self) -> float:
        """Distinct entries seen: exact with history, else an estimate (`data.sketch`)."""
        if self.store is not None:
            return float(len(self.store))
        return min(self.seen.count(), math.prod(map(float, self.modes.shape)))

    def rows(self) -> list[Floats]:
        """Return views of all factors, for readers."""
        return self.factors.rows()

    def time(self, arrival: Arrival) -> int:
        """Return the mode that grows, or that grew last.

        Where slices fade by age, it stays the one that grew first.
        """
        growing = arrival.grown_mode()
        if isinstance(self.recipe, Recipe) and self.recipe.slice_decay < 1.0 and self.n_steps > 1:
            growing = None
        return self.grown_last if growing is None else growing

    def nothing(self) -> Info:
        """Return the report of a batch that changes nothing."""
        return Info(step=self.n_steps, entries=0, new_labels=dict.fromkeys(self.modes.names, 0))

    def plan(
        self, arrival: Arrival, retract: Positions | None = None, run: Run = serially
    ) -> Ahead | None:
        """Compute a step and write nothing; None where the batch changes nothing."""
        if not len(arrival.values) and retract is None and not any(map(len, arrival.fresh)):
            return None
        read = self.factors.rows_read
        incoming = next_cells(self, arrival, retract)
        check_values(loss_of(self.recipe), incoming.values)
        ties = ties_for(self.recipe, self.modes, arrival.fresh)
        change = replace(incoming.change, ties=ties)
        established = self.grown_last if self.n_steps > 1 else None
        check_step(self.recipe, self.modes, arrival, change, established)
        try:
            outcome = step(self.recipe, self.factors, change, self.memory, run)
        except SolveError as error:
            raise _named(error, self.modes, arrival, change.positions) from None
        seen = self.seen
        if incoming.absorbed is None:
            repeats = not self.recipe.limits.new_cells
            seen = incoming.counted(seen, arrival, repeats=repeats)
        store = None if incoming.absorbed is None else incoming.absorbed.store
        ahead = Ahead(
            arrival,
            retract,
            incoming,
            outcome,
            store,
            seen,
            self.time(arrival),
            self.n_steps + 1,
            self.factors.rows_read - read,
            self.dispersion,
            self.dispersion,
        )
        judged = Judged.of(incoming, outcome.predicted, loss_of(self.recipe), self.dispersion)
        spread = judged.experience()
        return replace(ahead, dispersion=spread)

    def judged(self, arrival: Arrival) -> Judged:
        """Return how a batch compares with what the model expects; nothing is learned."""
        read = self.factors.rows_read
        incoming = next_cells(self, arrival, None)
        loss = loss_of(self.recipe)
        check_values(loss, incoming.values)
        begun = begin_step(self.factors, incoming.change)
        self.factors.rows_read = read
        return Judged.of(incoming, begun.predicted, loss, self.dispersion)

    def adopt(self, ahead: Ahead) -> Info:
        """Take over a step that was planned on this very state: all of it or nothing."""
        arrival, outcome = ahead.arrival, ahead.outcome
        before = (self.store, self.seen, self.n_steps, self.grown_last, self.memory)
        spread = self.dispersion
        try:
            self.modes.append(arrival.fresh)
            commit(self.factors, outcome)
            self.store, self.seen = ahead.store, ahead.seen
            self.grown_last, self.memory = ahead.grown_last, outcome.memory
            self.n_steps, self.dispersion = ahead.step, ahead.dispersion
        except BaseException:
            undo(self.factors, outcome)
            self.modes.truncate(arrival.old_shape)
            self.store, self.seen, self.n_steps, self.grown_last, self.memory = before
            self.dispersion = spread
            raise
        return ahead.info(self.modes, loss_of(self.recipe))

    def with_rank(self, rank: int, rng: np.random.Generator) -> tuple[Model, float]:
        """Return the model with another rank and the share of its norm that was lost."""
        check_no_memory(self.recipe, self.memory, "another rank")
        lost = 0.0
        rows: Sequence[Floats] = self.rows()
        if rank > self.rank:
            rows = raise_rank(rows, rank, rng, positive=_positive(self.recipe))
        elif rank < self.rank:
            # the nearest model may have negative loadings: then the strongest components stay
            rows, lost = lower_rank(rows, rank, 0 if _positive(self.recipe) else 200)
        return self._with(Factors(rows), self.modes.copy(), self.store, self.seen), lost

    def without_rows(self, mode: int, keep: Flags) -> Model:
        """Return the model without some rows of a mode; positions close up."""
        if not keep.any():
            raise InputError(f"mode {self.modes.names[mode]!r} cannot lose all its labels.")
        by_row = set(self.memory) - {"past"}  # CP-stream's matrix has no rows of a mode
        if by_row and (mode != self.grown_last or self.n_steps == 1):
            check_no_memory(self.recipe, self.memory, "fewer labels of this mode")
        factors = Factors(
            [rows[keep] if m == mode else rows.copy() for m, rows in enumerate(self.rows())]
        )
        modes = self.modes.copy()
        modes.labels[mode] = modes.labels[mode].kept(keep)
        store = None if self.store is None else self.store.retire(mode, keep)
        return self._with(factors, modes, store, self.seen.shrunk(float(keep.mean())))

    def copy(self) -> Model:
        """Return an independent model; the store is shared, as it is never changed in place."""
        return self._with(self.factors.copy(), self.modes.copy(), self.store, self.seen)

    def _with(
        self, factors: Factors, modes: Modes, store: Store | None, seen: DistinctCells
    ) -> Model:
        return Model(
            self.recipe,
            self.rules,
            modes,
            factors,
            store,
            seen,
            self.n_steps,
            self.grown_last,
            self.memory,
            self.dispersion,
        )


def _check_given(recipe: Method, modes: Modes, given: Sequence[Floats] | None) -> None:
    """Refuse first factors that the loss or a constraint excludes."""
    for mode, rows in enumerate(given or ()):
        terms = recipe.terms if isinstance(recipe, Recipe) else ()
        if (rows < 0.0).any() and (loss_of(recipe).positive or (terms and terms[mode].nonnegative)):
            raise InputError(
                f"init has negative loadings in mode {modes.names[mode]!r}, which its loss or "
                "constraint excludes."
            )


def _positive(recipe: Method) -> bool:
    """Tell whether the factors of a method must not be negative."""
    terms = recipe.terms if isinstance(recipe, Recipe) else ()
    return loss_of(recipe).positive or any(t.nonnegative for t in terms)


def _revived(recipe: Method, rows: Sequence[Floats], rng: np.random.Generator) -> Sequence[Floats]:
    """Give components that first data could not feed another chance; penalties give none."""
    if isinstance(recipe, Recipe) and recipe.terms:
        return rows
    return revived(rows, rng, positive=_positive(recipe))


def _fitted(rows: Sequence[Floats], first: Incoming) -> Floats:
    """Return the model's values of first data after learning them."""
    arrived = first.change.arrived
    return box_values(rows) if isinstance(arrived, Complete) else values_at(rows, arrived)


def _left(values: Floats, fitted: Floats) -> float | None:
    """Return the relative error on first data after learning them."""
    size = math.sqrt(dot(values, values))
    gap = values - fitted
    return math.sqrt(dot(gap, gap)) / size if size > 0.0 else None


def _judge_ridge(beta: float, prepared: Prepared, cells: Cells) -> None:
    """Refuse values that the ridge has pressed to zero, and warn where it weighs a tenth."""
    size = float(cells.values @ cells.values)
    ridge = beta * sum(float(np.vdot(rows, rows)) for rows in prepared.rows)
    largest = f"{np.abs(cells.values).max():.2g}"
    advice = "scale the values up or pass a smaller beta."
    if size > 0.0 and prepared.is_zero(float(np.abs(cells.values).max())):
        raise InputError(
            f"the ridge beta={beta:g} outweighs values of at most {largest}, so the model is zero; "
            + advice
        )
    if ridge > 0.1 * size > 0.0:
        warnings.warn(
            f"the ridge beta={beta:g} weighs {ridge / size:.0%} of the values, which are {largest} "
            f"at most: the model is pulled to zero; {advice}",
            TensortideWarning,
            stacklevel=5,
        )


def _named(
    error: SolveError, modes: Modes, arrival: Arrival, positions: tuple[Positions | None, ...]
) -> SolveError:
    """Say which label a row stands for."""
    mode, labels = error.mode, modes.labels[error.mode]
    rows = positions[mode]
    position = error.position if rows is None else int(rows[error.position])
    known = len(labels)
    label: Any = (
        labels.label(position) if position < known else list(arrival.fresh[mode])[position - known]
    )
    return error.named(modes.names[mode], label)
