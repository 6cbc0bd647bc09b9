"""The prior of the date rows: a local line through the totals, weekdays, slowly moving shares."""

from __future__ import annotations

import numpy as np

from tensortide.core.types import Floats, Positions

BANDWIDTH = 10.0  # days over which the line is fitted
SHARES = 5.0  # days over which a component's share of the total is averaged
STEADY = 4.0  # variance, in days squared, by which the slope is drawn to zero


def date_prior(
    rows: Floats, n_dates: int, weekdays: Positions, delays: Floats, *, smooth: bool = True
) -> tuple[Floats, Floats]:
    """Return the prior means of all date rows, and the rows to start from.

    `rows` are yesterday's; dates beyond them are new.  Only the total is extrapolated: a
    component that went on along its own slope would run away.
    """
    n_old, rank = rows.shape
    n_new = n_dates - n_old
    filled = np.concatenate([rows, np.repeat(rows[-7:].mean(axis=0)[None], n_new, axis=0)])
    if not smooth:
        return filled, filled
    total = np.maximum(filled.sum(axis=1), 0.05)
    at = np.arange(n_dates)
    out = np.cumsum(delays.mean(axis=1))
    trust = np.zeros(n_dates)  # the share of each old date that was known yesterday
    trust[:n_old] = out[np.minimum(n_old - 1 - at[:n_old], len(out) - 1)]
    effect = _weekday_effect(total[:n_old], weekdays)
    level = np.log(total + 0.5) - effect[weekdays]
    share = filled + 0.01 * total[:, None] / rank
    share /= share.sum(axis=1, keepdims=True)
    apart = at[None, :] - at[:, None]  # of a date (column) from the one in question (row)
    near = np.exp(-0.5 * (apart / BANDWIDTH) ** 2) * trust
    weight = near.sum(axis=1)
    middle = (near * apart).sum(axis=1) / weight
    height = (near * level).sum(axis=1) / weight
    lean = near * (apart - middle[:, None])
    slope = (lean * (level - height[:, None])).sum(axis=1) / (
        (lean * (apart - middle[:, None])).sum(axis=1) + STEADY * weight
    )
    size = np.exp(height - slope * middle + effect[weekdays])
    close = np.exp(-np.abs(apart) / SHARES) * trust * np.sqrt(total)
    mixed = (close @ share) / close.sum(axis=1, keepdims=True)
    prior = size[:, None] * mixed
    return prior, np.concatenate([rows, prior[n_old:]])


def _weekday_effect(total: Floats, weekdays: Positions) -> Floats:
    """Return the logarithm of each weekday's size beside the mean of its week."""
    n_weekdays = int(weekdays.max()) + 1 if len(weekdays) else 1
    effect = np.zeros(max(n_weekdays, 7))
    if len(total) < 14 or n_weekdays == 1:
        return effect
    mean = np.convolve(total, np.ones(7) / 7.0, "valid")
    ratio = np.log((total[3:-3] + 2.0) / (mean + 2.0))
    for weekday in range(n_weekdays):
        mine = ratio[weekdays[3 : len(total) - 3] == weekday]
        effect[weekday] = mine.sum() / (len(mine) + 1.0)
    return np.asarray(effect - effect[:n_weekdays].mean())
