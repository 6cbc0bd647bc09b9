"""Intervals learned from a model's own past: how far its nowcasts were from what came later.

The layer sees nowcasts only, never the model, so every model gets the same one.  A *target* is the
sum of a unit over `days` neighbouring dates, ending `age` periods before the as-of period.

    v = R + 1 + (0.04 N)^2                      R unseen, N nowcast: a Poisson part, a relative part
    e = truth known today - N of an earlier day; the truth is final once its delays are over, before
        that (but not younger than SETTLING) it is today's nowcast, whose own variance is added
    s^2 = faded mean of e^2 / v                 by age, drawn to the mean of its level
    quantile p: N + z_p sqrt(s^2 v)             never below what is published less corrections

The constants were chosen on forecast dates before 2021-11-22 (docs/nowcasting.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.nowcast.positions import positions_of

RELATIVE = 0.04  # share of a nowcast that its error has beside the Poisson part
HALF_LIFE = 70.0  # periods after which a past error counts half
SETTLING = 7  # age from which today's nowcast stands in for the truth
PRIOR_LEVEL, PRIOR_UNIT = 2.0, 5.0  # past days that the prior spread, and the level's, are worth
ENOUGH = 14  # past as-of days from which a spread can be learned
MEMORY = 150  # past as-of days that are kept
DRIFT = 0.02  # share of what is unseen by which a nowcast may drift off in a period of silence
CORRECTED = 0.01  # share of a published count that a correction may take back


@dataclass(eq=False)
class Spread:
    """The past nowcasts of all units, newest first, and the spread learned from them.

    Arrays are (days back) x units x ages; ``unit_keys`` names the units, so that new ones can
    join on the way.
    """

    unit_keys: list[tuple[object, ...]] = field(default_factory=list)
    nowcasts: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))
    unseen: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))

    def remember(self, keys: Sequence[tuple[object, ...]], nowcast: Floats, unseen: Floats) -> None:
        """Add a day's nowcasts (units x ages)."""
        self.align(keys, nowcast.shape[1])
        self.nowcasts = np.concatenate([nowcast[None], self.nowcasts])[:MEMORY]
        self.unseen = np.concatenate([unseen[None], self.unseen])[:MEMORY]

    def forget_shallow(self, deep: int) -> None:
        """Forget nowcasts from before all delays had been seen, once there are enough since.

        `deep` past periods had dates older than the maximum delay.
        """
        if deep >= ENOUGH:
            self.nowcasts, self.unseen = self.nowcasts[:deep], self.unseen[:deep]

    def skip(self, periods: int) -> None:
        """Leave room for report dates on which there was no nowcast."""
        shape = (min(periods, MEMORY), *self.nowcasts.shape[1:])
        gap = np.full(shape, np.nan)
        self.nowcasts = np.concatenate([gap, self.nowcasts])[:MEMORY]
        self.unseen = np.concatenate([gap, self.unseen])[:MEMORY]

    def align(self, keys: Sequence[tuple[object, ...]], n_ages: int) -> None:
        """Bring the past to the units and ages of today; what did not exist then is NaN."""
        if list(keys) == self.unit_keys and self.nowcasts.shape[2] == n_ages:
            return
        before = positions_of(keys, self.unit_keys)
        there = before >= 0
        for name in ("nowcasts", "unseen"):
            old = getattr(self, name)
            new = np.full((len(old), len(keys), n_ages), np.nan)
            new[:, there, : old.shape[2]] = old[:, before[there], :n_ages]
            setattr(self, name, new)
        self.unit_keys = list(keys)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Today:
    """A day's nowcast of all units: units x ages; `past` has the final counts of older dates.

    For the last `silent` periods nothing has been published; `falls` says that counts have been
    corrected downwards.
    """

    level: Positions
    published: Floats
    unseen: Floats
    past: Floats
    silent: int = 0
    falls: bool = True

    @property
    def nowcast(self) -> Floats:
        """What is published and what is still to come."""
        return self.published + self.unseen


def sum_windows(daily: Floats, days: int) -> Floats:
    """Return sums over `days` ages from each age on (last axis); shorter at the end by days - 1.

    >>> sum_windows(np.arange(4.0), 2).tolist()
    [1.0, 3.0, 5.0]
    """
    if daily.shape[-1] < days:
        return np.asarray(daily[..., :0])
    sums = daily[..., : daily.shape[-1] - days + 1].copy()
    for day in range(1, days):  # a sum that holds an unknown date is unknown, others are not
        sums += daily[..., day : daily.shape[-1] - days + 1 + day]
    return sums


def spreads(today: Today, spread: Spread, days: int) -> tuple[Floats, Floats, Floats]:
    """Return published, nowcast and standard deviation of all targets: units x ages.

    `spread` holds the days before today.  Targets that reach back before the data are NaN.
    """
    n_ages = today.published.shape[1]
    final = today.past
    daily = np.concatenate([today.nowcast, final], axis=1)
    truth = sum_windows(daily, days)  # what is known today of the target of each age
    published = sum_windows(np.concatenate([today.published, final], axis=1), days)[:, :n_ages]
    zeros = np.zeros_like(final)
    missing = sum_windows(np.concatenate([today.unseen, zeros], axis=1), days)[:, :n_ages]
    now = _pad(truth[:, :n_ages], n_ages)
    published, missing = _pad(published, n_ages), _pad(missing, n_ages)
    scale = _scale(now, missing)
    s2 = _learn(today, daily, truth, scale, spread, days)
    if today.silent:  # a date knows what one of an earlier age usually knows
        s2 = s2[:, np.maximum(np.arange(n_ages) - today.silent, 0)]
    drift = DRIFT * today.silent * np.maximum(missing, 0.0)
    return published, now, np.sqrt(s2 * scale + drift * drift)


def quantiles(
    published: Floats, now: Floats, sd: Floats, levels: Sequence[float], *, falls: bool = True
) -> Floats:
    """Return the quantiles of each target, last axis the levels.

    A count may fall below what is published only where corrections downwards occur (`falls`).
    """
    floor = np.maximum((1.0 - CORRECTED) * published - 0.5 if falls else published, 0.0)
    z = np.array([NormalDist().inv_cdf(level) for level in levels])
    return np.asarray(np.maximum(now[..., None] + sd[..., None] * z, floor[..., None]))


def _scale(now: Floats, missing: Floats) -> Floats:
    relative = RELATIVE * np.maximum(now, 0.0)
    return np.asarray(np.maximum(missing, 0.0) + 1.0 + relative * relative)


def _pad(array: Floats, width: int) -> Floats:
    """Return the array with NaN up to a width."""
    short = width - array.shape[1]
    if short <= 0:
        return array
    return np.concatenate([array, np.full((len(array), short), np.nan)], axis=1)


def _learn(
    today: Today, daily: Floats, truth: Floats, scale: Floats, spread: Spread, days: int
) -> Floats:
    """Return s^2 of each unit and age.

    In two rounds: the first learns how much today's nowcasts lack, the second adds that to the
    errors that were measured against them.
    """
    level, n_ages = today.level, today.unseen.shape[1]
    s2 = np.ones((len(truth), n_ages))
    if not len(spread.nowcasts) or not truth.shape[1]:
        return s2
    back = np.arange(1, len(spread.nowcasts) + 1)
    # sums reach back to dates that were final on that day already, and are today
    older = back[:, None] + np.arange(n_ages, n_ages + days - 1)
    place = np.minimum(older, daily.shape[1] - 1)
    final = np.where(older < daily.shape[1], daily[:, place], np.nan)
    past = sum_windows(np.concatenate([spread.nowcasts, final.transpose(1, 0, 2)], axis=2), days)
    nothing = np.zeros((*spread.unseen.shape[:2], days - 1))
    unseen = sum_windows(np.concatenate([spread.unseen, nothing], axis=2), days)
    width = past.shape[2]
    age = back[:, None] + np.arange(width)  # how old the target of that day is today
    there = (age < truth.shape[1]) & (age >= SETTLING + today.silent)
    known = np.where(there, truth[:, np.minimum(age, truth.shape[1] - 1)], np.nan)
    error = known.transpose(1, 0, 2) - past
    own = _scale(past, unseen)
    fade = 0.5 ** ((back - 1.0) / HALF_LIFE)
    live = np.isfinite(error)
    squares = np.where(live, error * error, 0.0)
    weights = np.zeros((len(truth), n_ages))
    weights[:, :width] = np.einsum("l,luh->uh", fade, live.astype(float))
    weights = _over_ages(weights)
    young, at = age < n_ages, np.minimum(age, n_ages - 1)
    lacking = np.zeros_like(squares)
    for _ in range(2):
        ratio = np.where(live, (squares + lacking) / np.where(live, own, 1.0), 0.0)
        sums = np.zeros((len(truth), n_ages))
        sums[:, :width] = np.einsum("l,luh->uh", fade, ratio)
        s2 = _shrink(level, _over_ages(sums), weights)
        variance = np.nan_to_num(s2 * scale)
        lacking = np.where(young, variance[:, at], 0.0).transpose(1, 0, 2)
    return s2


def _shrink(level: Positions, sums: Floats, weights: Floats) -> Floats:
    """Return the mean of each unit, drawn to that of its level, which is drawn to one."""
    s2 = np.ones_like(sums)
    means = {}
    for number in np.unique(level):
        mine = level == number
        means[number] = (sums[mine].mean(axis=0) + PRIOR_LEVEL) / (
            weights[mine].mean(axis=0) + PRIOR_LEVEL
        )
    for number, mean in means.items():
        mine = level == number
        # a level of a single unit (the whole) is drawn to the next finer one
        drawn = means.get(number + 1, mean) if mine.sum() == 1 else mean
        s2[mine] = (sums[mine] + PRIOR_UNIT * drawn) / (weights[mine] + PRIOR_UNIT)
    return s2


def _over_ages(array: Floats) -> Floats:
    """Smooth over neighbouring ages by a triangle of half-width two."""
    n = array.shape[1]
    apart = np.abs(np.arange(n)[:, None] - np.arange(n))
    kernel = np.maximum(0.0, 1.0 - apart / 3.0)
    return np.asarray(array @ (kernel / kernel.sum(axis=0)))
