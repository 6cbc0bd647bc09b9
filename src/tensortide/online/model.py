"""The model that evolves: factors, labels, and (for methods that keep it) the history.

`plan` computes a step and writes nothing; `adopt` takes it over, all or nothing: the writing is
taken back if anything, also an interrupt, comes between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.losses.standard import check_loss_values, check_unit
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.believe import expect
from tensortide.core.steps.flows import preparation, step
from tensortide.core.steps.method import Memory, Method, Recipe
from tensortide.core.steps.outcome import begin_step, commit, undo
from tensortide.core.steps.prepare import Effort, Prepared, prepare, stays_zero
from tensortide.core.steps.rank import carry_precisions, extend_precisions, lower_rank, raise_rank
from tensortide.core.tensor.dense_box import DenseBox, box_values
from tensortide.core.tensor.factors import Factors, values_at
from tensortide.core.tensor.packed import unpack
from tensortide.core.updates.exact import Run, serially
from tensortide.data.arrival import Arrival
from tensortide.data.cells import Cells
from tensortide.data.modes import Modes
from tensortide.data.sketch import DistinctCells
from tensortide.data.store import Store
from tensortide.data.timeline import ordered_mode
from tensortide.errors import InputError, SolveError, warn_user
from tensortide.methods.limits import check_first, check_no_memory, check_step
from tensortide.online.ahead import Ahead, begun_anew, look_at, restored
from tensortide.online.changes import BatchChange, Rules, first_change, next_change
from tensortide.online.compose import ties_for
from tensortide.online.dispersion import Dispersion
from tensortide.online.first import First, begin_again, is_positive
from tensortide.online.info import Info
from tensortide.online.memory import learn_fibres, with_memory, without_labels
from tensortide.online.plan import Plan, learned_values, report_step
from tensortide.online.score import norm, share_missed
from tensortide.online.surprise import Judged
from tensortide.validate import check_rank_for


@dataclass(kw_only=True, eq=False, repr=False)
class Model:
    """A CP model and everything that it needs to take the next step."""

    method: Method
    rules: Rules
    modes: Modes
    factors: Factors
    store: Store | None
    seen: DistinctCells
    n_steps: int
    grown_last: int
    memory: Memory = field(default_factory=dict)
    dispersion: Dispersion = field(default_factory=Dispersion)
    ahead: Ahead = field(default_factory=Ahead)

    @classmethod
    def from_first_data(
        cls,
        method: Method,
        rules: Rules,
        modes: Modes,
        arrival: Arrival,
        *,
        rank: int,
        rng: np.random.Generator,
        effort: Effort,
        fibres: bool = False,
        run: Run = serially,
        on_sweep: Callable[[int, float], None] | None = None,
    ) -> tuple[Model, Info]:
        """Make a model from first data, from random factors or from those given."""
        shape = arrival.new_shape
        change = first_change(rules, arrival)
        cells, loss = change.cells, method.loss
        check_loss_values(loss, cells.values)
        check_unit(loss, cells.values)
        known = modes.copy()
        if effort.given is not None:  # rows that are given can be held fixed
            known.append(arrival.fresh)
        fresh = arrival.fresh if effort.given is None else ((),) * len(shape)
        change = replace(change, ties=ties_for(method, known, fresh))
        check_rank_for(rank, len(cells.values))
        _check_given(method, modes, effort.given)
        check_first(method, modes, change)
        named = modes.copy()
        named.append(arrival.fresh)
        try:
            best = prepare(preparation(method), change, rank, rng, effort, run, on_sweep)
        except SolveError as error:
            raise _name_label(error, modes, arrival, (None,) * len(shape)) from None
        first = First.of(
            best, method, change, named, ordered_mode(named.labels, arrival.listed),
            rng=rng if effort.max_sweeps else None, fibres=fibres,
        )  # fmt: skip
        if best.learning is None and loss.name not in ("bernoulli", "custom"):
            # whose zero is no small value
            _judge_ridge(best, cells)
        store = Store(change.entries) if method.keeps_history else None
        seen = DistinctCells()
        if store is None:
            seen = change.count(seen, arrival, repeats=not method.limits.new_cells)
        fitted = loss.mean(_first_values(best.rows, change))
        model = cls(
            method=method, rules=rules, modes=named, factors=first.factors, store=store,
            seen=seen, n_steps=1, grown_last=change.time, memory=first.memory,
            dispersion=Dispersion.first(loss, cells.values, fitted), ahead=first.ahead,
        )  # fmt: skip
        info = Info(
            step=1, entries=len(cells.values),
            learned_error=share_missed(norm(cells.values - fitted), norm(cells.values)),
            duplicates=cells.n_duplicates, grown=len(cells.values), filled=0, revised=0,
            unchanged=0, new_labels=dict(zip(modes.names, shape, strict=True)),
            objective=best.objective, strategy=best.strategy, sweeps=best.sweeps,
            converged=best.converged, rows_written=sum(shape),
        )  # fmt: skip
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
        if self.method.slice_decay < 1.0 and self.n_steps > 1:
            growing = None
        return self.grown_last if growing is None else growing

    def nothing(self) -> Info:
        """Return the report of a batch that changes nothing."""
        return Info(step=self.n_steps, entries=0, new_labels=dict.fromkeys(self.modes.names, 0))

    def plan(
        self, arrival: Arrival, retract: Positions | None = None, run: Run = serially
    ) -> Plan | None:
        """Compute a step, its report included, and write nothing; None where nothing changes."""
        if not len(arrival.values) and retract is None and not any(map(len, arrival.fresh)):
            return None
        read = self.factors.rows_read
        change = next_change(self, arrival, retract)
        check_loss_values(self.method.loss, change.values)
        if ties := ties_for(self.method, self.modes, arrival.fresh):
            change = replace(change, ties=ties)
        established = self.grown_last if self.n_steps > 1 else None
        check_step(self.method, self.modes, arrival, change, established)
        memory, expected = self.memory, None
        if self.learned and not change.first_news:
            expected = look_at(self, change, arrival)
            change, memory = expected.change, expected.beliefs.as_memory()
        try:
            if change.first_news:
                expected, outcome = begin_again(self, change, arrival, run)
            else:
                outcome = step(self.method, self.factors, change, memory, run)
        except SolveError as error:
            raise _name_label(error, self.modes, arrival, change.positions) from None
        seen, store = self.seen, None
        if change.absorbed is None:
            seen = change.count(seen, arrival, repeats=not self.method.limits.new_cells)
        else:
            store = change.absorbed.store
        judged = Judged.of(change, outcome.predicted, self.method.loss, self.dispersion)
        learned = learned_values(change, outcome)
        info = report_step(
            self.n_steps + 1, judged, outcome, arrival, self.modes, learned, retract=retract,
            rows_read=self.factors.rows_read - read,
        )  # fmt: skip
        line = fibres = None
        if expected is not None:
            line = expected.line
            fibres = learn_fibres(expected, arrival, self.modes, learned, outcome.rows, retract)
        return Plan(
            arrival=arrival, retract=retract, change=change, outcome=outcome, store=store,
            seen=seen, grown_last=self.time(arrival), step=self.n_steps + 1,
            dispersion=judged.experience(), info=info, line=line,
            memory_of_fibres=None if expected is None else expected.fibres, fibres=fibres,
        )  # fmt: skip

    @property
    def learned(self) -> bool:
        """Whether rows have learned priors."""
        return self.factors.width > 0

    @property
    def blank(self) -> bool:
        """Whether all values so far were zero, so that nothing is known of what is to come."""
        loss = self.method.loss
        starts = self.learned and (loss.positive or stays_zero(loss))
        return starts and Beliefs.of_memory(self.memory).blank

    def predict(self, positions: Positions | Places) -> Floats:
        """Return the model's values at known positions, with what fibres remember."""
        values = values_at(self.rows(), positions)
        if self.ahead.fibres is None:
            return values
        return with_memory(self, positions, values)

    def judge(self, arrival: Arrival) -> Judged:
        """Return how a batch compares with what the model expects; nothing is learned."""
        read = self.factors.rows_read
        change = next_change(self, arrival, None)
        loss = self.method.loss
        check_loss_values(loss, change.values)
        if isinstance(self.method, Recipe) and self.learned:
            seen = look_at(self, change, arrival)
            predicted = expect(self.method, self.factors, seen.change, seen.beliefs)
        else:
            predicted = begin_step(self.factors, change).predicted
        self.factors.rows_read = read
        return Judged.of(change, predicted, loss, self.dispersion)

    def adopt(self, plan: Plan, info: Info) -> Info:
        """Take over a step that was planned on this very state, all of it or nothing.

        It only writes, and the return of the report is part of it: an interrupt there takes the
        step back too.
        """
        before = (self.store, self.seen, self.n_steps, self.grown_last, self.memory)
        spread, ahead, fibres = self.dispersion, self.ahead, plan.memory_of_fibres
        size = 0 if fibres is None else fibres.size
        try:
            self.modes.append(plan.arrival.fresh)
            commit(self.factors, plan.outcome)
            self.store, self.seen = plan.store, plan.seen
            self.grown_last, self.memory = plan.grown_last, plan.outcome.memory
            self.n_steps, self.dispersion = plan.step, plan.dispersion
            self.ahead = Ahead(plan.line, fibres)
            if plan.fibres is not None and fibres is not None:
                fibres.put(plan.fibres)
            return info
        except BaseException:
            if plan.fibres is not None and fibres is not None:
                fibres.take_back(plan.fibres, size)
            self.ahead = ahead
            undo(self.factors, plan.outcome)
            self.modes.truncate(plan.arrival.old_shape)
            self.store, self.seen, self.n_steps, self.grown_last, self.memory = before
            self.dispersion = spread
            raise

    def with_rank(self, rank: int, rng: np.random.Generator) -> tuple[Model, float]:
        """Return the model with another rank and the share of its norm that was lost."""
        if not self.learned:
            check_no_memory(self.method, self.memory, "another rank")
        lost = 0.0
        rows: Sequence[Floats] = self.rows()
        if rank > self.rank:
            # old labels of the ordered mode have nothing of what is new
            at = 0 if self.ahead.line is None else self.ahead.line.mode
            rows = raise_rank(rows, rank, rng, positive=is_positive(self.method), at=at)
        elif rank < self.rank:
            # the nearest model may have negative loadings: then the strongest components stay
            rows, lost = lower_rank(rows, rank, 0 if is_positive(self.method) else 200)
        if not self.learned:
            return replace(self, factors=Factors(rows), modes=self.modes.copy()), lost
        beliefs = Beliefs.of_memory(self.memory)
        told = self.factors.precisions()
        if rank > self.rank:
            known = [unpack(one, self.rank) for one in told]
            told = extend_precisions(known, rows, beliefs.noise)
        elif rank < self.rank:
            told = carry_precisions(told, self.rows(), rows, beliefs.noise)
        return self._with_rows(Factors(rows, precisions=told), self.modes.copy(), self.ahead), lost

    def _with_rows(self, factors: Factors, modes: Modes, ahead: Ahead) -> Model:
        """Return the model with other rows that have learned priors."""
        beliefs = begun_anew(Beliefs.of_memory(self.memory), factors)
        return replace(
            self, factors=factors, modes=modes, memory=beliefs.as_memory(),
            ahead=restored(beliefs, modes, None if ahead.fibres is None else ahead.fibres.copy()),
        )  # fmt: skip

    def without_rows(self, mode: int, keep: Flags) -> Model:
        """Return the model without some rows of a mode; positions close up."""
        if not keep.any():
            raise InputError(f"mode {self.modes.names[mode]!r} cannot lose all its labels.")
        by_row = set(self.memory) - {"past"}  # CP-stream's matrix has no rows of a mode
        if self.learned:
            by_row = set()
        if by_row and (mode != self.grown_last or self.n_steps == 1):
            check_no_memory(self.method, self.memory, "fewer labels of this mode")
        rows, told = (
            [one[keep] if m == mode else one.copy() for m, one in enumerate(held)]
            for held in (self.rows(), self.factors.precisions())
        )
        factors = Factors(rows, precisions=told)
        modes = self.modes.copy()
        modes.labels[mode] = modes.labels[mode].kept(keep)
        store = None if self.store is None else self.store.retire(mode, keep)
        seen = self.seen.shrunk(float(keep.mean()))
        kept = replace(self, factors=factors, modes=modes, store=store, seen=seen)
        if not self.learned:
            return kept
        entries = None if store is None else store.entries
        fibres = without_labels(self, mode, keep, modes, rows, entries)
        fewer = Ahead(None, fibres)
        return kept._with_rows(factors, modes, fewer)

    def copy(self) -> Model:
        """Return an independent model; the store is shared, as it is never changed in place."""
        return replace(
            self, factors=self.factors.copy(), modes=self.modes.copy(), ahead=self.ahead.copy()
        )


def _check_given(method: Method, modes: Modes, given: Sequence[Floats] | None) -> None:
    """Refuse first factors that the loss or a constraint excludes."""
    for mode, rows in enumerate(given or ()):
        held = method.terms and method.terms[mode].nonnegative
        if (rows < 0.0).any() and (method.loss.positive or held):
            raise InputError(
                f"init has negative loadings in mode {modes.names[mode]!r}, which its loss or "
                "constraint excludes."
            )


def _first_values(rows: Sequence[Floats], change: BatchChange) -> Floats:
    """Return the model's values of first data after learning them."""
    arrived = change.arrived
    return box_values(rows) if isinstance(arrived, DenseBox) else values_at(rows, arrived)


def _judge_ridge(prepared: Prepared, cells: Cells) -> None:
    """Refuse values that the ridge has pressed to zero, and warn where it weighs a tenth."""
    beta, size = prepared.ridge, float(cells.values @ cells.values)
    ridge = beta * sum(float(np.vdot(rows, rows)) for rows in prepared.rows)
    largest = f"{np.abs(cells.values).max():.2g}"
    advice = "scale the values up or pass a smaller beta."
    if size > 0.0 and prepared.is_zero(float(np.abs(cells.values).max())):
        raise InputError(
            f"the ridge beta={beta:g} outweighs values of at most {largest}, so the model is zero; "
            + advice
        )
    if ridge > 0.1 * size > 0.0:
        warn_user(
            f"the ridge beta={beta:g} weighs {ridge / size:.0%} of the values, which are {largest} "
            f"at most: the model is pulled to zero; {advice}"
        )


def _name_label(
    error: SolveError, modes: Modes, arrival: Arrival, positions: tuple[Positions | None, ...]
) -> SolveError:
    """Say which label a row stands for."""
    rows = positions[error.mode]
    position = error.position if rows is None else int(rows[error.position])
    return error.named(modes.names[error.mode], modes.label(error.mode, position, arrival))
