"""From long tables and line lists to a triangle; every mistake of the data is named."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.data.cells import changes
from tensortide.data.tables import Table
from tensortide.errors import InputError, warn_user
from tensortide.nowcast.periods import Days, check_every, complete_until, first_days, periods_of
from tensortide.nowcast.table_warnings import (
    doubt_dates,
    doubt_empty,
    doubt_labels,
    doubt_totals,
    doubt_weeks,
)
from tensortide.nowcast.triangle import Triangle
from tensortide.validate import check_choice, check_count

USUAL = {"day": 40, "week": 8, "month": 12, "quarter": 8, "year": 10}  # maximum delays
MOST_DELAYS = 4_000  # ten years of days
LONGEST = 100_000  # days from the first to the last date: more is a typing error


@dataclass(frozen=True, slots=True, kw_only=True)
class TriangleRules:
    """How a table is to be understood."""

    strata: Sequence[str] = ()
    max_delay: int | None = None
    cumulative: bool = False
    every: str = "day"
    duplicates: str = "error"
    early: str = "error"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check_every(self.every)
        if check_count("max_delay", self.longest, least=1) > MOST_DELAYS:
            raise InputError(
                f"max_delay is {self.longest:,} {self.every}s; {MOST_DELAYS:,} at most: name the "
                "delay after which a count is final."
            )
        check_choice("duplicates", self.duplicates, ("error", "sum", "last"))
        check_choice("early", self.early, ("error", "drop"))
        if isinstance(self.strata, str) or not all(isinstance(s, str) for s in self.strata):
            raise InputError(f"strata must be a list of column names, not {self.strata!r}.")

    @property
    def longest(self) -> int:
        """The maximum delay, by default what is usual for such periods."""
        return USUAL[self.every] if self.max_delay is None else self.max_delay


def read_table(
    records: Any,
    reference: str,
    report: str | None,
    delay: str | None,
    count: str | None,
    rules: TriangleRules,
) -> Triangle:
    """Return the triangle of a table; `count` None counts rows."""
    table = Table(records)
    if (report is None) == (delay is None):
        raise InputError("give either the column of report dates (report) or of delays (delay).")
    second = report if report is not None else delay
    assert second is not None
    used = [reference, second, *([count] if count else []), *rules.strata]
    table.require(tuple(used))
    if len(set(used)) < len(used):
        raise InputError(f"columns must differ: {', '.join(map(repr, used))}.")
    if not table.n_records:
        raise InputError("the table has no rows.")
    days = _days(table, reference).astype(np.int64)
    every = rules.every
    if report is not None:
        delays = _days(table, report).astype(np.int64) - days
    else:
        delays = _delays(table, second)
        _check_starts(days, every, reference, second)
    counts = table.values(count) if count else np.ones(table.n_records)
    labels, codes = _strata(table, rules.strata)
    keep = _rows_in_time(delays, rules, table, reference, second)
    codes, days, delays, counts = codes[keep], days[keep], delays[keep], counts[keep]
    if not len(counts):
        raise InputError("no row is left: every report is before its reference date.")
    _check_span(days, delays, np.flatnonzero(keep), (reference, second))
    if every == "day":
        if not doubt_dates(days, reference):
            doubt_dates(days + delays, second)
        doubt_weeks(days)
    # rows are told apart, and totals differenced, by their days; only then periods are made
    codes, days, delays, counts = _distinct(
        codes, days, delays, counts, rules, [n for n in used if n != count], np.flatnonzero(keep)
    )
    new = changes(np.column_stack([codes, days]))
    doubt_totals(new, counts, cumulative=rules.cumulative)
    if rules.cumulative:
        counts = _increments(new, counts)
    if not (counts > 0.0).any():
        what = "no count is above zero" if counts.any() else "all counts are zero"
        raise InputError(f"{what}: there is nothing to complete.")
    doubt_empty(rules.strata, labels, codes[counts != 0.0])
    return _by_period(labels, codes, days, delays, counts, rules, dated=report is not None)


def _check_span(
    days: Positions, delays: Positions, rows: Positions, names: tuple[str, str]
) -> None:
    """Refuse dates that are centuries apart."""
    reports = days + delays
    early, late = int(days.argmin()), int(reports.argmax())
    span = int(reports[late]) - int(days[early])
    if span > LONGEST:
        raise InputError(
            f"the dates span {span:,} days; is one of them a typing error? The first is in "
            f"{names[0]!r}, row {rows[early]}, the last in {names[1]!r}, row {rows[late]}."
        )


def _by_period(
    labels: Sequence[tuple[Any, ...]],
    codes: Positions,
    days: Positions,
    delays: Positions,
    counts: Floats,
    rules: TriangleRules,
    *,
    dated: bool,
) -> Triangle:
    """Return the triangle by periods; `dated` says that delays are days still."""
    every = rules.every
    dates = periods_of(days.astype("datetime64[D]"), every)
    last = int((dates + delays).max())
    if dated:
        seen = (days + delays).astype("datetime64[D]")
        delays = periods_of(seen, every) - dates
        last = max(complete_until(seen.max(), every), int(dates.min()))
        if (first_days(periods_of(seen, every), every) == seen).all():
            last = int(periods_of(seen, every).max())  # reports are known by period: each is whole
    first = int(dates.min())
    over = dates + delays <= last  # a week that is not over is not reported
    live = (counts != 0.0) & over
    if not live.any():
        raise InputError(f"no {every} is over: there is nothing to complete yet.")
    if not over.all():
        warn_user(
            f"{counts[~over].sum():,.0f} counts reported in the {every} from "
            f"{first_days(last + 1, every)} on are left out: it is not over yet."
        )
    return Triangle(
        strata=tuple(rules.strata),
        labels=tuple(labels),
        codes=codes[live],
        dates=dates[live] - first,
        delays=delays[live],
        counts=counts[live],
        first=first,
        last=last,
        max_delay=rules.longest,
        every=every,
    ).summed()


def _check_starts(days: Positions, every: str, reference: str, delay: str) -> None:
    """Refuse delays in periods beside dates that are days within them."""
    starts = first_days(periods_of(days.astype("datetime64[D]"), every), every)
    if (starts.astype(np.int64) != days).any():
        raise InputError(
            f"{delay!r} counts {every}s, but {reference!r} holds single days; give report "
            f"dates in place of delays, or the first day of each {every}."
        )


def _days(table: Table, name: str) -> Days:
    """Return a column of dates; text is read as ISO dates."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.columns[name]
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"{name!r} is missing in row {row}; leave the row out, or fill it in.")
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _from_text(column.to_pylist(), name)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise InputError(f"{name!r} must hold dates, not {kind}; write them as 2021-11-22.")
    if pa.types.is_timestamp(kind) and kind.tz:  # the day where the clock hung, not in Greenwich
        column = pc.local_timestamp(column)
    return np.asarray(column.to_numpy(zero_copy_only=False).astype("datetime64[D]"))


def _from_text(texts: list[str], name: str) -> Days:
    distinct = sorted(set(texts))
    found = {}
    for text in distinct:
        try:
            found[text] = np.datetime64(dt.datetime.fromisoformat(text.strip()).date(), "D")
        except ValueError:
            row = texts.index(text)
            raise InputError(
                f"{name!r} has {text!r} in row {row}, which is no date; {_advice(text)}."
            ) from None
    return np.array([found[text] for text in texts], "datetime64[D]")


def _advice(text: str) -> str:
    found = re.fullmatch(r"\s*(\d{1,2})[./](\d{1,2})[./](\d{4})\s*", text)
    if found:
        day, month, year = found.groups()
        return f"dates are written year-month-day, such as {year}-{month:>02}-{day:>02}"
    return "dates are written year-month-day, such as 2026-01-31"


def _delays(table: Table, name: str) -> Positions:
    values = table.values(name)
    whole = np.round(values)
    if (whole != values).any():
        row = int(np.flatnonzero(whole != values)[0])
        raise InputError(f"{name!r} has {values[row]:g} in row {row}; delays are whole numbers.")
    return whole.astype(np.int64)


def _strata(table: Table, names: Sequence[str]) -> tuple[list[tuple[Any, ...]], Positions]:
    labels = []
    codes = np.zeros((table.n_records, len(names)), np.int64)
    for axis, name in enumerate(names):
        column = table.labels(name)
        order = sorted(range(len(column.distinct)), key=lambda k: _natural(column.distinct[k]))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        labels.append(tuple(column.distinct[k] for k in order))
        doubt_labels(name, labels[-1])
        codes[:, axis] = place[column.codes]
    return labels, codes


def _natural(label: Any) -> list[tuple[bool, int, str]]:
    """Return a key by which 5-14 comes before 15-34."""
    parts = re.split(r"(\d+)", str(label))
    return [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts if p]


def _rows_in_time(
    delays: Positions, rules: TriangleRules, table: Table, reference: str, second: str
) -> Flags:
    """Return the rows to keep: those whose report is not before its reference date."""
    early = delays < 0
    if early.any() and rules.early == "error":
        row = int(np.flatnonzero(early)[0])
        raise InputError(
            f"{int(early.sum())} of {len(delays)} rows are reported before their reference date, "
            f"the first in row {row} ({reference} {table.columns[reference][row].as_py()}, "
            f"{second} {table.columns[second][row].as_py()}); "
            + ("are the two columns swapped?" if 2 * int(early.sum()) > len(delays) else
               "correct them, or drop them with early='drop' (--early drop).")
        )  # fmt: skip
    if early.any():
        warn_user(
            f"{int(early.sum())} of {len(delays)} rows are dropped: reported before their "
            "reference date."
        )
    return np.asarray(~early)


def _distinct(
    codes: Positions,
    dates: Positions,
    delays: Positions,
    counts: Floats,
    rules: TriangleRules,
    used: Sequence[str],
    rows: Positions,
) -> tuple[Positions, Positions, Positions, Floats]:
    """Return each cell once, by the rule for duplicates; order: strata, date, delay."""
    order = np.lexsort((delays, dates, *codes.T[::-1]))  # stable: rows keep their order
    key = np.column_stack([codes, dates, delays])[order]
    new = changes(key)
    values = counts[order]
    if not new.all():
        if rules.duplicates == "error":
            at = int(np.flatnonzero(~new)[0])
            pair = sorted((int(rows[order[at - 1]]), int(rows[order[at]])))
            raise InputError(
                f"{int((~new).sum())} rows repeat a cell, first rows {pair[0]} and {pair[1]} (same "
                f"{', '.join(map(repr, used))}); does another column tell them apart (strata, "
                "--strata)? Else say duplicates='sum' or 'last' (--duplicates sum)."
            )
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(order)) - 1
        values = np.add.reduceat(values, starts) if rules.duplicates == "sum" else values[ends]
        key = key[new]
    return key[:, :-2], key[:, -2], key[:, -1], values


def _increments(new: Flags, totals: Floats) -> Floats:
    """Return what came new at each report; totals that fall give negative increments.

    The rows are sorted by their delays.
    """
    before = np.concatenate([[0.0], totals[:-1]])
    return np.asarray(totals - np.where(new, 0.0, before))
