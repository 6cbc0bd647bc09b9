"""The objective of a count model's day and its block updates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.kernels.entries import add_rhs
from tensortide.core.objective.squares import model_values
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Workspace
from tensortide.nowcast.count_model.date_prior import date_holds
from tensortide.nowcast.count_model.state import CountState, Settings
from tensortide.nowcast.snapshot import Snapshot

TINY = 1e-12
FEW = 100.0  # counts of a component below which it is drawn to the others


class CountObjective:
    """The objective of one day and its block updates."""

    def __init__(
        self,
        snapshot: Snapshot,
        start: CountState,
        settings: Settings,
        *,
        prior: Floats,
        exposure: Floats,
        weights: Floats,
        pulled: bool,
    ) -> None:
        self.start, self.prior, self.exposure = start, prior, exposure
        recent = snapshot.recent
        offset = snapshot.triangle.n_dates - snapshot.n_dates
        codes = (
            recent.codes
            if len(start.strata) == recent.codes.shape[1]
            else np.zeros((len(recent.counts), 1), np.int64)
        )
        coords = np.column_stack([codes, recent.dates - offset, recent.delays])
        factors = [*start.strata, start.dates, start.delays]
        shape = tuple(len(f) for f in factors)
        counts = recent.counts * weights[recent.dates - offset, recent.delays]
        self.entries = Entries.listed(np.ascontiguousarray(coords, np.int32), counts, shape)
        self.work = Workspace([0] * len(shape), shape, start.delays.shape[1])
        for rows, factor in zip(self.work.rows(), factors, strict=True):
            rows[:] = factor
        self.hold = date_holds(snapshot, settings)[:, None]
        total = float(counts.sum()) + float(sum(c.sum() for c in start.carried[-1:]))
        share = np.maximum(start.dates.sum(axis=0) / start.dates.sum(), 0.02)
        size = total * share
        common = settings.common / (1.0 + size / FEW)
        pulls = [settings.pull] * len(start.strata) + [0.0, settings.pull_delays]
        self.anchors = [
            _anchor(factor, settings.least + (pull if pulled else 0.0) * size, common)
            for factor, pull in zip(factors, pulls, strict=True)
        ]
        self.tol, self.sweeps = settings.tol, 0
        self.weights = weights
        known = exposure * weights
        self.flat = np.ascontiguousarray(known.reshape(-1, known.shape[2]))
        self.turned = np.ascontiguousarray(self.flat.T)

    # modes: strata 0..k-1, then dates, then delays
    @property
    def _date(self) -> int:
        return self.work.order - 2

    def descend(self, sweeps: int, *, watch: bool) -> list[float]:
        """Sweep until the dates settle; return the objective after each block if watched."""
        values = [self.value()] if watch else []
        rows = self.work.rows()
        order = [self._date, self._date + 1, *range(self._date)]
        for _ in range(sweeps):
            self.sweeps += 1
            before = rows[self._date].copy()
            for mode in order:
                self.update(mode)
                if watch:
                    values.append(self.value())
            moved = float(np.abs(rows[self._date] - before).sum())
            if moved < self.tol * float(rows[self._date].sum()):
                break
        return values

    def update(self, mode: int) -> None:
        """Move a mode to the minimum of the bound: ``(counts + prior) / (exposure + weight)``."""
        rows = self.work.rows()[mode]
        counts = self.counts(mode)
        sums = self._exposures(mode)
        if mode == self._date:
            rows[:] = (counts + self.hold * self.prior) / (sums + self.hold + TINY)
            return
        reference, pull = self.anchors[mode]
        rows[:] = (counts + pull * reference) / (sums + pull + TINY)

    def counts(self, mode: int) -> Floats:
        """Return the counts that each row and component is responsible for, and those carried."""
        if self.start.margin is not None and mode >= self._date:
            return self._split(mode)
        found = self.work.rows()[mode] * self._responsibility(mode)
        if self.start.carried:
            found = np.maximum(found + self.start.carried[mode], 0.0)
        return found

    def _split(self, mode: int) -> Floats:
        """Return the totals by date and delay, shared among components as they are now."""
        rows = self.work.rows()
        assert self.start.margin is not None
        strata = np.ones(self.work.rank)
        for k in range(1, self._date):
            strata = strata * rows[k].sum(axis=0)
        sites = thin_times(np.ascontiguousarray(self.exposure.reshape(len(rows[0]), -1)), rows[0])
        shape = (*self.weights.shape, self.work.rank)
        parts = sites.reshape(shape) * strata * rows[-2][:, None, :] * rows[-1]
        counts = self.weights * np.maximum(self.start.margin, 0.0)
        parts *= (counts / (parts.sum(axis=2) + TINY))[:, :, None]
        return np.asarray(parts.sum(axis=1 if mode == self._date else 0))

    def value(self) -> float:
        """Return the declared objective."""
        rows = self.work.rows()
        y = model_values(self.work, self.entries, 0)
        x = self.entries.orders[0].values
        total = float((rows[0] * self._exposures(0)).sum() - (x * np.log(y + TINY)).sum())
        dates = rows[self._date]
        total += float((self.hold * (dates - self.prior * np.log(dates + TINY))).sum())
        for mode, factor in enumerate(rows):
            if mode != self._date:
                reference, pull = self.anchors[mode]
                total += float((pull * (factor - reference * np.log(factor + TINY))).sum())
        return total

    def finish(self) -> CountState:
        """Return the state with columns that sum to one, the size in the dates."""
        rows = [r.copy() for r in self.work.rows()]
        for mode in range(self.work.order):
            if mode != self._date:
                sums = rows[mode].sum(axis=0)
                rows[mode] = rows[mode] / sums
                rows[self._date] = rows[self._date] * sums
        strata = tuple(rows[: self._date])
        carried: tuple[Floats, ...] = ()
        if self.start.reported is not None:
            carried = tuple(self.counts(mode) for mode in range(self.work.order))
        return replace(
            self.start, carried=carried, strata=strata, dates=rows[self._date],
            delays=rows[self._date + 1], sweeps=self.sweeps,
        )  # fmt: skip

    def _responsibility(self, mode: int) -> Floats:
        """Return ``sum x / y * product of the other rows``; the weekday factors cancel."""
        order = self.entries.orders[mode]
        y = model_values(self.work, self.entries, mode)
        found = np.zeros((self.work.n_rows[mode], self.work.rank))
        offsets = self.work.other_offsets[mode]
        ratio = order.values / (y + TINY)
        add_rhs(order.pointers, order.others, offsets, self.work.stack, ratio, found)
        return found

    def _exposures(self, mode: int) -> Floats:
        """Return the slope of ``sum mu`` over the known cells in the rows of a mode."""
        rows = self.work.rows()
        site, dates, delays = rows[0], rows[self._date], rows[self._date + 1]
        others = np.ones(self.work.rank)
        for k in range(1, self._date):
            if k != mode:
                others = others * rows[k].sum(axis=0)
        n_sites, n_dates = len(site), len(dates)
        if mode == self._date + 1:
            both = (site[:, None, :] * dates).reshape(n_sites * n_dates, -1)
            return thin_times(self.flat, both) * others
        by_date = thin_times(self.turned, delays)
        by_date = by_date.reshape(n_sites, n_dates, -1)
        if mode == 0:
            return np.asarray((by_date * dates).sum(axis=1) * others)
        if mode == self._date:
            return np.asarray((by_date * site[:, None, :]).sum(axis=0) * others)
        whole = (by_date * site[:, None, :] * dates).sum(axis=(0, 1)) * others
        return np.tile(whole, (len(rows[mode]), 1))


def _anchor(columns: Floats, pull: Floats, common: Floats) -> tuple[Floats, Floats]:
    """Return what a mode is drawn to and its worth: yesterday's columns, and those of all."""
    weight = pull + common
    pooled = columns @ (pull / np.maximum(pull.sum(), TINY))
    return (pull * columns + common * pooled[:, None]) / np.maximum(weight, TINY), weight
