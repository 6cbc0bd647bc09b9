"""Report dates on which nothing was published: a holiday, a server that was down.

A date with hardly a report, when dozens come on others, is no zero: what would have come comes
later, all at once.  While the silence lasts its cells are unknown; afterwards the backlog of the
first full report is spread back over the delays that it covers, as reports usually come.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.nowcast.triangle import Triangle

PAUSE = 2  # periods with hardly a report that a weekend explains: weekday factors know them
HARDLY = 0.05  # share of what was to be expected
EXPECTED = 14.0  # reports that must be missing: chance of none, one in a million
LONGEST = 21  # periods (or the maximum delay) for which a silence is believed; then it is an end
LOOK_BACK = 200  # periods that are looked at


def silences(triangle: Triangle) -> list[tuple[int, int]]:
    """Return the runs of report periods with hardly a report, as (first, beyond the last).

    Only where many were to be expected: beside the same weekday of the weeks before and beside
    the last three periods, so that neither Sundays nor an end of the epidemic are taken for one.
    A silence that lasts until the as-of period may be short.
    """
    n = triangle.n_dates
    within = triangle.within()
    report = (triangle.dates + triangle.delays)[within]
    came = np.bincount(report, np.abs(triangle.counts[within]), n)
    week = 7 if triangle.every == "day" else 1
    begin = max(0, n - LOOK_BACK)
    normal = np.ones(n, bool)
    missing = np.zeros(n)
    for t in range(begin + 4 * week, n):
        same = np.arange(t - week, max(t - 5 * week, begin) - 1, -week)
        same = same[normal[same]]
        recent = np.flatnonzero(normal[max(t - 30, begin) : t])[-3:] + max(t - 30, begin)
        if len(same) < 2 or len(recent) < 3:
            continue
        expected = min(float(np.median(came[same])), float(came[recent].mean()))
        if came[t] < HARDLY * expected:
            normal[t], missing[t] = False, expected
    edges = np.flatnonzero(np.diff(np.concatenate([[True], normal, [True]])))
    longest = max(triangle.max_delay, LONGEST)
    return [
        (first, end)
        for first, end in edges.reshape(-1, 2).tolist()
        if missing[first:end].sum() > EXPECTED
        and (end - first > PAUSE or end == n)
        and (end - first <= longest or end < n)
    ]


def lasting(triangle: Triangle, runs: list[tuple[int, int]]) -> int:
    """Return for how many periods nothing has been published now."""
    found = runs[-1][1] - runs[-1][0] if runs and runs[-1][1] == triangle.n_dates else 0
    return max(found, triangle.quiet)


def spread_back(triangle: Triangle, runs: list[tuple[int, int]]) -> Triangle:
    """Return the same counts with each backlog spread over the silence before it.

    A backlog that comes after the maximum delay was due within it.
    """
    ended = [(first, end) for first, end in runs if end < triangle.n_dates]
    if not ended:
        return triangle
    profile = _profile(triangle, ended)
    for first, end in ended:
        late = triangle.delays - (end - first) <= triangle.max_delay
        backlog = (triangle.dates + triangle.delays == end) & late
        triangle = _spread(triangle, backlog, end - first, profile)
    return triangle


def _spread(triangle: Triangle, backlog: Flags, length: int, profile: Floats) -> Triangle:
    """Return the triangle with the records of `backlog` shared out over shorter delays."""
    parts = [triangle.only(~backlog)]
    late = triangle.only(backlog)
    running = np.concatenate([[0.0], np.cumsum(profile)])
    last = np.minimum(late.delays, triangle.max_delay)
    whole = running[last + 1] - running[np.maximum(late.delays - length, 0)]
    for back in range(length + 1):
        target = late.delays - back
        there = (target >= 0) & (target <= triangle.max_delay)
        part = late.only(there)
        share = profile[target[there]] / whole[there]
        parts.append(replace(part, delays=target[there], counts=part.counts * share))
    return triangle.with_records(parts)


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
