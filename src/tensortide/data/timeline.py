"""The order of a mode's labels: which come before which, and how long a season is.

Dates, times and whole numbers become whole numbers on a line: days, months where all dates are of
the same day of the month, microseconds.  A timeline keeps the newest of them, sorted, so that a
step finds the labels before a new one without looking at all.
"""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensortide.arrays import AnyArray, Flags, Positions
from tensortide.core.steps.horizons import SEASONS, Sight
from tensortide.core.steps.outlook import RECENT, Neighbours
from tensortide.data.labels import DTYPES, Labels
from tensortide.errors import InputError

DATED = ("date", "datetime", "datetime UTC")
ORDERED = ("position", "integer", *DATED)
WINDOW = 512  # newest labels that a timeline keeps
LONGEST = 400  # steps of a season, at most
MOST = 5  # seasons that come from the labels
USUAL = (7, 12, 24, 52)  # steps of a season where labels say nothing
HOUR = 3_600_000_000  # microseconds
WEEKS = 4  # whole weeks of daily labels after which a day of the week without any is closed
DAILY = 0.8  # share of the days of the week that are not closed which have labels then, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The newest labels of a mode in ascending order: their numbers and positions.

    `monthly` says that dates are counted in months, `unit` is the usual distance of two labels,
    and `periods` are the seasons, in units.
    """

    mode: int
    kind: str
    monthly: bool
    unit: int
    periods: tuple[int, ...]
    numbers: Positions
    places: Positions

    @classmethod
    def first(cls, mode: int, labels: Labels) -> Timeline:
        """Sort the first labels of a mode and find out how they are counted."""
        monthly = labels.kind == "date" and _monthly(labels.array())
        line = cls.of(mode, labels, unit=1, monthly=monthly, periods=())
        gaps = np.diff(line.numbers)
        unit = max(int(np.median(gaps)), 1) if len(gaps) else 1
        return replace(line, unit=unit, periods=usual_periods(labels.kind, unit, monthly=monthly))

    @classmethod
    def of(
        cls, mode: int, labels: Labels, *, unit: int, monthly: bool, periods: Sequence[int]
    ) -> Timeline:
        """Sort all labels of a mode."""
        numbers = _numbers(labels.array(), monthly=monthly)
        order = np.argsort(numbers, kind="stable")[-WINDOW:]
        return cls(
            mode=mode, kind=labels.kind, monthly=monthly, unit=unit, periods=tuple(periods),
            numbers=numbers[order], places=order,
        )  # fmt: skip

    def number(self, labels: Sequence[Any]) -> Positions:
        """Return labels as numbers on the line."""
        return on_a_line(self.kind, labels, monthly=self.monthly)

    def place(self, labels: Sequence[Any]) -> Positions:
        """Return where labels stand: as their numbers, but no two at one place within a month."""
        return on_a_line(self.kind, labels)

    def is_old(self, numbers: Positions) -> Flags:
        """Tell which numbers lie before those of the `RECENT` newest labels."""
        return np.asarray(numbers < self.numbers[-RECENT:].min(initial=np.iinfo(np.int64).max))

    def after(self, fresh: Sequence[Any], first: int) -> Timeline:
        """Return the timeline with new labels, which stand at positions from `first` on."""
        if not len(fresh):
            return self
        numbers = np.concatenate([self.numbers, self.number(fresh)])
        places = np.concatenate([self.places, np.arange(first, first + len(fresh))])
        order = np.argsort(numbers, kind="stable")[-WINDOW:]
        return Timeline(
            mode=self.mode, kind=self.kind, monthly=self.monthly, unit=self.unit,
            periods=self.periods, numbers=numbers[order], places=places[order],
        )  # fmt: skip

    def before(self, numbers: Positions) -> Neighbours:
        """Return the positions of the labels before some numbers on the line."""
        if not len(numbers):
            return Neighbours(*(np.empty((0, n), np.int64) for n in (RECENT, len(self.periods))))
        at = np.searchsorted(self.numbers, numbers)[:, None] - 1 - np.arange(RECENT)
        recent = np.where(at >= 0, self.places[np.maximum(at, 0)], -1)
        wanted = numbers[:, None] - self.unit * np.array(self.periods, np.int64)
        found = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        ago = np.where(self.numbers[found] == wanted, self.places[found], -1)
        return Neighbours(recent, ago)

    def open_days(self) -> Flags:
        """Tell for each day of the week (a number modulo 7) whether it can have a label.

        All can, until `WEEKS` whole weeks of daily labels are known; then those that have one.
        """
        opened = np.bincount(self.numbers % 7, minlength=7) > 0
        weeks = int(self.numbers[-1] - self.numbers[0] + 1) / 7
        daily = self.kind == "date" and not self.monthly and self.unit < 7
        if daily and weeks >= WEEKS and len(self.numbers) >= DAILY * weeks * opened.sum():
            return opened
        return np.ones(7, bool)

    def moves(self, steps: int) -> list[int]:
        """Return how far the next labels are from the newest one: closed days are stepped over."""
        opened = self.open_days()
        if opened.all():
            return [self.unit * step for step in range(1, steps + 1)]
        week = [day for day in range(1, 8) if opened[(int(self.numbers[-1]) + day) % 7]]
        return [7 * (step // len(week)) + week[step % len(week)] for step in range(steps)]

    def is_next(self, number: int) -> bool:
        """Tell whether a number is not beyond the next label."""
        return number - int(self.numbers[-1]) <= self.moves(1)[0]

    def horizon(self, number: int) -> int:
        """Return how many steps a number lies ahead of the newest label, closed days too."""
        return max(-((int(self.numbers[-1]) - number) // self.unit), 1)

    def season_numbers(self, numbers: Positions, horizon: int) -> Positions:
        """Return the numbers one and more whole seasons before some that are a horizon away."""
        periods = np.array(self.periods, np.int64)
        lags = periods[:, None] * (-(-horizon // periods[:, None]) + np.arange(SEASONS))
        return np.asarray(numbers[:, None, None] - self.unit * lags)

    def cutoff(self, numbers: Positions, horizon: int) -> Positions:
        """Return the numbers before which labels are known some steps before others."""
        return numbers - self.unit * (horizon - 1)

    def sight(self, numbers: Positions, horizon: int) -> Sight:
        """Return what is known of some numbers on the line some steps before them."""
        known = np.searchsorted(self.numbers, self.cutoff(numbers, horizon))
        at = known[:, None] - 1 - np.arange(RECENT)
        recent = np.where(at >= 0, self.places[np.maximum(at, 0)], -1)
        wanted = self.season_numbers(numbers, horizon)
        found = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        seasons = np.where(self.numbers[found] == wanted, self.places[found], -1)
        return Sight(horizon=horizon, recent=recent, seasons=seasons, known=known)

    def labels_ahead(self, labels: Labels, steps: int) -> list[Any]:
        """Return the next labels after the newest one, in the usual distance, on open days."""
        last, newest = int(self.numbers[-1]), labels.label(int(self.places[-1]))
        moves = self.moves(steps)
        if self.kind not in DATED:
            if last + moves[-1] >= 2**63:
                raise InputError(f"{steps:,} steps after {newest} numbers end; ask for fewer.")
            return [last + move for move in moves]
        try:
            if self.monthly:
                end = month_ends(labels.array())
                return [_in_month(last + move, newest.day, at_end=end) for move in moves]
            one = dt.timedelta(days=1) if self.kind == "date" else dt.timedelta(microseconds=1)
            return [newest + move * one for move in moves]
        except (OverflowError, ValueError):
            raise InputError(
                f"{steps:,} steps after {newest} the calendar ends; ask for fewer."
            ) from None


def on_a_line(kind: str, labels: Sequence[Any], *, monthly: bool = False) -> Positions:
    """Return labels of an ordered kind as whole numbers.

    >>> on_a_line("date", [dt.date(1970, 1, 2), dt.date(1970, 3, 1)]).tolist()
    [1, 59]
    """
    return _numbers(np.array(list(labels), DTYPES.get(kind, "int64")), monthly=monthly)


def month_ends(days: AnyArray) -> bool:
    """Tell whether dates are the last days of their months, of more than one length.

    >>> month_ends(np.array(["2026-01-31", "2026-02-28"], "datetime64[D]"))
    True
    """
    months = days.astype("datetime64[M]")
    first = (days - months.astype("datetime64[D]")).astype(int)
    last = ((months + 1).astype("datetime64[D]") - days).astype(int)
    return bool((last == 1).all() and (np.ptp(first) > 0 or first[0] == 30))


def _in_month(number: int, day: int, *, at_end: bool) -> dt.date:
    """Return the date in a month that is counted from 1970 on; the last day if it is shorter."""
    year, month = 1970 + number // 12, number % 12 + 1
    longest = calendar.monthrange(year, month)[1]
    return dt.date(year, month, longest if at_end else min(day, longest))


def usual_periods(kind: str, unit: int, *, monthly: bool = False) -> tuple[int, ...]:
    """Return the seasons that labels of a kind suggest, in steps.

    >>> usual_periods("date", 1), usual_periods("date", 3, monthly=True)
    ((7, 365), (4,))
    """
    if kind not in DATED:
        return USUAL
    if monthly:
        cycles = [12]
    elif kind == "date":
        cycles = [7, 364 if unit % 7 == 0 else 365]
    else:
        cycles = [
            HOUR,
            24 * HOUR,
            168 * HOUR,
            24 * HOUR * (364 if unit % (168 * HOUR) == 0 else 365),
        ]
    steps = [cycle // unit for cycle in cycles if cycle % unit == 0]
    return tuple(n for n in steps if 2 <= n <= LONGEST)[:MOST]


def ordered_mode(labels: Sequence[Labels], records: Positions | None = None) -> int | None:
    """Return the mode that has an outlook, None where no labels have an order.

    The last one of dates or times; else, of numbers, the one in whose order the records come, else
    the last; of positions the last.  Where another one turns out to grow, that has it
    (`tensortide.online.ahead`).
    """
    for kinds in (DATED, ("integer",), ("position",)):
        found = [mode for mode, known in enumerate(labels) if known.kind in kinds]
        if found and kinds == ("integer",) and records is not None:
            found = [m for m in found if _ascending(labels[m], records[:, m])] or found
        if found:
            return found[-1]
    return None


def _ascending(labels: Labels, positions: Positions) -> bool:
    """Tell whether records come in the order of the labels of a mode, more than one of them."""
    numbers = _numbers(labels.array(), monthly=False)[positions]
    return bool(len(labels) > 1 and (numbers[1:] >= numbers[:-1]).all())


def _monthly(days: AnyArray) -> bool:
    """Tell whether all dates are of one day of the month, or the last of theirs."""
    if len(days) < 2:
        return False
    months = days.astype("datetime64[M]")
    first = (days - months.astype("datetime64[D]")).astype(int)
    last = ((months + 1).astype("datetime64[D]") - days).astype(int)
    return bool(len(np.unique(months)) == len(days) and (np.ptp(first) == 0 or (last == 1).all()))


def _numbers(array: AnyArray, *, monthly: bool) -> Positions:
    if monthly:
        array = array.astype("datetime64[M]")
    return np.asarray(array.astype("int64"))
