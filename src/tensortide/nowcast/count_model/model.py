"""The count model of a nowcast: CP with Poisson loss on the known part of the triangle.

    mu[s, t, d] = G[site, weekday(t), d] * sum_r prod_k A_k[s_k, r] C[t, r] P[d, r]

Components are kinds of reporters: their columns of strata, dates and delays.  Given yesterday's
factors (marked 0) and G, a day minimises

    sum over known cells (mu - x log mu)                                 Poisson
  + sum_r n_r [ D(A_k; A_k0) + D(P; P0) ]      D(z; z0) = sum z - z0 log z   pull to yesterday
  + sum_tr s_t ( C - m log C )                                           smooth dates

with ``n_r`` the counts of a component in the window (so yesterday weighs as much as the window;
a component that has few is drawn to the mean of all, too: `Settings.least`, `Settings.common`)
and m a local line through the totals, times weekday, times each component's local share, drawn
to what a date has reported where the line deserves no trust
(`tensortide.nowcast.count_model.date_prior`).  Every
block update is the exact minimum of a bound that touches this objective (expectation and
maximisation), so it never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tensortide.arrays import Floats
from tensortide.nowcast.count_model.date_prior import date_holds, date_prior
from tensortide.nowcast.count_model.fit import CountObjective
from tensortide.nowcast.count_model.start import begin_again, first_state
from tensortide.nowcast.count_model.state import CountState, Settings, align_state, cell_weights
from tensortide.nowcast.count_model.weekdays import weekday_factors
from tensortide.nowcast.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A day's fit: the state, and the factors of sites and weekdays as they were used."""

    state: CountState
    exposure: Floats
    objectives: tuple[float, ...] = ()


@dataclass(eq=False)
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
        if self.settings.signed:
            snapshot = replace(snapshot, signed=True)
        fit = fit_counts(snapshot, self.rank, self.settings, self.state, self.seed, watch=watch)
        self.state = fit.state
        return unseen(snapshot, fit, self.settings)


def fit_counts(
    snapshot: Snapshot,
    rank: int,
    settings: Settings,
    before: CountState | None,
    seed: int = 0,
    *,
    watch: bool = False,
) -> Fit:
    """Minimise the objective of a day, from yesterday's state or from scratch.

    While delays are still seen for the first time, yesterday is no guide: it knew nothing of
    them, and would hold them down for weeks.
    """
    shallow = snapshot.triangle.n_dates <= snapshot.triangle.max_delay + settings.recent
    if before is None or (shallow and settings.fade is None):
        start, sweeps = first_state(snapshot, rank, seed), settings.first_sweeps
    else:
        start, sweeps = align_state(snapshot, before, settings.fade), settings.max_sweeps
        start = begin_again(snapshot, start) if shallow else start
    pulled = before is not None and not shallow
    objective = _objective(snapshot, start, settings, pulled=pulled)
    values = objective.descend(sweeps, watch=watch)
    return Fit(objective.finish(), objective.exposure, tuple(values))


def _objective(
    snapshot: Snapshot, start: CountState, settings: Settings, *, pulled: bool
) -> CountObjective:
    """Return the objective of a day at its start."""
    prior = date_prior(
        start.dates, snapshot.n_dates, snapshot.weekdays, start.delays, smooth=settings.smooth_dates
    )
    prior = prior.adapt(snapshot, start, date_holds(snapshot, settings))
    start = replace(start, dates=np.maximum(prior.rows, 1e-6))
    weights = cell_weights(snapshot, settings.fade)
    sized, exposure = weekday_factors(snapshot, start, settings, weights)
    mean = prior.mean * (sized.dates / start.dates)  # where sizes moved from factors to dates
    return CountObjective(
        snapshot, sized, settings, prior=mean, exposure=exposure, weights=weights, pulled=pulled
    )


def unseen(snapshot: Snapshot, fit: Fit, settings: Settings) -> Floats:
    """Return what is still to come: cells x ages, the as-of date first.

    Delays that no date is old enough for have no estimate, and count nothing.  The strata of the
    last two weeks are scaled to what they have reported.
    """
    n, ages = snapshot.n_dates, snapshot.n_ages
    foreseen = np.arange(snapshot.n_delays) < snapshot.triangle.n_dates
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
        rest[:, age] = mean[:, ~known[date] & foreseen].sum(axis=1)
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
