"""The order of a mode's labels: which come before which, and how long a season is.

Dates, times and whole numbers become whole numbers on a line: days, months where all dates are of
the same day of the month, microseconds.  A timeline keeps the newest of them, sorted, so that a
step finds the labels before a new one without looking at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensortide.arrays import AnyArray, Positions
from tensortide.core.steps.outlook import RECENT, Neighbours
from tensortide.data.labels import DTYPES, Labels

DATED = ("date", "datetime", "datetime UTC")
ORDERED = ("position", "integer", *DATED)
WINDOW = 512  # newest labels that a timeline keeps
LONGEST = 400  # steps of a season, at most
MOST = 5  # seasons that come from the labels
USUAL = (7, 12, 24, 52)  # steps of a season where labels say nothing
HOUR = 3_600_000_000  # microseconds


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
        dtype = DTYPES.get(self.kind, "int64")
        return _numbers(np.array(list(labels), dtype), monthly=self.monthly)

    def after(self, fresh: Sequence[Any], first: int) -> Timeline:
        """Return the timeline with new labels, which stand at positions from `first` on."""
        if not len(fresh):
            return self
        numbers = np.concatenate([self.numbers, self.number(fresh)])
        places = np.concatenate([self.places, np.arange(first, first + len(fresh))])
        order = np.argsort(numbers, kind="stable")[-WINDOW:]
        return replace(self, numbers=numbers[order], places=places[order])

    def before(self, numbers: Positions) -> Neighbours:
        """Return the positions of the labels before some numbers on the line."""
        at = np.searchsorted(self.numbers, numbers)[:, None] - 1 - np.arange(RECENT)
        recent = np.where(at >= 0, self.places[np.maximum(at, 0)], -1)
        wanted = numbers[:, None] - self.unit * np.array(self.periods, np.int64)
        found = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        ago = np.where(self.numbers[found] == wanted, self.places[found], -1)
        return Neighbours(recent, ago)


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
