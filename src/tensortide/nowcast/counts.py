"""The count model of a nowcast: CP with Poisson loss on the known part of the triangle.

    mu[s, t, d] = G[site, weekday(t), d] * sum_r prod_k A_k[s_k, r] C[t, r] P[d, r]

Components are kinds of reporters: their columns of strata, dates and delays.  Given yesterday's
factors (marked 0) and G, a day minimises

    sum over known cells (mu - x log mu)                                 Poisson
  + sum_r n_r [ D(A_k; A_k0) + D(P; P0) ]      D(z; z0) = sum z - z0 log z   pull to yesterday
  + sum_tr s_t ( C - m log C )                                           smooth dates

with ``n_r`` the counts of a component in the window (so yesterday weighs as much as the window)
and m a local line through the totals, times weekday, times each component's local share.  Every
block update is the exact minimum of a bound that touches this objective (expectation and
maximisation), so it never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tensortide.core.entries import Entries
from tensortide.core.kernels import add_rhs
from tensortide.core.objective import model_values
from tensortide.core.products import thin_times
from tensortide.core.types import Floats
from tensortide.core.workspace import Workspace
from tensortide.nowcast.dates import date_prior
from tensortide.nowcast.snapshot import Snapshot

TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Settings:
    """The constants of the model, chosen on forecast dates before 2021-11-22.

    `pull` and `pull_delays` weigh yesterday's columns of strata and delays against the window
    (`least`: in counts, also on the first day, which makes `first_sweeps` sweeps at most),
    `new` and `old` the
    prior of dates younger and older than two weeks, in counts that they are worth;
    `weekday_counts` are pseudo-counts that draw the weekday factors to one, `stratum_counts`
    those of the multipliers of the last `recent` dates.
    """

    window: int = 60
    pull: float = 1.0
    pull_delays: float = 5.0
    first_sweeps: int = 50
    least: float = 1.0
    new: float = 0.3
    old: float = 0.03
    weekday_counts: float = 1.0
    stratum_counts: float = 50.0
    recent: int = 14
    smooth_dates: bool = True
    weekdays: bool = True
    max_sweeps: int = 200
    tol: float = 1e-6


@dataclass(frozen=True, slots=True)
class CountState:
    """What a day leaves to the next: columns that sum to one, dates that carry the size.

    `first` is the period of the first row of `dates`; `site` holds the weekday factors of
    sites beyond those of all.
    """

    labels: tuple[tuple[Any, ...], ...]
    strata: tuple[Floats, ...]
    dates: Floats
    delays: Floats
    site: Floats
    weekday: Floats
    first: int
    sweeps: int = 0


@dataclass(frozen=True, slots=True)
class Fit:
    """A day's fit: the state, and the factors of sites and weekdays as they were used."""

    state: CountState
    exposure: Floats
    objectives: tuple[float, ...] = ()


@dataclass
class CountModel:
    """The CP model of one rank, stepped from as-of day to as-of day."""

    rank: int
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    state: CountState | None = None

    @property
    def name(self) -> str:
        """Return what the tables call it."""
        return f"rank {self.rank}"

    def window(self, max_delay: int) -> int:
        """Return the dates that are needed: never fewer than the delays and a week."""
        return max(self.settings.window, max_delay + 7) if self.settings.window > 0 else 10**9

    def step(self, snapshot: Snapshot, *, watch: bool = False) -> Floats:
        """Fit the day and return what is still to come: cells x ages."""
        fit = fitted(snapshot, self.rank, self.settings, self.state, self.seed, watch=watch)
        self.state = fit.state
        return unseen(snapshot, fit, self.settings)


def fitted(
    snapshot: Snapshot,
    rank: int,
    settings: Settings,
    before: CountState | None,
    seed: int = 0,
    *,
    watch: bool = False,
) -> Fit:
    """Minimise the objective of a day, from yesterday's state or from scratch."""
    first_day = before is None
    start = _first_state(snapshot, rank, seed) if before is None else _aligned(snapshot, before)
    prior, rows = date_prior(
        start.dates,
        snapshot.n_dates,
        snapshot.weekdays,
        start.delays,
        smooth=settings.smooth_dates,
    )
    start = replace(start, dates=np.maximum(rows, 1e-6))
    start, exposure = _weekday_factors(snapshot, start, settings)
    problem = _Problem(snapshot, start, prior, exposure, settings, first_day=first_day)
    sweeps = settings.first_sweeps if first_day else settings.max_sweeps
    values = problem.descend(sweeps, watch=watch)
    return Fit(problem.finished(), exposure, tuple(values))


def unseen(snapshot: Snapshot, fit: Fit, settings: Settings) -> Floats:
    """Return what is still to come: cells x ages, the as-of date first.

    The strata of the last two weeks are scaled to what they have reported.
    """
    n, ages = snapshot.n_dates, snapshot.n_ages
    state, known = fit.state, snapshot.known
    newest = np.arange(n - 1, n - 1 - ages, -1)
    loads = np.ones((len(snapshot.cells), fit.state.delays.shape[1]))
    for axis, rows in enumerate(state.strata[: snapshot.cells.shape[1]]):
        loads = loads * rows[snapshot.cells[:, axis]]
    site = snapshot.cells[:, 0] if snapshot.cells.shape[1] else np.zeros(1, np.int64)
    seen, rest = np.zeros((2, len(loads), ages))
    for age, date in enumerate(newest):
        columns = state.delays * state.dates[date]  # delays x rank
        mean = (loads @ columns.T) * fit.exposure[site, date]
        seen[:, age] = mean[:, known[date]].sum(axis=1)
        rest[:, age] = mean[:, ~known[date]].sum(axis=1)
    young = slice(0, settings.recent)
    published, pseudo = np.maximum(snapshot.published, 0.0), settings.stratum_counts
    if pseudo > 0.0:
        for axis in range(snapshot.cells.shape[1]):
            codes, size = snapshot.cells[:, axis], len(state.strata[axis])
            reported = np.bincount(codes, published[:, young].sum(axis=1), size)
            expected = np.bincount(codes, seen[:, young].sum(axis=1), size)
            factor = ((reported + pseudo) / (expected + pseudo))[codes][:, None]
            seen, rest = seen * factor, rest * factor
    return rest


class _Problem:
    """The objective of one day and its block updates."""

    def __init__(
        self,
        snapshot: Snapshot,
        start: CountState,
        prior: Floats,
        exposure: Floats,
        settings: Settings,
        *,
        first_day: bool,
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
        self.entries = Entries.listed(
            np.ascontiguousarray(coords, np.int32), recent.counts.astype(np.float64), shape
        )
        self.work = Workspace([0] * len(shape), shape, start.delays.shape[1])
        for rows, factor in zip(self.work.rows(), factors, strict=True):
            rows[:] = factor
        ages = np.arange(snapshot.n_dates - 1, -1, -1)
        self.hold = np.where(ages > settings.recent, settings.old, settings.new)[:, None]
        total = float(recent.counts.sum())
        share = np.maximum(start.dates.sum(axis=0) / start.dates.sum(), 0.02)
        size = total * share
        self.pull = settings.least + (0.0 if first_day else settings.pull) * size
        self.pull_delays = settings.least + (0.0 if first_day else settings.pull_delays) * size
        self.tol, self.sweeps = settings.tol, 0
        known = exposure * snapshot.known
        self.flat = np.ascontiguousarray(known.reshape(-1, known.shape[2]))

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
        counts = rows * self._responsibility(mode)
        sums = self._exposures(mode)
        if mode == self._date:
            rows[:] = (counts + self.hold * self.prior) / (sums + self.hold + TINY)
            return
        reference, pull = self._reference(mode)
        rows[:] = (counts + pull * reference) / (sums + pull + TINY)

    def _reference(self, mode: int) -> tuple[Floats, Floats]:
        """Return yesterday's columns of a mode and what they are worth."""
        if mode > self._date:
            return self.start.delays, self.pull_delays
        return self.start.strata[mode], self.pull

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
                reference, pull = self._reference(mode)
                total += float((pull * (factor - reference * np.log(factor + TINY))).sum())
        return total

    def finished(self) -> CountState:
        """Return the state with columns that sum to one, the size in the dates."""
        rows = [r.copy() for r in self.work.rows()]
        for mode in range(self.work.order):
            if mode != self._date:
                sums = rows[mode].sum(axis=0)
                rows[mode] = rows[mode] / sums
                rows[self._date] = rows[self._date] * sums
        strata = tuple(rows[: self._date])
        return replace(
            self.start,
            strata=strata,
            dates=rows[self._date],
            delays=rows[self._date + 1],
            sweeps=self.sweeps,
        )

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
        by_date = thin_times(np.ascontiguousarray(self.flat.T), delays)
        by_date = by_date.reshape(n_sites, n_dates, -1)
        if mode == 0:
            return np.asarray((by_date * dates).sum(axis=1) * others)
        if mode == self._date:
            return np.asarray((by_date * site[:, None, :]).sum(axis=0) * others)
        whole = (by_date * site[:, None, :] * dates).sum(axis=(0, 1)) * others
        return np.tile(whole, (len(rows[mode]), 1))


def _weekday_factors(
    snapshot: Snapshot, start: CountState, settings: Settings
) -> tuple[CountState, Floats]:
    """Return G on the known cells: reported over expected by weekday and delay.

    Of all sites together, and of each beyond that, with pseudo-counts that draw them to one.
    """
    known = snapshot.known
    n_sites = len(start.strata[0])
    if not settings.weekdays:
        return start, np.ones((n_sites, *known.shape))
    recent, weekdays = snapshot.recent, snapshot.weekdays
    offset = snapshot.triangle.n_dates - snapshot.n_dates
    size = (n_sites, snapshot.n_weekdays, snapshot.n_delays)
    site = recent.codes[:, 0] if recent.codes.shape[1] else np.zeros(len(recent.counts), int)
    places = (site, weekdays[recent.dates - offset], recent.delays)
    reported = np.bincount(
        np.ravel_multi_index(places, size), recent.counts, int(np.prod(size))
    ).reshape(size)
    others = np.ones(start.delays.shape[1])
    for rows in start.strata[1:]:
        others = others * rows.sum(axis=0)
    expected = np.zeros(size)
    for weekday in range(snapshot.n_weekdays):
        mine = weekdays == weekday
        # sum over the dates of this weekday whose delay d is known
        dates = thin_times(np.ascontiguousarray(known[mine].astype(float)), start.dates[mine])
        expected[:, weekday] = (start.strata[0] * others) @ (dates * start.delays).T
    pseudo, own = settings.weekday_counts, start.site
    for _ in range(2):
        shared = (reported.sum(axis=0) + pseudo) / ((expected * own).sum(axis=0) + pseudo)
        own = (reported + pseudo) / (expected * shared + pseudo)
    factors = shared * own
    return replace(start, site=own, weekday=shared), factors[:, weekdays]


def _first_state(snapshot: Snapshot, rank: int, seed: int) -> CountState:
    """Return a start from the data: components that report a little faster or slower."""
    rng = np.random.default_rng(seed)
    recent, n_delays = snapshot.recent, snapshot.n_delays
    delays = np.bincount(recent.delays, recent.counts, n_delays) + 1.0
    delays /= delays.sum()
    offset = snapshot.triangle.n_dates - snapshot.n_dates
    dates = np.bincount(recent.dates - offset, recent.counts, snapshot.n_dates)
    out = np.maximum((snapshot.known * delays).sum(axis=1), 0.1)
    dates = dates / out + 1.0
    tilt = np.linspace(-0.04, 0.04, rank) if rank > 1 else np.zeros(1)
    profiles = delays[:, None] * np.exp(-np.arange(n_delays)[:, None] * tilt)
    strata = []
    for axis, known in enumerate(snapshot.triangle.labels or ((None,),)):
        codes = recent.codes[:, axis] if recent.codes.shape[1] else np.zeros_like(recent.dates)
        sums = np.bincount(codes, recent.counts, len(known))
        rows = sums[:, None] * np.exp(0.2 * rng.standard_normal((len(known), rank))) + 1.0
        strata.append(rows / rows.sum(axis=0))
    n_sites = len(strata[0])
    return CountState(
        snapshot.triangle.labels,
        tuple(strata),
        np.repeat(dates[:, None] / rank, rank, axis=1),
        profiles / profiles.sum(axis=0),
        np.ones((n_sites, snapshot.n_weekdays, n_delays)),
        np.ones((snapshot.n_weekdays, n_delays)),
        snapshot.triangle.last - snapshot.n_dates + 1,
    )


def _aligned(snapshot: Snapshot, state: CountState) -> CountState:
    """Bring yesterday's state to today's labels and dates.

    A label that was not there yet begins with its share of the counts; dates that left the
    window are dropped.
    """
    labels, recent = snapshot.triangle.labels, snapshot.recent
    strata, site = list(state.strata), state.site
    if labels != state.labels:
        for axis, known in enumerate(labels):
            before = {label: k for k, label in enumerate(state.labels[axis])}
            sums = np.bincount(recent.codes[:, axis], recent.counts, len(known))
            share = (sums + 0.5) / (sums.sum() + 0.5 * len(known))
            rows = np.repeat(share[:, None], state.delays.shape[1], axis=1)
            places = [(k, before[label]) for k, label in enumerate(known) if label in before]
            rows[[k for k, _ in places]] = state.strata[axis][[b for _, b in places]]
            strata[axis] = rows / rows.sum(axis=0)
            if axis == 0:
                site = np.ones((len(known), *state.site.shape[1:]))
                site[[k for k, _ in places]] = state.site[[b for _, b in places]]
    first = snapshot.triangle.last - snapshot.n_dates + 1
    dates = state.dates[max(0, first - state.first) :]
    return replace(state, labels=labels, strata=tuple(strata), dates=dates, site=site, first=first)
