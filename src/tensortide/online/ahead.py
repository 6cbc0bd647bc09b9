"""What a model with learned priors expects: its timeline, its outlook, its memory of fibres."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Positions
from tensortide.core.objective.believed import invert
from tensortide.core.steps.beliefs import BLENDED, Beliefs
from tensortide.core.steps.change import Coming, News
from tensortide.core.steps.look_back import Past, find_period, look_back
from tensortide.core.steps.outlook import PLAIN
from tensortide.core.tensor.dense_box import told_cells
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.fibres import MEMORIES, Fibres
from tensortide.data.timeline import LONGEST, ORDERED, Timeline
from tensortide.online.memory import learn_all, placed

if TYPE_CHECKING:
    from tensortide.core.losses.standard import Loss
    from tensortide.core.steps.learn import Learning
    from tensortide.core.tensor.dense_box import AnyEntries
    from tensortide.data.arrival import Arrival
    from tensortide.data.modes import Modes
    from tensortide.online.changes import BatchChange
    from tensortide.online.model import Model


@dataclass(frozen=True, slots=True)
class Ahead:
    """The order of the labels that have an outlook, and what is remembered of fibres."""

    line: Timeline | None = None
    fibres: Fibres | None = None

    def copy(self) -> Ahead:
        """Return an independent copy."""
        return Ahead(self.line, None if self.fibres is None else self.fibres.copy())


def first_ahead(
    learning: Learning,
    factors: Factors,
    change: BatchChange,
    modes: Modes,
    mode: int | None,
    *,
    fibres: bool,
    loss: Loss,
    zeros: Fibres | None = None,
) -> tuple[Beliefs, Ahead]:
    """Return what the preparation tells about what is to come along a mode, if any.

    `zeros` are fibres that have seen zeros alone before these data.
    """
    rank, none = factors.rank, np.zeros((0, 0))
    beliefs = Beliefs(
        noise=learning.noise, cells=learning.n_cells, size=learning.size, spread=none,
        timeline=-1, grown=0, unit=1, monthly=False, periods=(), ahead=none, known=none,
        blend=np.zeros((0, BLENDED, BLENDED)), drift=np.zeros((rank, rank)), n_drift=0.0,
    )  # fmt: skip
    beliefs = begun_anew(beliefs, factors)
    if mode is None:
        return beliefs, Ahead()
    return _look_along(
        beliefs, factors, modes, mode, change.entries, fibres=fibres, loss=loss,
        absent_zero=change.absent_zero, zeros=zeros,
    )  # fmt: skip


def _look_along(
    beliefs: Beliefs,
    factors: Factors,
    modes: Modes,
    mode: int,
    entries: AnyEntries,
    *,
    fibres: bool,
    loss: Loss,
    absent_zero: bool,
    zeros: Fibres | None = None,
) -> tuple[Beliefs, Ahead]:
    """Return beliefs that know how the outlook along a mode would have done on entries."""
    line = _with_found_period(Timeline.first(mode, modes.labels[mode]), factors)
    beliefs = _along(beliefs, line, fibres=fibres)
    cells, values = told_cells(entries)
    recalled, memory = np.empty((len(values), 0)), None
    if fibres:
        memory = Fibres.none(mode, modes.order)
        if zeros is not None and zeros.mode == mode:
            memory = zeros.copy()
        recalled = learn_all(memory, line, modes, factors.rows(), cells, values)
    past = Past(mode=mode, positions=line.places, before=line.before(line.numbers))
    beliefs = look_back(
        beliefs, factors, past, cells, values, recalled, loss, absent_zero=absent_zero
    )
    return beliefs, Ahead(line, memory)


def begun_anew(beliefs: Beliefs, factors: Factors) -> Beliefs:
    """Return the beliefs of a model whose rows were replaced: of another rank, or fewer."""
    spread = np.zeros((len(factors.shape), factors.width))
    for mode, told in enumerate(factors.precisions()):
        spread[mode] = invert(np.ascontiguousarray(told), factors.rank, mode)[0].sum(axis=0)
    if len(beliefs.drift) == factors.rank:
        return replace(beliefs, spread=spread)
    drift = np.zeros((factors.rank, factors.rank))
    return replace(beliefs, spread=spread, drift=drift, n_drift=0.0)


def _along(beliefs: Beliefs, line: Timeline, *, fibres: bool) -> Beliefs:
    """Return beliefs that know nothing yet about an outlook along a timeline."""
    n_memories = MEMORIES if fibres else 0
    n = PLAIN + len(line.periods) + n_memories
    known = 2 + n_memories if fibres else 0
    rank = len(beliefs.drift)
    return replace(
        beliefs, timeline=line.mode, grown=0, unit=line.unit, monthly=line.monthly,
        periods=line.periods, ahead=np.zeros((n, n)), known=np.zeros((known, known)),
        blend=np.zeros((2 if fibres else 0, BLENDED, BLENDED)),
        drift=np.zeros((rank, rank)), n_drift=0.0,
    )  # fmt: skip


def _with_found_period(line: Timeline, factors: Factors) -> Timeline:
    """Add the season that the rows themselves show, if the labels do not suggest it."""
    found = find_period(factors.rows()[line.mode][line.places], factors.beside(line.mode))
    if found is None or found in line.periods or found > LONGEST:
        return line
    return replace(line, periods=(*line.periods, found))


def restored(beliefs: Beliefs, modes: Modes, fibres: Fibres | None) -> Ahead:
    """Return the timeline as the labels have it, for a model that was read from a file."""
    if beliefs.timeline < 0:
        return Ahead()
    line = Timeline.of(
        beliefs.timeline, modes.labels[beliefs.timeline], unit=beliefs.unit,
        monthly=beliefs.monthly, periods=beliefs.periods,
    )  # fmt: skip
    return Ahead(line, fibres)


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What is expected of a batch: the change with its news, beliefs, and what comes after.

    `cells` and `numbers` are where the batch's cells stand in the tensor, and their labels on the
    line, for fibres.
    """

    change: BatchChange
    beliefs: Beliefs
    line: Timeline | None = None
    fibres: Fibres | None = None
    cells: Positions = field(default_factory=lambda: np.empty((0, 0), np.int64))
    numbers: Positions = field(default_factory=lambda: np.empty(0, np.int64))


def look_at(model: Model, change: BatchChange, arrival: Arrival) -> Next:
    """Return the change with what the model's outlook and memory need."""
    beliefs, ahead = Beliefs.of_memory(model.memory), model.ahead
    line, fibres = ahead.line, ahead.fibres
    if line is None:
        return Next(change=change, beliefs=beliefs)
    other = _other_mode(model, arrival, line, beliefs)
    if other is not None:  # the mode that was taken for time does not grow, another does
        beliefs, line, fibres = _turn(model, beliefs, other, fibres=fibres is not None)
    mode, fresh = line.mode, arrival.fresh[line.mode]
    old = arrival.old_shape[mode]
    known_line, line = line, line.after(fresh, old)
    numbers = line.number(fresh) if len(fresh) else np.empty(0, np.int64)
    rank = np.argsort(numbers, kind="stable")
    touched = change.positions[mode]
    first = old if touched is None else change.n_upper(mode)
    known, beside = np.empty(0, np.int64), line.before(np.empty(0, np.int64))
    recalled, plain = np.empty((len(change.values), 0)), np.empty((len(change.values), 0))
    cells = at = np.empty(0, np.int64)
    if fibres is not None:
        cells = change.places(np.arange(len(change.values)))
        at, late = placed(known_line, model.modes, cells, arrival)
        recalled, plain = fibres.recall(cells, at, late)
        seen = np.unique(cells[:, mode])
        seen = seen[seen < old]
        known = seen if touched is None else np.searchsorted(touched, seen)
        labels = [model.modes.labels[mode].label(int(p)) for p in seen]
        beside = line.before(line.number(labels) if labels else np.empty(0, np.int64))
    lined = np.empty(0, np.int64)
    if model.method.keeps_history:
        lined = np.flatnonzero(line.before(line.numbers).recent[:, 1] >= 0)
    coming = Coming(
        mode=mode, fresh=first + rank, neighbours=line.before(numbers[rank]), known=known,
        beside=beside, line=line.places[lined], along=line.before(line.numbers[lined]),
    )  # fmt: skip
    news = News(
        values=change.values, weights=change.cells.weights, live=change.live(),
        recalled=recalled, plain=plain,
    )  # fmt: skip
    return Next(
        change=replace(change, coming=coming, news=news), beliefs=beliefs, line=line, fibres=fibres,
        cells=cells, numbers=at,
    )  # fmt: skip


def seen_along(model: Model, mode: int) -> tuple[Beliefs, Timeline, Fibres | None]:
    """Return what a step would know of a mode, should it be the one that grows."""
    beliefs, line, fibres = Beliefs.of_memory(model.memory), model.ahead.line, model.ahead.fibres
    if line is None or line.mode != mode:
        return _turn(model, beliefs, mode, fibres=fibres is not None)
    return beliefs, line, fibres


def counted_anew(model: Model, told: Timeline) -> Timeline:
    """Return the timeline as all labels suggest it: the first ones may have been too few."""
    line = _with_found_period(
        Timeline.first(told.mode, model.modes.labels[told.mode]), model.factors
    )
    if (line.unit, line.monthly) != (told.unit, told.monthly):
        return line
    more = [period for period in told.periods if period not in line.periods]
    return replace(line, periods=(*line.periods, *more))


def _turn(
    model: Model, beliefs: Beliefs, mode: int, *, fibres: bool
) -> tuple[Beliefs, Timeline, Fibres | None]:
    """Look along another mode; without history the outlook and the memory begin anew."""
    if model.store is not None:
        entries = model.store.entries
        beliefs, ahead = _look_along(
            beliefs, model.factors, model.modes, mode, entries, fibres=fibres,
            loss=model.method.loss, absent_zero=model.rules.absent_zero,
        )  # fmt: skip
        assert ahead.line is not None
        return beliefs, ahead.line, ahead.fibres
    line = Timeline.first(mode, model.modes.labels[mode])
    memory = Fibres.none(mode, model.modes.order) if fibres else None
    return _along(beliefs, line, fibres=fibres), line, memory


def _other_mode(model: Model, arrival: Arrival, line: Timeline, beliefs: Beliefs) -> int | None:
    grown = [m for m in arrival.grown_modes() if model.modes.labels[m].kind in ORDERED]
    if beliefs.grown or not grown or line.mode in grown:
        return None
    return grown[-1]
