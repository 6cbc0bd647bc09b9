"""What a count model knows: its constants, and what a day leaves to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.errors import InputError
from tensortide.nowcast.positions import positions_of
from tensortide.nowcast.snapshot import Snapshot
from tensortide.validate import check_count, check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The constants of the model, chosen on forecast dates before 2021-11-22.

    Parameters
    ----------
    window
        Dates that the model is fitted to, the maximum delay and a week at least; 0 takes all.
    pull
        Weight of yesterday's columns of strata, as a share of the counts in the window.
    pull_delays
        The same of yesterday's columns of delays.
    first_sweeps
        Sweeps, at most, of a day that starts from scratch.
    least
        Pseudo-counts of the columns at the start of a day, the first day included.
    common
        Pseudo-counts that shrink the columns of a small component towards the pooled columns.
    new
        Weight of the prior of a date up to `recent` periods old, as a share of the date's counts.
    old
        The same of older dates; `date_prior` tells where a prior deserves less.
    weekday_counts
        Pseudo-counts that shrink the weekday factors towards one.
    stratum_counts
        Pseudo-counts that shrink the multipliers of labels towards one; 0 means no multipliers.
    recent
        Periods for which a date is young: for `new`, and for the multipliers of labels.
    fade
        Periods after which a report weighs 1 / e; the economy model alone, which has no counts
        that could leave with the window.
    smooth_dates
        Whether the prior of dates is a local line; else it is yesterday's rows.
    weekdays
        Whether there are weekday factors.
    max_sweeps
        Sweeps, at most, of a day that goes on from yesterday.
    tol
        Share of their total by which the dates must move for another sweep.
    signed
        Whether negative increments count where they were published, for rank one alone; else they
        are taken back from what came before.
    """

    window: int = 60
    pull: float = 1.0
    pull_delays: float = 5.0
    first_sweeps: int = 100
    least: float = 1.0
    common: float = 10.0
    new: float = 0.3
    old: float = 0.03
    weekday_counts: float = 1.0
    stratum_counts: float = 50.0
    recent: int = 14
    fade: float | None = None
    smooth_dates: bool = True
    weekdays: bool = True
    max_sweeps: int = 200
    tol: float = 1e-6
    signed: bool = False

    def __post_init__(self) -> None:
        """Refuse what would not be an objective."""
        for name in ("pull", "pull_delays", "least", "common", "new", "old", "weekday_counts",
                     "stratum_counts", "tol"):  # fmt: skip
            check_number(name, getattr(self, name), least=0.0)
        for name in ("window", "recent"):
            check_count(name, getattr(self, name), least=0)
        for name in ("first_sweeps", "max_sweeps"):
            check_count(name, getattr(self, name), least=1)
        if self.weekdays and self.weekday_counts == 0.0:
            raise InputError("weekday_counts must be larger than 0, or weekdays False.")
        if self.fade is not None and check_number("fade", self.fade, least=0.0) == 0.0:
            raise InputError("fade must be larger than 0: the periods in which reports fade.")


#: at rank one these make a nowcaster the chain-ladder: Poisson alone, all dates, to the end
CHAIN_LADDER = Settings(
    window=0, pull=0.0, pull_delays=0.0, least=0.0, common=0.0, new=0.0, old=0.0, weekdays=False,
    stratum_counts=0.0, smooth_dates=False, first_sweeps=4_000, tol=1e-13, signed=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountState:
    """What a day leaves to the next: columns that sum to one, dates that carry the size.

    `first` is the period of the first row of `dates`; `site` holds the weekday factors of
    sites beyond those of all.  The economy model carries, instead of counts, their shares by
    component: sums for every row (`carried`); and the totals of all strata by date and delay
    (`margin`) and by site, weekday and delay (`reported`).
    """

    labels: tuple[tuple[Any, ...], ...]
    strata: tuple[Floats, ...]
    dates: Floats
    delays: Floats
    site: Floats
    weekday: Floats
    first: int
    sweeps: int = 0
    carried: tuple[Floats, ...] = ()
    reported: Floats | None = None
    margin: Floats | None = None


def align_state(snapshot: Snapshot, state: CountState, fade: float | None = None) -> CountState:
    """Bring yesterday's state to today's labels and dates.

    A label that was not there yet begins with its share of the counts; dates that left the
    window are dropped, and what is carried fades by the days that have passed.
    """
    labels, recent = snapshot.triangle.labels, snapshot.recent
    strata, site = list(state.strata), state.site
    passed = snapshot.triangle.last - (state.first + len(state.dates) - 1)
    share = 1.0 if fade is None else float(np.exp(-passed / fade))
    carried = [share * sums for sums in state.carried]
    reported = None if state.reported is None else share * state.reported
    if labels != state.labels:
        for axis, known in enumerate(labels):
            before = positions_of(known, state.labels[axis])
            there = before >= 0
            sums = np.bincount(recent.codes[:, axis], np.maximum(recent.counts, 0.0), len(known))
            part = (sums + 0.5) / (sums.sum() + 0.5 * len(known))
            rows = np.repeat(part[:, None], state.delays.shape[1], axis=1)
            rows[there] = state.strata[axis][before[there]]
            strata[axis] = rows / rows.sum(axis=0)
            if carried:
                carried[axis] = _move(carried[axis], before, empty=0.0)
            if axis == 0:
                site = _move(state.site, before, empty=1.0)
                if reported is not None:
                    reported = _move(reported, before, empty=0.0)
    first = snapshot.triangle.last - snapshot.n_dates + 1
    gone, older = max(0, first - state.first), max(0, state.first - first)
    # a date before all others may be reported late: it begins like the oldest that are known
    oldest = np.repeat(state.dates[:7].mean(axis=0)[None], older, axis=0)
    dates = np.concatenate([oldest, state.dates[gone:]])
    newer = snapshot.n_dates - len(dates)
    margin = state.margin
    if margin is not None:
        margin = np.pad(margin[gone:], ((older, newer), (0, 0)))
    if carried:
        carried[-2] = np.pad(carried[-2][gone:], ((older, newer), (0, 0)))
    return replace(
        state, labels=labels, strata=tuple(strata), dates=dates, site=site, first=first,
        carried=tuple(carried), reported=reported, margin=margin,
    )  # fmt: skip


def _move(rows: Floats, before: Positions, *, empty: float) -> Floats:
    """Return rows at the positions that they had before; `empty` where there was none."""
    found = np.full((len(before), *rows.shape[1:]), empty)
    found[before >= 0] = rows[before[before >= 0]]
    return found


def cell_weights(snapshot: Snapshot, fade: float | None) -> Floats:
    """Return how much each known cell counts, dates x delays; zero where it is not known."""
    if fade is None:
        return snapshot.known.astype(np.float64)
    ages = np.arange(snapshot.n_dates - 1, -1, -1)[:, None] - np.arange(snapshot.n_delays)
    return np.where(snapshot.known, np.exp(-np.maximum(ages, 0) / fade), 0.0)
