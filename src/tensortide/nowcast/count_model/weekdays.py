"""Weekday factors of a count model: which weekdays of a date report faster or slower, by site."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.dense import thin_times
from tensortide.nowcast.count_model.state import CountState, Settings
from tensortide.nowcast.snapshot import Snapshot


def weekday_factors(
    snapshot: Snapshot, start: CountState, settings: Settings, weights: Floats
) -> tuple[CountState, Floats]:
    """Return G, sites x dates x delays: reported over expected by weekday and delay.

    Of all sites together, and of each beyond that, with pseudo-counts that draw them to one.
    """
    n_sites = len(start.strata[0])
    if not settings.weekdays:
        return start, np.ones((n_sites, *weights.shape))
    recent, weekdays = snapshot.recent, snapshot.weekdays
    offset = snapshot.triangle.n_dates - snapshot.n_dates
    size = (n_sites, snapshot.n_weekdays, snapshot.n_delays)
    site = recent.codes[:, 0] if recent.codes.shape[1] else np.zeros(len(recent.counts), int)
    places = (site, weekdays[recent.dates - offset], recent.delays)
    counts = recent.counts * weights[recent.dates - offset, recent.delays]
    flat = np.bincount(np.ravel_multi_index(places, size), counts, int(np.prod(size)))
    reported: Floats = np.asarray(flat, np.float64).reshape(size)
    if start.reported is not None:
        reported = np.maximum(reported + start.reported, 0.0)
    if settings.fade is not None:
        shape = weights.shape
        cells = np.ravel_multi_index((recent.dates - offset, recent.delays), shape)
        new = np.bincount(cells, recent.counts, shape[0] * shape[1]).reshape(shape)
        margin = np.asarray(new if start.margin is None else start.margin + new, np.float64)
        reported = _scale_to_window(reported, margin * weights, weekdays)
        start = replace(start, reported=reported, margin=margin)
    others = np.ones(start.delays.shape[1])
    for rows in start.strata[1:]:
        others = others * rows.sum(axis=0)
    expected = np.zeros(size)
    for weekday in range(snapshot.n_weekdays):
        mine = weekdays == weekday
        # sum over the dates of this weekday whose delay d is known
        dates = thin_times(np.ascontiguousarray(weights[mine]), start.dates[mine])
        expected[:, weekday] = (start.strata[0] * others) @ (dates * start.delays).T
    pseudo, own = settings.weekday_counts, start.site
    for _ in range(2):
        shared = (reported.sum(axis=0) + pseudo) / ((expected * own).sum(axis=0) + pseudo)
        own = (reported + pseudo) / (expected * shared + pseudo)
    start = replace(start, site=own, weekday=shared)
    if settings.fade is not None:
        start = _move_sizes(start, weekdays)
    return start, (start.weekday * start.site)[:, weekdays]


def _move_sizes(start: CountState, weekdays: Positions) -> CountState:
    """Move the size of a weekday from its factors to its dates: what is expected stays the same.

    The factors tell how reports are spread over delays.  A size of theirs, and the dates that
    make up for it, would drift apart over hundreds of days, since no window ends them.
    """
    spread = start.delays @ (start.dates.sum(axis=0) / start.dates.sum())
    sites = start.strata[0].mean(axis=1)
    sizes = np.einsum("s,swd,d->w", sites, start.site * start.weekday, spread) / (
        sites.sum() * spread.sum()
    )
    return replace(
        start, weekday=start.weekday / sizes[:, None], dates=start.dates * sizes[weekdays][:, None]
    )


def _scale_to_window(reported: Floats, margin: Floats, weekdays: Positions) -> Floats:
    """Scale what sites have reported by weekday and delay to the totals of the window.

    Sums that fade cannot lose the dates that leave the window; the small surplus would make the
    factors grow and the dates shrink, day by day.
    """
    scaled = reported.copy()
    for weekday in range(reported.shape[1]):
        total = reported[:, weekday].sum(axis=0)
        target = np.maximum(margin[weekdays == weekday].sum(axis=0), 0.0)
        scaled[:, weekday] *= np.where(total > 0.0, target / np.where(total > 0.0, total, 1.0), 1.0)
    return scaled
