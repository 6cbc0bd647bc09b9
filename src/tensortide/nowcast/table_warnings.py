"""What a table's rows make doubtful: said as a warning, since it may be meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.errors import warn_user

GAP = 400  # days without a date that look like a typing error
ENOUGH = 10  # dates (or steps) from which a habit can be read
MOST, MANY = 0.9, 0.25  # shares that a habit has


def doubt_dates(days: Positions, reference: str) -> bool:
    """Say when a long time without any date looks like a typing error; return whether it does."""
    known = np.unique(days)
    gaps = np.diff(known)
    if len(gaps) and int(gaps.max()) > GAP:
        at = int(gaps.argmax())
        before, after = (np.datetime64(int(day), "D") for day in known[at : at + 2])
        warn_user(
            f"there are {int(gaps.max()):,} days without any {reference!r} between {before} and "
            f"{after}; is a date before or after them a typing error?"
        )
        return True
    return False


def doubt_weeks(days: Positions) -> None:
    """Say when dates that are read as days look like weeks."""
    known = np.unique(days)
    if len(known) >= 4 and (np.diff(known) % 7 == 0).all():
        warn_user(
            "all reference dates are whole weeks apart; are they weeks? Then say every='week' "
            "(--every week)."
        )


def doubt_empty(strata: Sequence[str], labels: Sequence[Sequence[Any]], counted: Positions) -> None:
    """Say which labels have no count: there is nothing to nowcast of them."""
    for axis, (name, known) in enumerate(zip(strata, labels, strict=True)):
        empty = np.setdiff1d(np.arange(len(known)), counted[:, axis])
        if len(empty):
            listed = ", ".join(repr(known[k]) for k in empty[:5])
            more = "" if len(empty) <= 5 else f" and {len(empty) - 5} more"
            warn_user(f"no count but zero of {name!r} {listed}{more}: they get no nowcast.")


def doubt_labels(name: str, labels: Sequence[Any]) -> None:
    """Say when two labels of a stratum look like one that is written in two ways."""
    seen: dict[str, Any] = {}
    for label in labels:
        plain = " ".join(str(label).casefold().split())
        if plain in seen:
            warn_user(
                f"{name!r} has the labels {seen[plain]!r} and {label!r}, which differ only in "
                "capitals or blanks; they are taken as two. If they are one, write them alike."
            )
        seen[plain] = label


def doubt_totals(new: Flags, counts: Floats, *, cumulative: bool) -> None:
    """Say when increments look like totals, or totals like increments.

    The rows are sorted by stratum, date and delay; `new` marks the first of each date.
    """
    later = np.flatnonzero(~new)
    rises = counts[later] - counts[later - 1]
    if cumulative:
        falls = int((rises < 0.0).sum())
        if len(rises) >= ENOUGH and falls > MANY * len(rises):
            warn_user(
                f"{falls:,} of {len(rises):,} totals are lower than the report before; are the "
                "counts what came new? Then leave out cumulative=True (--cumulative)."
            )
        return
    date = np.cumsum(new)[later]
    reports = np.bincount(date)
    fell = np.bincount(date, rises < 0.0)
    largest, newest = np.zeros(len(reports)), np.zeros(len(reports))
    np.maximum.at(largest, date, rises)
    newest[date] = rises  # rows are in order: the last one of each date stays
    telling = (reports >= 2) & (newest < largest)  # totals level off; increments may still rise
    grown = int((telling & (fell == 0)).sum())
    if int(telling.sum()) >= ENOUGH and grown > MOST * int(telling.sum()):
        warn_user(
            f"the counts of {grown:,} of {int(telling.sum()):,} dates never fall from report to "
            "report; are they totals so far? Then say cumulative=True (--cumulative)."
        )
