"""Periods as whole numbers: days, weeks (from Monday), months, quarters, years."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from tensortide.arrays import Positions
from tensortide.errors import InputError
from tensortide.validate import check_choice

EVERY = ("day", "week", "month", "quarter", "year")
_MONDAY = 3  # 1970-01-01 was a Thursday

Days = npt.NDArray[np.datetime64]


def periods_of(days: Days, every: str) -> Positions:
    """Return the number of the period in which each day lies.

    >>> periods_of(np.array(["1970-01-05", "1970-01-11"], "datetime64[D]"), "week").tolist()
    [1, 1]
    """
    numbers = days.astype("datetime64[D]").astype(np.int64)
    if every == "day":
        return np.asarray(numbers)
    if every == "week":
        return np.asarray((numbers + _MONDAY) // 7)
    months = days.astype("datetime64[M]").astype(np.int64)
    return np.asarray(months // {"month": 1, "quarter": 3, "year": 12}[every])


def first_days(periods: Positions | int, every: str) -> Any:
    """Return the first day of each period.

    >>> str(first_days(1, "week")), str(first_days(204, "quarter"))
    ('1970-01-05', '2021-01-01')
    """
    numbers = np.asarray(periods, np.int64)
    if every == "day":
        return numbers.astype("datetime64[D]")
    if every == "week":
        return (numbers * 7 - _MONDAY).astype("datetime64[D]")
    months = numbers * {"month": 1, "quarter": 3, "year": 12}[every]
    return months.astype("datetime64[M]").astype("datetime64[D]")


def last_days(periods: Positions | int, every: str) -> Any:
    """Return the last day of each period.

    >>> str(last_days(1, "week"))
    '1970-01-11'
    """
    return first_days(np.asarray(periods, np.int64) + 1, every) - np.timedelta64(1, "D")


def complete_until(day: np.datetime64, every: str) -> int:
    """Return the last period that is over at the end of a day.

    >>> complete_until(np.datetime64("1970-01-10"), "week")
    0
    """
    return int(periods_of(np.array([day + np.timedelta64(1, "D")]), every)[0]) - 1


def check_every(every: Any) -> str:
    """Return the length of a period if it is one."""
    return check_choice("every", every, EVERY)


def as_day(date: Any, name: str) -> np.datetime64:
    """Return a date given as text, date or datetime64."""
    found: Any = date
    if isinstance(found, str):
        with suppress(ValueError):
            found = dt.date.fromisoformat(found)
    if isinstance(found, dt.datetime):
        found = found.date()
    if isinstance(found, dt.date):
        return np.datetime64(found.isoformat(), "D")
    if isinstance(found, np.datetime64) and not np.isnat(found):
        return np.datetime64(str(found.astype("datetime64[D]")), "D")
    raise InputError(f"{name} must be a date such as '2021-11-22', not {date!r}.")
