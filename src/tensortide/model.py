"""The model that evolves: factors, labels, and (for methods that keep it) the history.

`advance` is all or nothing: it computes everything first, then writes, and takes the
writing back if anything, also an interrupt, comes between.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensortide.abilities import check_first, check_no_memory, check_step
from tensortide.core.change import Change
from tensortide.core.complete import AnyEntries, Complete
from tensortide.core.factors import Factors
from tensortide.core.flows import begin, preparation, step
from tensortide.core.outcome import Outcome, commit, undo
from tensortide.core.prepare import Effort, Prepared, prepare
from tensortide.core.rank import lower_rank, raise_rank
from tensortide.core.recipe import Memory, Method
from tensortide.core.sorting import count_outside
from tensortide.core.types import Flags, Floats, Positions
from tensortide.core.updates import Run, serially
from tensortide.data.cells import Cells, compact, distinct_cells
from tensortide.data.modes import Arrival, Modes
from tensortide.data.sketch import DistinctCells
from tensortide.data.store import Absorbed, Store
from tensortide.errors import InputError, SolveError, TensortideWarning
from tensortide.info import Info
from tensortide.validate import check_rank_for


@dataclass(frozen=True, slots=True)
class Rules:
    """What records mean: absent cells, duplicates in a batch, records for known cells."""

    absent_zero: bool = False
    duplicates: str = "last"
    add: bool = False


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
        block, cells = arrival.block, _distinct(arrival, rules)
        check_rank_for(rank, len(cells.values))
        if block is None and cells.fill(math.prod(shape)):
            block = Complete(cells.values.reshape(shape))
        change = Change(
            (0,) * len(shape),
            shape,
            cells.entries() if block is None else block,
            (None,) * len(shape),
            cells.coords if block is None else block,
            0,
            0,
            int(np.argmax(shape)),
            rules.absent_zero,
            block is not None,
        )
        check_first(recipe, modes, change)
        try:
            best = prepare(preparation(recipe), change, rank, rng, effort, run, on_sweep)
        except SolveError as error:
            raise _named(error, modes, arrival, (None,) * len(shape)) from None
        _judge_ridge(recipe.beta, best, cells)
        modes = modes.copy()
        modes.append(arrival.fresh)
        store = Store(change.entries) if recipe.keeps_history else None
        n_cells = len(cells.values)
        seen = DistinctCells().after(_hashed(recipe, arrival), n_cells, n_cells)
        factors = Factors(best.rows)
        memory = begin(recipe, factors.rows(), change)
        model = cls(recipe, rules, modes, factors, store, seen, 1, change.time, memory)
        info = Info(
            step=1,
            entries=len(cells.values),
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

    def cells_of(self, arrival: Arrival) -> Cells:
        """Return the distinct cells of an arrival, combined by the rule of the model."""
        return distinct_cells(
            arrival.coords.astype(np.int32),
            arrival.values,
            arrival.weights,
            arrival.new_shape,
            self.rules.duplicates,
        )

    def advance(
        self, arrival: Arrival, retract: Positions | None = None, run: Run = serially
    ) -> Info:
        """Take one step: all of it, or nothing and an error."""
        if not len(arrival.values) and retract is None and not any(map(len, arrival.fresh)):
            return Info(step=self.n_steps, entries=0, new_labels=dict.fromkeys(self.modes.names, 0))
        before = (self.factors.rows_read, self.factors.rows_written)
        change, cells, absorbed, n_grown = self._change(arrival, retract)
        established = self.grown_last if self.n_steps > 1 else None
        check_step(self.recipe, self.modes, arrival, change, established)
        try:
            outcome = step(self.recipe, self.factors, change, self.memory, run)
        except SolveError as error:
            raise _named(error, self.modes, arrival, change.positions) from None
        seen = self.seen
        if absorbed is None:
            seen = seen.after(_hashed(self.recipe, arrival), n_grown, len(cells.values))
        store = None if absorbed is None else absorbed.store
        self._adopt(arrival, outcome, store, seen)
        return self._info(
            arrival,
            outcome,
            cells,
            absorbed,
            n_grown,
            before,
            0 if retract is None else len(np.unique(retract, axis=0)),
        )

    def _change(
        self, arrival: Arrival, retract: Positions | None
    ) -> tuple[Change, Cells, Absorbed | None, int]:
        old, new = arrival.old_shape, arrival.new_shape
        time, reads = self._time(arrival), self.recipe.rows_needed
        absorbed: Absorbed | None = None
        positions: tuple[Positions | None, ...] = (None,) * len(new)
        limits = np.array(old)
        if arrival.block is not None:
            cells = Cells.of_block(arrival.block)
            if reads != "all":
                positions = tuple(
                    np.arange(old[m] if m == time else 0, n) for m, n in enumerate(new)
                )
        elif reads == "all":
            cells = self.cells_of(arrival)
        else:
            whole_but = time if reads == "slices" else None
            touched, local = compact(arrival.coords, old, new, whole_but=whole_but)
            positions = touched
            sizes = tuple(len(rows) for rows in touched)
            rule = self.rules.duplicates
            cells = distinct_cells(local, arrival.values, arrival.weights, sizes, rule)
            limits = np.array([r.searchsorted(s) for r, s in zip(touched, old, strict=True)])
        n_grown = len(cells.values)
        if arrival.block is None:
            n_grown = count_outside(cells.coords, limits)
        complete = n_grown == len(cells.values) and cells.fill(math.prod(new) - math.prod(old))
        block = arrival.block
        if block is None and complete and arrival.grown_modes() == [time]:
            box = [n - o if m == time else n for m, (o, n) in enumerate(zip(old, new, strict=True))]
            block = Complete(cells.values.reshape(box))
        entries: AnyEntries
        if self.store is not None:
            absorbed = self._absorbed(self.store, arrival, cells, block, retract, time)
            entries, n_grown = absorbed.store.entries, int(absorbed.grown.sum())
        else:
            entries = cells.entries() if block is None else block
        change = Change(
            old,
            new,
            entries,
            positions,
            cells.coords if block is None else block,
            self.n_entries,
            self.n_steps,
            time,
            self.rules.absent_zero,
            complete,
        )
        return change, cells, absorbed, n_grown

    def _time(self, arrival: Arrival) -> int:
        """Return the mode that grows, or that grew last."""
        growing = arrival.grown_mode()
        return self.grown_last if growing is None else growing

    def _absorbed(
        self,
        store: Store,
        arrival: Arrival,
        cells: Cells,
        block: Complete | None,
        retract: Positions | None,
        time: int,
    ) -> Absorbed:
        """Return the history with the batch, less what is retracted."""
        decay = self.recipe.forgetting
        whole = isinstance(store.entries, Complete) and retract is None and decay == 1.0
        if block is not None and whole:
            return store.append(block, time)
        if retract is not None:
            store = self._without(store, retract)
        if arrival.block is not None:
            cells = self.cells_of(arrival)
        return store.absorb(cells, add=self.rules.add, decay=decay)

    def _without(self, store: Store, retract: Positions) -> Store:
        cells = retract.astype(np.int32)
        unknown = store.unknown(cells)
        if len(unknown):
            labels = (
                f"{name} {known.label(int(position))!r}"
                for name, known, position in zip(
                    self.modes.names, self.modes.labels, unknown[0], strict=True
                )
            )
            raise InputError(
                f"the cell {', '.join(labels)} cannot be retracted: no value of it is known."
            )
        return store.without(cells)

    def _adopt(
        self, arrival: Arrival, outcome: Outcome, store: Store | None, seen: DistinctCells
    ) -> None:
        before = (self.store, self.seen, self.n_steps, self.grown_last, self.memory)
        try:
            self.modes.append(arrival.fresh)
            commit(self.factors, outcome)
            self.store, self.seen = store, seen
            self.grown_last, self.memory = self._time(arrival), outcome.memory
            self.n_steps += 1
        except BaseException:
            undo(self.factors, outcome)
            self.modes.truncate(arrival.old_shape)
            self.store, self.seen, self.n_steps, self.grown_last, self.memory = before
            raise

    def _info(
        self,
        arrival: Arrival,
        outcome: Outcome,
        cells: Cells,
        absorbed: Absorbed | None,
        n_grown: int,
        before: tuple[int, int],
        retracted: int,
    ) -> Info:
        with np.errstate(over="ignore", invalid="ignore"):
            gap = cells.values - outcome.predicted
            size, error = (math.sqrt(v @ v) for v in (cells.values, gap))
        filled = revised = unchanged = None
        if absorbed is not None:
            filled, revised, unchanged = (
                int(kind.sum()) for kind in (absorbed.filled, absorbed.revised, absorbed.unchanged)
            )
        return Info(
            step=self.n_steps,
            entries=len(cells.values),
            duplicates=cells.n_duplicates,
            grown=n_grown,
            in_old_box=len(cells.values) - n_grown,
            retracted=retracted,
            new_labels={n: len(f) for n, f in zip(self.modes.names, arrival.fresh, strict=True)},
            prequential_error=error / size if size > 0.0 else None,
            norm=size,
            objective=outcome.objective,
            alpha=outcome.alpha,
            strategy=outcome.strategy,
            sweeps=outcome.sweeps,
            rows_read=self.factors.rows_read - before[0],
            rows_written=self.factors.rows_written - before[1],
            largest_move=outcome.largest_move,
            filled=filled,
            revised=revised,
            unchanged=unchanged,
        )

    def with_rank(self, rank: int, rng: np.random.Generator) -> tuple[Model, float]:
        """Return the model with another rank and the share of its norm that was lost."""
        check_no_memory(self.recipe, self.memory, "another rank")
        lost = 0.0
        rows: Sequence[Floats] = self.rows()
        if rank > self.rank:
            rows = raise_rank(rows, rank, rng)
        elif rank < self.rank:
            rows, lost = lower_rank(rows, rank)
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
        )


def _distinct(arrival: Arrival, rules: Rules) -> Cells:
    """Return the distinct cells of first data."""
    if arrival.block is not None:
        return Cells.of_block(arrival.block)
    return distinct_cells(
        arrival.coords.astype(np.int32),
        arrival.values,
        arrival.weights,
        arrival.new_shape,
        rules.duplicates,
    )


def _hashed(recipe: Method, arrival: Arrival) -> Positions | None:
    """Return the cells to count, unless the method never takes a cell twice."""
    return None if recipe.limits.new_cells else arrival.coords


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
