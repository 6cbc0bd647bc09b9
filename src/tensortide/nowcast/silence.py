"""Report dates on which nothing was published: a holiday, a server that was down.

A date without a single report, when dozens come on others, is no zero: what would have come comes
later, all at once.  While the silence lasts its cells are unknown; afterwards the backlog of the
first report is spread back over the delays that it covers, as reports usually come.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensortide.core.types import Flags, Floats
from tensortide.nowcast.triangle import Triangle

BEFORE = 7  # periods before a silence that tell what was to be expected
PAUSE = 2  # periods without a report that a weekend explains: weekday factors know them
EXPECTED = 14.0  # reports that must be missing: chance of none, one in a million


def silences(triangle: Triangle) -> list[tuple[int, int]]:
    """Return the runs of report periods without any report, as (first, beyond the last).

    Only where some were to be expected; a silence that lasts until the as-of period may be short.
    """
    within = triangle.within()
    report = (triangle.dates + triangle.delays)[within]
    came = np.bincount(report, np.abs(triangle.counts[within]), triangle.n_dates)
    heard = came > 0.0
    begin = int(np.argmax(heard))
    if 2 * heard[begin:].sum() < len(heard) - begin:  # reports are rare: silence is usual
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[True], heard[begin:], [True]])))
    runs = (edges + begin).reshape(-1, 2).tolist()
    return [
        (first, end)
        for first, end in runs
        if came[max(first - BEFORE, 0) : first].mean() * (end - first) > EXPECTED
        and (end - first > PAUSE or end == triangle.n_dates)
    ]


def lasting(triangle: Triangle, runs: list[tuple[int, int]]) -> int:
    """Return for how many periods nothing has been published now."""
    return runs[-1][1] - runs[-1][0] if runs and runs[-1][1] == triangle.n_dates else 0


def spread_back(triangle: Triangle, runs: list[tuple[int, int]]) -> Triangle:
    """Return the same totals with each backlog spread over the silence before it."""
    ended = [(first, end) for first, end in runs if end < triangle.n_dates]
    if not ended:
        return triangle
    profile = _profile(triangle, ended)
    for first, end in ended:
        backlog = (triangle.dates + triangle.delays == end) & triangle.within()
        triangle = _spread(triangle, backlog, end - first, profile)
    return triangle


def _spread(triangle: Triangle, backlog: Flags, length: int, profile: Floats) -> Triangle:
    """Return the triangle with the records of `backlog` shared out over shorter delays."""
    parts = [triangle._only(~backlog)]
    late = triangle._only(backlog)
    lead = np.maximum(late.delays - length, 0)
    running = np.concatenate([[0.0], np.cumsum(profile)])
    whole = running[late.delays + 1] - running[lead]
    for back in range(length + 1):
        there = late.delays - back >= 0
        part = late._only(there)
        share = profile[part.delays - back] / whole[there]
        parts.append(replace(part, delays=part.delays - back, counts=part.counts * share))
    return replace(
        triangle,
        codes=np.concatenate([p.codes for p in parts]),
        dates=np.concatenate([p.dates for p in parts]),
        delays=np.concatenate([p.delays for p in parts]),
        counts=np.concatenate([p.counts for p in parts]),
    )._summed()


def _profile(triangle: Triangle, runs: list[tuple[int, int]]) -> Floats:
    """Return what usually comes at each delay: the mean over report periods that are sound."""
    sound = np.ones(triangle.n_dates, bool)
    for first, end in runs:
        sound[first : end + 1] = False
    report = triangle.dates + triangle.delays
    kept = triangle.within() & sound[np.minimum(report, triangle.n_dates - 1)]
    n_delays = triangle.max_delay + 1
    sums = np.bincount(triangle.delays[kept], np.maximum(triangle.counts[kept], 0.0), n_delays)
    periods = np.flatnonzero(sound)
    chances = np.array([(periods >= d).sum() for d in range(n_delays)])
    return np.asarray((sums + 0.01) / np.maximum(chances, 1))
