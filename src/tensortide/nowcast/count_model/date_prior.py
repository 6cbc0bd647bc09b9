"""The prior of the date rows: a local line through the totals, weekdays, slowly moving shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.nowcast.count_model.state import CountState, Settings
from tensortide.nowcast.snapshot import Snapshot

BANDWIDTH = 10.0  # days over which the line is fitted
SHARES = 5.0  # days over which a component's share of the total is averaged
STEADY = 4.0  # variance, in days squared, by which the slope is drawn to zero
STEEPEST = 0.1  # slope of the logarithm a day, at most: doubling within a week
LEAD = 3  # days that the line is carried on when its own past errors are measured
EASE = 0.1  # the part of those squared errors that counts against the line
FREEDOM = 50.0  # of the t-law by which a date goes its own way when its reports contradict


@dataclass(frozen=True, slots=True, eq=False)
class DatePrior:
    """Prior means of the date rows, the relative variance of their totals, a start for the rows."""

    mean: Floats
    variance: Floats
    rows: Floats

    def adapt(self, snapshot: Snapshot, start: CountState, hold: Floats) -> DatePrior:
        """Return the prior whose totals know how far they are to be trusted.

        A gamma prior of weight `hold` has the relative variance ``1 / (hold * mean)``.  It
        deserves less where the line missed by more in the past, and, as under a t-law, where
        what a date has reported contradicts it: an outbreak must not be averaged with the calm
        before it.  With the part w that it deserves the total would be
        ``(reported + w hold m) / (share + w hold)``, `share` of the date being known.  The mean
        returned is the one that leads there at full weight, so that the mix of components stays
        held.
        """
        mean = np.maximum(self.mean.sum(axis=1), 1e-300)
        weekday = start.weekday[snapshot.weekdays] * snapshot.known
        share = ((weekday @ start.delays) * (self.mean / mean[:, None])).sum(axis=1)
        reported = np.maximum(snapshot.by_date, 0.0)
        wide = np.minimum(1.0, 1.0 / np.maximum(hold * mean * EASE * self.variance, 1e-300))
        expected = mean * share
        spread = np.maximum(expected + self.variance * expected**2, 1e-300)
        surprise = (reported - expected) ** 2 / spread
        part = wide * np.minimum(1.0, (FREEDOM + 1.0) / (FREEDOM + surprise))
        free = reported * (1.0 - part) + part * mean * (share + hold)
        total = free / np.maximum(share + part * hold, 1e-300)
        adapted = self.mean * (total / mean)[:, None]
        n_old = len(start.dates)
        return DatePrior(adapted, self.variance, np.concatenate([start.dates, adapted[n_old:]]))


def date_holds(snapshot: Snapshot, settings: Settings) -> Floats:
    """Return the weight of the prior of each date, before it is doubted."""
    ages = np.arange(snapshot.n_dates - 1, -1, -1)
    return np.where(ages > settings.recent, settings.old, settings.new)


def date_prior(
    rows: Floats, n_dates: int, weekdays: Positions, delays: Floats, *, smooth: bool = True
) -> DatePrior:
    """Return the prior of all date rows, before it is compared with what they have reported.

    `rows` are yesterday's; dates beyond them are new.  Only the total is extrapolated: a
    component that went on along its own slope would run away.
    """
    n_old, rank = rows.shape
    n_new = n_dates - n_old
    filled = np.concatenate([rows, np.repeat(rows[-7:].mean(axis=0)[None], n_new, axis=0)])
    if not smooth:
        return DatePrior(filled, np.zeros(n_dates), filled)
    total = np.maximum(filled.sum(axis=1), 0.05)
    at = np.arange(n_dates)
    out = np.cumsum(delays.mean(axis=1))
    known = np.zeros(n_dates)  # the share of each old date that was known yesterday
    known[:n_old] = out[np.minimum(n_old - 1 - at[:n_old], len(out) - 1)]
    effect = _weekday_effect(total[:n_old], weekdays)
    level = np.log(total + 0.5) - effect[weekdays]
    share = filled + 0.01 * total[:, None] / rank
    share /= share.sum(axis=1, keepdims=True)
    apart = (at[None, :] - at[:, None]).astype(
        np.float64
    )  # of a date (column) from the one in question (row)
    near = np.exp(-0.5 * (apart / BANDWIDTH) ** 2) * known
    size = np.exp(_line(level, near, apart) + effect[weekdays])
    ahead = np.exp(-0.5 * ((apart + LEAD) / BANDWIDTH) ** 2) * known * (apart <= -LEAD)
    missed = level - _line(level, ahead, apart)
    judged = near * known * (ahead.sum(axis=1) > 1.0)
    variance = (judged @ missed**2) / np.maximum(judged.sum(axis=1), 1e-9)
    close = np.exp(-np.abs(apart) / SHARES) * known * np.sqrt(total)
    mixed = (close @ share) / close.sum(axis=1, keepdims=True)
    prior = size[:, None] * mixed
    return DatePrior(prior, variance, np.concatenate([rows, prior[n_old:]]))


def _line(level: Floats, near: Floats, apart: Floats) -> Floats:
    """Return the local line through `level` at each date, weighted by `near`."""
    weight = np.maximum(near.sum(axis=1), 1e-300)
    middle = (near * apart).sum(axis=1) / weight
    height = (near * level).sum(axis=1) / weight
    lean = near * (apart - middle[:, None])
    slope = (lean * (level - height[:, None])).sum(axis=1) / (
        (lean * (apart - middle[:, None])).sum(axis=1) + STEADY * weight
    )
    return np.asarray(height - np.clip(slope, -STEEPEST, STEEPEST) * middle)


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
