"""The step of rows with learned priors: economy, and with all entries.

Economy: each row remembers its precision T, so ``(P + T) a = q + T a_old``, then
``T <- .95 T + P`` for rows that have entries.  With history: a sweep with the priors of the modes,
``(P + s2 S^-1) a = q + s2 S^-1 m``.  Rows of new labels begin at their prior: the mean row of the
mode with its scatter, or the outlook with the scatter of what it missed before, and keep it while
they are learned.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.kernels.moments import add_parts
from tensortide.core.losses.standard import Squared
from tensortide.core.objective.believed import Believed, RowPriors, invert
from tensortide.core.objective.data_terms import DataTerms, imputed
from tensortide.core.objective.squares import BoxTerm, Listed
from tensortide.core.objective.towards import Towards
from tensortide.core.steps.beliefs import FEWEST, Beliefs
from tensortide.core.steps.believed_loss import AnyBelieved, BelievedLoss, believed_goal, update
from tensortide.core.steps.change import Change, Coming
from tensortide.core.steps.expect import Expectation
from tensortide.core.steps.goal import (
    anchor_scale,
    by_components,
    circumstances,
    make_positive,
    nonnegative_modes,
)
from tensortide.core.steps.hyper import faintest, mode_precisions, precision
from tensortide.core.steps.known_cells import only_known, only_known_entries
from tensortide.core.steps.method import Recipe
from tensortide.core.steps.missed import Misses
from tensortide.core.steps.mode_priors import ModePriors
from tensortide.core.steps.outcome import Outcome, finish_step, load_rows, predict_arrived
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.packed import unpack
from tensortide.core.tensor.workspace import Block
from tensortide.core.updates.exact import Run, serially
from tensortide.errors import SolveError
from tensortide.validate import check_number

KEPT = 0.95  # share of a row's precision that outlasts a step with entries of it
FASTEST = 0.05  # share of the noise that one batch replaces at most
STARTS = 5  # times that new rows are solved under a loss of which one parabola is not enough


class BelievedStep:
    """One step on its way: rows, how sure they are, and what was expected of the batch."""

    def __init__(
        self, recipe: Recipe, factors: Factors, change: Change, beliefs: Beliefs, run: Run
    ) -> None:
        self.recipe, self.factors, self.change = recipe, factors, change
        self.beliefs, self.run = beliefs, run
        self.begun = load_rows(factors, change)
        work = self.work = self.begun.work
        self.before = factors.load_precisions(change.positions, work)
        self.told = self.before.copy()
        self.outside = beliefs.spread.copy()
        grams = factors.grams
        self.priors = mode_precisions(
            grams.matrices(), grams.sums, change.old_shape, beliefs.spread, beliefs.noise
        )
        for mode in work.growing:
            self.told[work.lower_part(mode)] = self.priors[mode]
        self.inverses, self.logs = self._inverted(self.told)
        add_parts(self.inverses, work.firsts, work.upper_counts, -1.0, self.outside)
        if work.whole:
            self.outside[:] = 0.0
        if not recipe.keeps_history:  # what was known fades as more becomes known
            for mode in range(work.order):
                self.told[work.upper_part(mode)][self._with_cells(mode)] *= KEPT * recipe.decay
        self.centres = work.stack.copy()  # means of the priors
        self.pulls = self._pulling()
        self.modes: ModePriors | None = None
        if recipe.keeps_history:
            self.modes = ModePriors(work, beliefs, change.coming, self.begun.means, self.priors)
        self.expectation, coming = None, change.coming
        if coming is not None:
            self.expectation = Expectation(
                factors, change, work, self.begun.means.copy(), beliefs, coming, recipe.loss
            )
        self._misses = Misses()

    def _pulling(self) -> Floats:
        """Return the precisions that pull at rows: what is told of them.

        Where the last model is held on to by its components, old rows have that instead, and the
        prior of their mode in the place of what fades.
        """
        if not (self.recipe.general and by_components(self.recipe)):
            return self.told
        pulls = self.told.copy()
        for mode in range(self.work.order):
            upper = self.work.upper_part(mode)
            pulls[upper], self.centres[upper] = (
                (1.0 - KEPT) * self.priors[mode], self.begun.means[mode]
            )  # fmt: skip
        return pulls

    def _with_cells(self, mode: int) -> slice | Flags:
        """Return which old rows of a mode the step's cells tell something, zeros among them."""
        change, work = self.change, self.work
        entries, n_upper = change.entries, work.n_upper[mode]
        touched = self.recipe.rows_needed == "touched" and not change.weighted
        crossed = any(m != mode for m in work.growing)  # new labels elsewhere meet all of its rows
        if touched or (crossed and (change.absent_zero or isinstance(entries, DenseBox))):
            return slice(None)
        if isinstance(entries, DenseBox):
            return slice(0)
        order = entries.orders[mode]
        counts = np.diff(order.pointers)
        if len(order.weights):
            owner = np.repeat(np.arange(len(counts)), counts)
            counts = np.bincount(owner, order.weights > 0.0, len(counts))
        return np.asarray(counts[:n_upper] > 0)

    def expect(self) -> Floats:
        """Return the values that are expected of the batch; new rows are where they are seen."""
        if self.expectation is None:
            return predict_arrived(self.work, self.change)
        return self.expectation.predict()

    def _inverted(self, packed: Floats) -> tuple[Floats, Floats]:
        """Return the inverses of the stacked precisions; a failure names its mode."""
        try:
            return invert(packed, self.work.rank)
        except SolveError as error:
            mode = int(np.searchsorted(self.work.firsts, error.position, side="right")) - 1
            at = error.position - self.work.bounds[mode]
            raise SolveError(error.reason, mode=mode, position=at) from None

    # ------------------------------------------------------------------ learning

    def learn(self, data_terms: DataTerms, observed: DataTerms) -> AnyBelieved:
        """Sweep; first the rows of the ordered mode and new rows, whose priors are wide."""
        work, recipe, news = self.work, self.recipe, self.change.news
        if self.expectation is not None and news is not None:
            self._misses = Misses(
                ahead=self.expectation.missed_ahead(news),
                blend_ahead=self.expectation.missed_blend_ahead(news),
            )
        if self.modes is not None:
            for mode, n_upper in enumerate(work.n_upper):
                means, told = self.modes.of(mode)
                self.centres[work.upper_part(mode)] = means[:n_upper]
                self.told[work.upper_part(mode)] = told[:n_upper]
        objective = self._objective(data_terms, observed)
        self._start(objective)
        blocks = work.blocks()
        for done in range(recipe.sweeps):
            if done and data_terms is imputed:
                objective = self._objective(data_terms, observed)
            for mode in range(work.order):
                if self.modes is not None:
                    means, told = self.modes.of(mode)
                    objective.priors.means[mode], objective.priors.precisions[mode] = means, told
                self._update(objective, [b for b in blocks if b.mode == mode])
                if self.modes is not None:
                    self.modes.renew(mode, self.inverses)
        return objective

    def _start(self, objective: AnyBelieved) -> None:
        """Solve new rows from cells whose other labels are known, as the paper starts them.

        Late cells come first: the outlook of new rows rests on rows that know them.
        """
        work, coming = self.work, self.change.coming
        blocks, known = work.blocks(), objective
        if len(work.growing) > 1 and not objective.all_cells:
            known = self._with_known(objective)
        if coming is not None and self._late():
            self._update(known, [b for b in blocks if b.mode == coming.mode and b.upper])
        self._set_prior_ahead()
        if work.growing:
            for mode in work.growing:
                known.note_change(mode)
            times = 1 if isinstance(known, Believed) else STARTS
            self._update(known, [b for b in blocks if not b.upper] * times)
        if self.expectation is not None and self.change.news is not None:
            missed, blend = self.expectation.missed_known(
                self.change.news, self.inverses, self.told, self.centres,
                exact=isinstance(known, Believed) and known.exact,
            )  # fmt: skip
            self._misses = replace(self._misses, known=missed, blend_known=blend)
        if known is not objective:
            for mode in range(work.order):
                objective.note_change(mode)

    def _with_known(self, objective: AnyBelieved) -> AnyBelieved:
        """Return the objective of those cells of which one label at most is new."""
        if isinstance(objective, BelievedLoss):
            entries = only_known_entries(self.work, objective.entries)
            return self._with_loss(replace(self.change, entries=entries))
        return self._with(only_known(self.work, objective.listed), objective.boxes)

    def _set_prior_ahead(self) -> None:
        """Give new rows of the ordered mode their prior: the outlook and how far off it was."""
        coming, beliefs = self.change.coming, self.beliefs
        if coming is None or self.expectation is None or not len(coming.fresh):
            return
        self.expectation.set_priors(moved=self._late())
        self._lift()
        told, lower = self.priors[coming.mode], self.work.lower_part(coming.mode)
        if beliefs.n_drift >= 1.0:
            squares, n_rows = self.factors.grams.total, self.change.old_shape[coming.mode]
            size = squares[coming.mode].diagonal() / n_rows
            told = precision(beliefs.drift, beliefs.noise, size, coming.mode)
        inverse, log = invert(told[None], self.work.rank)
        self.told[lower], self.inverses[lower], self.logs[lower] = told, inverse, log
        self.pulls[lower] = told
        self.centres[lower] = self.work.stack[lower]

    def _lift(self) -> None:
        """Bring rows to where counts have a probability."""
        if not self.recipe.loss.positive:
            return
        for mode, rows in enumerate(self.work.rows()):
            new = rows[self.work.n_upper[mode] :]
            make_positive(self.recipe, rows, new, self.begun.means, mode)

    def _objective(self, data_terms: DataTerms, observed: DataTerms) -> AnyBelieved:
        work, entries = self.work, self.change.entries
        if not isinstance(self.recipe.loss, Squared):
            self._lift()
            return self._with_loss(self.change)
        listed, boxes = data_terms(work, entries)
        seen: Listed | None = None
        if data_terms is imputed and not isinstance(entries, DenseBox):
            seen, _ = observed(work, entries)
        return self._with(listed, boxes, seen)

    def _with(self, listed: Listed, boxes: list[BoxTerm], seen: Listed | None = None) -> Believed:
        work = self.work
        parts = [work.part(mode) for mode in range(work.order)]
        priors = RowPriors(
            [self.centres[p] for p in parts], [self.told[p] for p in parts],
            nonnegative=nonnegative_modes(self.recipe, work.order),
        )  # fmt: skip
        return Believed(
            work, listed, boxes, priors, self.beliefs.noise, self.inverses, self.logs,
            self.outside, imputed=seen,
        )  # fmt: skip

    def _with_loss(self, change: Change) -> BelievedLoss:
        """Return the objective of a loss of its own.

        Counts without history hold on to the last model by the divergence of its components, not
        by the precision of rows: a row that was next to nothing was sure of it, and could never
        grow (docs/numerics.md).
        """
        work, recipe, towards = self.work, self.recipe, None
        parts = [work.part(mode) for mode in range(work.order)]
        told = pulls = [self.told[part] for part in parts]
        if self.pulls is not self.told:
            pulls = [self.pulls[part] for part in parts]
        rest = None if self.begun.rest is None else self.begun.rest.sums
        if by_components(recipe):
            weight = self.alpha * anchor_scale(recipe, self.change, work)
            towards = Towards(work, self.begun.previous, rest, weight)
        return believed_goal(
            recipe, change, work,
            RowPriors(
                [self.centres[p] for p in parts], pulls, certain=None if pulls is told else told
            ),
            noise=self.beliefs.noise, inverses=self.inverses, logs=self.logs, rest_sums=rest,
            towards=towards,
        )  # fmt: skip

    @property
    def alpha(self) -> float:
        """The weight of the last model, where that is not remembered by the precision of rows."""
        given = self.recipe.alpha(circumstances(self.change))
        return self.recipe.decay * check_number("alpha", given, least=0.0)

    def _late(self) -> bool:
        """Tell whether rows of known labels of the ordered mode have cells."""
        coming = self.change.coming
        if coming is None or not self.work.n_upper[coming.mode]:
            return False
        return self.change.positions[coming.mode] is not None or len(coming.known) > 0

    def _update(self, objective: AnyBelieved, blocks: list[Block]) -> None:
        for block in blocks:
            update(objective, block, self.run)

    def remember(self, objective: AnyBelieved, misses: float) -> tuple[Floats, Beliefs]:
        """Return the precisions of all rows after the step, and the beliefs."""
        work, change, recipe = self.work, self.change, self.recipe
        coming, beliefs = change.coming, self.beliefs
        n_cells = count_cells(change, recipe)
        if recipe.keeps_history:
            noise, cells = misses / max(n_cells, 1.0), n_cells
            told = np.concatenate(
                [np.broadcast_to(one, (n, one.shape[1])) for one, n in zip(
                    objective.priors.precisions, work.n_rows, strict=True)]
            )  # fmt: skip
        else:
            share = min(FASTEST, n_cells / beliefs.cells)
            noise = beliefs.noise + share * (misses / max(n_cells, 1.0) - beliefs.noise)
            cells, told = beliefs.cells + n_cells, self.told
        precisions = told + objective.gained
        noise = max(noise, faintest(beliefs.size), recipe.loss.least_noise)
        noise = min(noise, recipe.loss.most_noise)
        spread = self.outside.copy()
        add_parts(self.inverses, work.firsts, np.diff(work.firsts), 1.0, spread)
        labels = {} if coming is None else self._learn_labels(coming, noise, objective.gained)
        return precisions, replace(beliefs, cells=cells, spread=spread, noise=noise, **labels)

    def _learn_labels(self, coming: Coming, noise: float, gained: Floats) -> dict[str, Any]:
        """Return what new labels of the ordered mode change in the beliefs."""
        part, rank = self.work.part(coming.mode), self.work.rank
        misses, ahead = self._misses, self._misses.ahead
        if ahead is not None and 0 < ahead.n < FEWEST and not self._may_tell():
            assert self.expectation is not None
            ahead = self.expectation.missed_by_rows(unpack(gained[part][coming.fresh], rank))
            misses = replace(misses, ahead=ahead)
        after = self.beliefs.after_labels(len(coming.fresh), misses)
        return after | self._learn_drift(coming, noise)

    def _learn_drift(self, coming: Coming, noise: float) -> dict[str, Any]:
        """Return the scatter of what the outlook misses: of all rows, or with that of new ones.

        The first time the scatter of the mode is averaged with it: one row would tell of one
        direction only.
        """
        if self.modes is not None and len(coming.line):
            return {"drift": self.modes.drift, "n_drift": self.modes.n_drift}
        part, rank, beliefs = self.work.part(coming.mode), self.work.rank, self.beliefs
        gaps = self.work.stack[part][coming.fresh] - self.centres[part][coming.fresh]
        own = self.inverses[part][coming.fresh]
        moments = gaps[:, :, None] * gaps[:, None] + noise * unpack(own, rank)
        if not beliefs.n_drift and len(gaps):
            usual = noise * unpack(invert(self.priors[coming.mode][None], rank)[0], rank)
            moments = np.concatenate([usual, moments])
        return beliefs.drifted(moments)

    def _may_tell(self) -> bool:
        """Tell whether the model keeps values anyway, which errors of few cells give away."""
        news = self.change.news
        return self.recipe.keeps_history or (news is not None and news.recalled.shape[1] > 0)


def count_cells(change: Change, recipe: Recipe) -> float:
    """Return how many cells the data term of a step counts, zeros included."""
    listed = float(change.entries.n_entries)
    if change.weighted:  # what has no weight is no cell, what is forgotten in part a part of one
        assert isinstance(change.entries, Entries)
        weights = change.entries.orders[0].weights
        forgets = recipe.keeps_history and recipe.decay < 1.0
        listed = float(np.minimum(weights, 1.0).sum() if forgets else np.count_nonzero(weights))
    if not change.absent_zero:
        return max(listed, 1.0)
    whole = math.prod(map(float, change.new_shape))
    if recipe.keeps_history:
        return whole
    inside = 0.0
    if isinstance(change.entries, Entries):
        limits = [change.n_upper(mode) for mode in range(len(change.old_shape))]
        inside = float((change.entries.coords() < limits).all(axis=1).sum())
    return whole - math.prod(map(float, change.old_shape)) + inside


def step(
    recipe: Recipe,
    factors: Factors,
    change: Change,
    beliefs: Beliefs,
    run: Run,
    strategy: tuple[str, DataTerms, DataTerms],
) -> Outcome:
    """Compute one step.  Reads the touched rows, and those that the outlook looks at."""
    going = BelievedStep(recipe, factors, change, beliefs, run)
    predicted = going.expect()
    name, data_terms, observed = strategy
    objective = going.learn(data_terms, observed)
    misses = objective.misses()
    value = float(objective.value(misses))
    precisions, after = going.remember(objective, misses)
    begun = replace(going.begun, predicted=predicted)
    return finish_step(
        begun, change, factors, value, name, sweeps=recipe.sweeps,
        memory=after.as_memory(), precisions=(going.before, precisions),
    )  # fmt: skip


def expect(recipe: Recipe, factors: Factors, change: Change, beliefs: Beliefs) -> Floats:
    """Return what is expected of a batch; nothing is learned."""
    return BelievedStep(recipe, factors, change, beliefs, serially).expect()
