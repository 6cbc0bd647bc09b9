"""Where a count model begins: components from what has been reported by label, date and delay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.nowcast.count_model.state import CountState
from tensortide.nowcast.snapshot import Snapshot

LEAN, JITTER = 0.5, 0.1  # of the first components: slow labels to slow ones, and chance


def first_state(snapshot: Snapshot, rank: int, seed: int) -> CountState:
    """Return a start from the data: components that report a little faster or slower."""
    rng = np.random.default_rng(seed)
    recent, n_delays = snapshot.recent, snapshot.n_delays
    delays = _smooth(_sums(recent.delays, recent.counts, n_delays))
    offset = snapshot.triangle.n_dates - snapshot.n_dates
    dates = _sums(recent.dates - offset, recent.counts, snapshot.n_dates)
    dates = _complete(dates, snapshot.known, delays)
    strata = []
    for axis, known in enumerate(snapshot.triangle.labels or ((None,),)):
        codes = recent.codes[:, axis] if recent.codes.shape[1] else np.zeros_like(recent.dates)
        sums = _sums(codes, recent.counts, len(known))
        late = _sums(codes, recent.counts * recent.delays, len(known))
        lean = LEAN * _standardise(late, sums)[:, None] * np.linspace(1.0, -1.0, rank)
        rows = sums[:, None] * np.exp(lean + JITTER * rng.standard_normal((len(known), rank)))
        rows = rows + 1.0
        strata.append(rows / rows.sum(axis=0))
    n_sites = len(strata[0])
    return CountState(
        labels=snapshot.triangle.labels,
        strata=tuple(strata),
        dates=np.repeat(dates[:, None] / rank, rank, axis=1),
        delays=_profiles(delays, rank),
        site=np.ones((n_sites, snapshot.n_weekdays, n_delays)),
        weekday=np.ones((snapshot.n_weekdays, n_delays)),
        first=snapshot.triangle.last - snapshot.n_dates + 1,
    )


def begin_again(snapshot: Snapshot, state: CountState) -> CountState:
    """Return a carried state whose dates and delays begin with the totals by date and delay."""
    if state.margin is None:
        return state
    counts, n = np.maximum(state.margin, 0.0), len(state.dates)
    delays = _smooth(counts.sum(axis=0))
    dates = _complete(counts.sum(axis=1)[:n], snapshot.known[:n], delays)
    share = state.dates / state.dates.sum(axis=1, keepdims=True)
    return replace(
        state, dates=dates[:, None] * share, delays=_profiles(delays, state.delays.shape[1])
    )


def _complete(counts: Floats, known: Flags, delays: Floats) -> Floats:
    """Return the counts of dates over the share of delays that are known."""
    out = np.maximum((known * delays).sum(axis=1), 0.1)
    return np.asarray(counts / out + 1.0)


def _sums(places: Positions, counts: Floats, size: int) -> Floats:
    return np.bincount(places, counts, size).astype(np.float64)


def _smooth(counts: Floats) -> Floats:
    """Return shares by delay; one never seen must not weigh because there are many of them."""
    floor = min(1.0, 0.02 * max(float(counts.sum()), 1.0) / len(counts))
    delays = counts + floor
    return np.asarray(delays / delays.sum())


def _profiles(delays: Floats, rank: int) -> Floats:
    """Return a column per component: some report a little faster, some slower."""
    steep = 0.04 * min(1.0, 41.0 / len(delays))  # over very many delays it would become a cliff
    tilt = np.linspace(-steep, steep, rank) if rank > 1 else np.zeros(1)
    profiles = delays[:, None] * np.exp(-np.arange(len(delays))[:, None] * tilt)
    return np.asarray(profiles / profiles.sum(axis=0))


def _standardise(late: Floats, sums: Floats) -> Floats:
    """Return how slowly each label reports beside the others, in standard deviations."""
    mean = (late + 10.0 * late.sum() / max(float(sums.sum()), 1.0)) / (sums + 10.0)
    gap = mean - late.sum() / max(float(sums.sum()), 1.0)
    size = float(np.sqrt(np.average(gap**2, weights=sums + 1e-9)))
    return np.clip(gap / size, -2.0, 2.0) if size > 1e-9 else np.zeros_like(gap)
