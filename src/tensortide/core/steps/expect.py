"""What is expected of a batch before it is learned, and how far off each way to expect was."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tensortide.arrays import Flags, Floats, Places
from tensortide.core.kernels.dense import thin_times, times_thin
from tensortide.core.kernels.entries import multiply_others
from tensortide.core.kernels.moments import add_outer, leverages
from tensortide.core.losses.standard import Loss, Squared
from tensortide.core.objective.believed import invert
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.believed_loss import JITTER
from tensortide.core.steps.change import Change, Coming, News
from tensortide.core.steps.missed import Missed, UnlistedZeros
from tensortide.core.steps.outcome import predict_arrived
from tensortide.core.steps.outlook import beside, mixed_row, recalled_too, weighted
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.packed import diagonal_places
from tensortide.core.tensor.workspace import Workspace

LEAST = 1e-9  # share of a row that is known without one of its cells, at least
ROUGHLY = 1e-3  # the same where rows are not exactly where the cells want them


class Expectation:
    """The outlook of the labels that a batch brings, and what it makes of the batch's cells."""

    def __init__(
        self,
        factors: Factors,
        change: Change,
        work: Workspace,
        means: Floats,
        beliefs: Beliefs,
        coming: Coming,
        loss: Loss,
    ) -> None:
        self._loss = loss
        self._change, self._work, self._beliefs = change, work, beliefs
        self._coming, self._mean = coming, means[coming.mode]
        self._near = _Near(factors, change, work, coming, positive=loss.positive)
        self._candidates = np.empty((0, beliefs.n_candidates, work.rank))
        self._alone = np.empty(0)  # what the model says of the batch before it is blended

    @cached_property
    def _weights_of_prior(self) -> Floats:
        return self._beliefs.weights_of_prior()

    @cached_property
    def _weights_known(self) -> tuple[Floats, Floats]:
        return self._beliefs.weights_known()

    def predict(self) -> Floats:
        """Put new rows of the ordered mode where the outlook sees them; predict the batch."""
        weights, recalling = self._beliefs.weights_ahead()
        self._candidates = self._near.look(self._mean, weights)
        predicted = predict_arrived(self._work, self._change)
        news, mode = self._change.news, self._coming.mode
        if news is None or not news.recalled.shape[1]:
            return predicted
        cells = local_cells(self._change, self._work)
        new = cells[:, mode] >= self._work.n_upper[mode]
        positive = self._loss.positive
        said = weighted(news.recalled[new], recalling)
        predicted[new] = recalled_too(predicted[new], said, positive=positive)
        beliefs, self._alone = self._beliefs, predicted.copy()
        predicted[new] = beliefs.blended(predicted[new], news.plain[new], known=False)
        shares, recalling = self._weights_known
        old = np.flatnonzero(~new)
        if len(old):
            seen = self._near.known_outlook(self._mean, self._weights_of_prior)
            outlook = (self._products(cells[old]) * seen[cells[old, mode]]).sum(axis=1)
            both = shares[0] * predicted[old] + shares[1] * outlook
            said = weighted(news.recalled[old], recalling)
            found = recalled_too(both, said, positive=positive)
            predicted[old] = beliefs.blended(found, news.plain[old], known=True)
        return predicted

    def missed_ahead(self, news: News) -> Missed | None:
        """Return what each candidate, and each memory, missed on cells of new labels."""
        fresh, mode = self._coming.fresh, self._coming.mode
        if not len(fresh) or not self._loss.expects:
            return None
        cells, first = local_cells(self._change, self._work), self._work.n_upper[mode]
        judging = (cells[:, mode] >= first) & news.live
        new = slice(None) if judging.all() else np.flatnonzero(judging)
        z = self._products(cells[new])
        if len(fresh) == 1:
            which = np.zeros(len(z), np.int64)
            y = times_thin(z, self._candidates[0])
        else:
            place = np.empty(len(fresh), np.int64)
            place[fresh - first] = np.arange(len(fresh))
            which = place[cells[new, mode] - first]
            y = np.einsum("nr,njr->nj", z, self._candidates[which])
        errors = np.empty((len(z), y.shape[1] + news.recalled.shape[1]))
        np.subtract(news.values[new, None], self._loss.mean(y), out=errors[:, : y.shape[1]])
        errors[:, y.shape[1] :] = news.recalled[new]
        missed = Missed.of(errors)
        if self._change.absent_zero:
            zeros = self._unlisted()
            for k, found in enumerate(self._candidates):
                missed.gram[:] += zeros.missed(found, z[which == k])
        return missed

    def missed_blend_ahead(self, news: News) -> Missed | None:
        """Return what model, last value and mean of a fibre missed on cells of new labels."""
        if not news.recalled.shape[1] or not len(self._coming.fresh):
            return None
        cells, mode = local_cells(self._change, self._work), self._coming.mode
        judging = (cells[:, mode] >= self._work.n_upper[mode]) & news.live
        return _missed_beside(news, self._alone, judging)

    def missed_by_rows(self, told: Floats) -> Missed:
        """Return how far candidates were from the new rows, by what cells have told of each.

        That is what they missed of the values that the model has learned, not of the cells.
        """
        rows = self._work.stack[self._work.part(self._coming.mode)][self._coming.fresh]
        gaps = self._candidates - rows[:, None]
        gram = np.einsum("kir,krs,kjs->ij", gaps, told, gaps)
        return Missed(len(rows), np.asarray(gram))

    def _unlisted(self) -> UnlistedZeros:
        """Return the cells of a new label that are not listed."""
        work = self._work
        others = [m for m in range(work.order) if m != self._coming.mode]
        rows = [work.stack[work.part(m)] for m in others]
        grams = [work.rest[m] + thin_times(r, r) for m, r in zip(others, rows, strict=True)]
        return UnlistedZeros(self._loss, grams, rows)

    def set_priors(self, *, moved: bool) -> None:
        """Put new rows where the outlook without trends sees them: the means of their priors.

        `moved` says that rows of known labels have moved since, by late cells.
        """
        weights, fresh = self._weights_of_prior, self._coming.fresh
        if len(fresh) == 1 and not moved:
            lower = self._work.lower_part(self._coming.mode)
            self._work.stack[lower] = weights @ self._candidates[0]
        else:
            self._near.refresh()
            self._near.look(self._mean, weights)

    def missed_known(
        self, news: News, inverses: Floats, told: Floats, centres: Floats, *, exact: bool
    ) -> tuple[Missed | None, Missed | None]:
        """Return what model, outlook and memories miss on the batch, each cell left out.

        And what all of them together do, beside the last value and the mean of a fibre.

        The rows of the ordered mode know the batch's cells by now, the others do not: `inverses`
        say how sure they are, `told` how sure they were before the batch, and `centres` where the
        new ones were expected.  `exact` says that rows are where their equations want them: then
        a cell can be left out though its row knows next to nothing else.  Cells with a new label
        of another mode do not judge: their fibres are new, and rows knew them by another row.
        """
        if not news.recalled.shape[1]:
            return None, None
        mode, work = self._coming.mode, self._work
        cells, part = local_cells(self._change, work), work.part(mode)
        at = np.ascontiguousarray(cells[:, mode], np.int32)
        z, weight = self._products(cells), np.empty(len(cells))
        y = (z * work.stack[part][at]).sum(axis=1)
        counted, sure = np.ones(len(cells)), inverses[part]
        if len(news.weights):
            counted = counted * news.weights
        if not isinstance(self._loss, Squared):
            # rows have moved since their parabola was drawn, and what cells weigh there with them
            counted *= 0.5 * self._loss.weight(news.values, y)
            known = told[part].copy()
            add_outer(z, at, counted, known)
            known[:, diagonal_places(work.rank, known.shape[1])] *= 1.0 + JITTER
            sure = invert(known, work.rank, mode)[0]
        leverages(z, at, counted, np.ascontiguousarray(sure), weight)
        weight = np.clip(weight, 0.0, 1.0 - (LEAST if exact else ROUGHLY))
        alone = (y - weight * news.values) / (1.0 - weight)
        if self._loss.positive:
            np.maximum(alone, 0.0, out=alone)
        seen = self._near.known_outlook(self._mean, self._weights_of_prior)
        seen[work.n_upper[mode] :] = centres[work.lower_part(mode)]
        outlook = (z * seen[at]).sum(axis=1)
        missed = news.values[:, None] - np.column_stack([alone, outlook])
        shares, recalling = self._weights_known
        both, said = weighted(np.column_stack([alone, outlook]), shares), news.recalled
        both = recalled_too(both, weighted(said, recalling), positive=self._loss.positive)
        limits = np.array(work.n_upper)
        limits[mode] = work.n_rows[mode]
        judging = news.live & (cells < limits).all(axis=1)
        apart = Missed.of(np.hstack([missed, news.recalled])[judging])
        return apart, _missed_beside(news, both, judging)

    def _products(self, cells: Places) -> Floats:
        """Return the product of all rows of each cell but that of the ordered mode."""
        work, found = self._work, np.empty((len(cells), self._work.rank))
        multiply_others(cells, work.firsts, work.stack, self._coming.mode, found)
        return found


class _Near:
    """The rows that the outlook looks at, those that take part as the step has them now."""

    def __init__(
        self, factors: Factors, change: Change, work: Workspace, coming: Coming, *, positive: bool
    ) -> None:
        self._positive = positive
        self._rows = work.stack[work.part(coming.mode)]
        self._coming = coming
        touched = change.positions[coming.mode]
        here = np.arange(len(self._rows)) if touched is None else touched
        fresh = here[coming.fresh]
        named = (coming.neighbours, coming.beside)
        at = np.concatenate([fresh, *(n.positions() for n in named if len(n.recent))])
        at.sort()
        at = at[np.append(True, at[1:] != at[:-1])[: len(at)]]
        place = np.minimum(here.searchsorted(at), len(here) - 1)
        mine = here[place] == at
        self._mine, away = np.flatnonzero(mine), np.flatnonzero(~mine)
        self._local = place[self._mine]
        self._table = np.empty((len(at), self._rows.shape[1]))
        self._table[away] = factors.peek(coming.mode, at[away])
        self._fresh = at.searchsorted(fresh)
        self._before, self._beside = (n.within(at) for n in named)
        self.refresh()

    def refresh(self) -> None:
        """Take over how the rows of the step are now."""
        self._table[self._mine] = self._rows[self._local]

    def look(self, mean: Floats, weights: Floats) -> Floats:
        """Put new rows, one after the other, where the mixture sees them; return candidates."""
        found = np.empty((len(self._coming.fresh), len(weights), len(mean)))
        for k, row in enumerate(self._coming.fresh):
            found[k] = self._before.only(k).candidates(self._table, mean)[0]
            seen = mixed_row(weights, found[k], positive=self._positive)
            self._rows[row] = self._table[self._fresh[k]] = seen
        return found

    def known_outlook(self, mean: Floats, weights: Floats) -> Floats:
        """Return the rows as they are, known ones of the batch where the outlook sees them."""
        rows = self._rows.copy()
        rows[self._coming.known] = weights @ self._beside.candidates(self._table, mean)
        return rows


def _missed_beside(news: News, values: Floats, judging: Flags) -> Missed:
    """Return what values, and the last value and mean of fibres that have some, miss on cells."""
    judging = judging & ~np.isnan(news.plain[:, 0])
    said = beside(values[judging], news.plain[judging])
    return Missed.of(news.values[judging, None] - said)


def local_cells(change: Change, work: Workspace) -> Places:
    """Return the cells of the batch by the rows of the workspace."""
    if isinstance(change.arrived, DenseBox):
        shift = np.array(work.n_rows) - np.array(change.arrived.shape)
        return np.ascontiguousarray(change.arrived.coords() + shift, np.int32)
    return change.arrived
