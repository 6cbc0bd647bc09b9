"""A reporting triangle: counts by strata, reference date and delay, as they were published.

A cell that could have been reported and has no count is a zero; a cell whose report lies in the
future of the as-of date is unknown.  Counts are increments; downward corrections are negative
increments at the delay at which they were published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.data.cells import changes
from tensortide.errors import InputError
from tensortide.nowcast.periods import Days, as_day, complete_until, first_days, last_days
from tensortide.nowcast.positions import positions_of

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("codes", "dates", "delays", "counts")  # of which a record has one row each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triangle:
    """Published increments, listed sparsely; make one with `from_table` or `from_line_list`.

    `codes` has a column per stratum (positions in `labels`), `dates` are periods from `first`
    on, `last` is the as-of period; of the last `quiet` periods nothing has been published yet.
    Delays above `max_delay` are kept apart as overflow: they
    belong to no cell of the triangle, but to the settled count.

    >>> triangle = Triangle.from_table(
    ...     {"date": ["2021-11-01", "2021-11-01", "2021-11-02"], "delay": [0, 1, 0],
    ...      "n": [5, 2, 4]}, reference="date", delay="delay", count="n", max_delay=3)
    >>> triangle.shape, str(triangle.as_of_date)
    ((2, 4), '2021-11-02')
    >>> triangle.as_of("2021-11-01").totals().tolist()
    [5.0]
    """

    strata: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    codes: Positions
    dates: Positions
    delays: Positions
    counts: Floats
    first: int
    last: int
    max_delay: int
    every: str = "day"
    quiet: int = 0

    # ------------------------------------------------------------------ making

    @classmethod
    def from_table(
        cls,
        records: Any,
        *,
        reference: str,
        report: str | None = None,
        delay: str | None = None,
        count: str = "count",
        strata: Sequence[str] = (),
        max_delay: int | None = None,
        cumulative: bool = False,
        every: str = "day",
        duplicates: str = "error",
        early: str = "error",
    ) -> Triangle:
        """Read a long table: a row for each reference date, report date (or delay) and stratum.

        With `cumulative` a count is the total as published at that report; else what came new.
        Several rows of one cell: ``"error"``, ``"sum"`` or ``"last"``; reports before their
        reference date: ``"error"`` or ``"drop"``.  Without a `max_delay` it is 40 days, 8 weeks,
        12 months, 8 quarters or 10 years.
        """
        from tensortide.nowcast.read_triangle import TriangleRules, read_table

        rules = TriangleRules(
            strata=strata, max_delay=max_delay, cumulative=cumulative, every=every,
            duplicates=duplicates, early=early,
        )  # fmt: skip
        return read_table(records, reference, report, delay, count, rules)

    @classmethod
    def from_line_list(
        cls,
        records: Any,
        *,
        reference: str,
        report: str,
        strata: Sequence[str] = (),
        max_delay: int | None = None,
        every: str = "day",
        early: str = "error",
    ) -> Triangle:
        """Read a line list: a row for each case, with its reference and its report date."""
        from tensortide.nowcast.read_triangle import TriangleRules, read_table

        rules = TriangleRules(
            strata=strata, max_delay=max_delay, every=every, duplicates="sum", early=early
        )
        return read_table(records, reference, report, None, None, rules)

    @classmethod
    def from_chainladder(cls, triangle: Any) -> Triangle:
        """Read a triangle of the package chainladder; its index and columns become strata."""
        from tensortide.nowcast.chainladder import read_chainladder

        return read_chainladder(triangle)

    def to_chainladder(self) -> Any:
        """Return a triangle of the package chainladder (months, quarters or years only)."""
        from tensortide.nowcast.chainladder import write_chainladder

        return write_chainladder(self)

    # ------------------------------------------------------------------ looking

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of strata, dates and delays."""
        return (*map(len, self.labels), self.n_dates, self.max_delay + 1)

    @property
    def n_dates(self) -> int:
        """Periods from the first reference date to the as-of date."""
        return self.last - self.first + 1

    @property
    def as_of_date(self) -> np.datetime64:
        """The last day of the period up to which reports are in."""
        return np.datetime64(last_days(self.last, self.every))

    def days(self) -> Days:
        """Return the first day of each reference period."""
        return np.asarray(first_days(np.arange(self.first, self.last + 1), self.every))

    def within(self) -> Flags:
        """Return which records have a delay of the triangle; the others are overflow."""
        return np.asarray(self.delays <= self.max_delay)

    def axis_of(self, name: str) -> int:
        """Return the number of a stratum."""
        if name not in self.strata:
            known = ", ".join(map(repr, self.strata)) or "none"
            raise InputError(f"there is no stratum {name!r}; there are {known}.")
        return self.strata.index(name)

    def totals(self, by: Sequence[str] = (), *, settled: bool = False) -> Floats:
        """Return what is published: an array with an axis per stratum of `by`, then dates.

        With `settled` overflow counts too.
        """
        kept = np.ones(len(self.counts), bool) if settled else self.within()
        return self._array(by, kept, [(self.dates, self.n_dates)])

    def by_delay(self, by: Sequence[str] = ()) -> Floats:
        """Return increments with an axis per stratum of `by`, then dates and delays.

        Cells that are not known yet are NaN.
        """
        axes = [(self.dates, self.n_dates), (self.delays, self.max_delay + 1)]
        sums = self._array(by, self.within(), axes)
        ages = self.n_dates - 1 - np.arange(self.n_dates)
        return np.where(np.arange(self.max_delay + 1) > ages[:, None], np.nan, sums)

    def to_table(self) -> pa.Table:
        """Return the records as a long table: strata, reference_date, delay, count."""
        import pyarrow as pa

        columns: dict[str, Any] = {
            name: pa.array([known[c] for c in self.codes[:, k]])
            for k, (name, known) in enumerate(zip(self.strata, self.labels, strict=True))
        }
        days = first_days(self.dates + self.first, self.every)
        return pa.table(
            columns
            | {"reference_date": days, "delay": self.delays.astype("int32"), "count": self.counts}
        )

    # ------------------------------------------------------------------ views

    def as_of(self, date: Any) -> Triangle:
        """Return the triangle as it stood at the end of a day: later reports do not exist.

        Of weeks or longer periods the last one that was over by then counts.
        """
        day = as_day(date, "as_of")
        last = complete_until(day, self.every)
        if last < self.first:
            raise InputError(
                f"as_of {day} is before the first reference date, "
                f"{first_days(self.first, self.every)}; choose a later day."
            )
        if last > self.last:
            raise InputError(
                f"as_of {day} is after the last report, {self.as_of_date}; what is published "
                "then is not in the data."
            )
        seen = self.first + self.dates + self.delays <= last
        if not seen.any():
            raise InputError(f"nothing had been reported as of {day}; choose a later day.")
        quiet = max(0, last - (self.last - self.quiet))
        # what is reported later, an older date or a new label, does not exist yet either
        view = replace(self.only(seen), last=last, quiet=quiet)
        return view._from_first()._with_known_labels()

    def until(self, date: Any) -> Triangle:
        """Return the triangle as of a later day, nothing having been published since."""
        day = as_day(date, "as_of")
        last = complete_until(day, self.every)
        if last < self.last:
            raise InputError(
                f"{day} is before the last report, {self.as_of_date}: as_of looks back."
            )
        if last > self.last and self.every != "day":
            raise InputError(
                f"as_of {day} is after the last {self.every} that was over when the newest report "
                f"was made, which ended on {self.as_of_date}."
            )
        if last - self.last > self.max_delay:
            raise InputError(
                f"the last report is of {self.as_of_date}, more than the maximum delay of "
                f"{self.max_delay} {self.every}s before {day}; there is nothing to nowcast from."
            )
        return replace(self, last=last, quiet=self.quiet + last - self.last)

    def select(self, **labels: Any) -> Triangle:
        """Return the records of some labels: ``select(age_group=["80+"])``."""
        keep = np.ones(len(self.counts), bool)
        for name, wanted in labels.items():
            axis = self.axis_of(name)
            several = isinstance(wanted, list | tuple | set | np.ndarray)
            listed = list(wanted) if several else [wanted]
            positions = [p for p, label in enumerate(self.labels[axis]) if label in listed]
            if len(positions) < len(listed):
                raise InputError(f"stratum {name!r} has not all labels of {listed!r}.")
            keep &= np.isin(self.codes[:, axis], positions)
        return self.only(keep)._with_known_labels()

    def without_negatives(self) -> Triangle:
        """Return the same totals without negative increments.

        A correction takes back counts of earlier delays of the same stratum and date, the
        newest first; what it exceeds them by is dropped.
        """
        if not (self.counts < 0.0).any():
            return self
        order = np.lexsort((self.delays, self.dates, *self.codes.T[::-1]))
        counts = self.counts[order].copy()
        group = np.column_stack([self.codes, self.dates, self.within()])[order]
        begin = np.maximum.accumulate(np.where(changes(group), np.arange(len(order)), 0))
        for at in np.flatnonzero(counts < 0.0):
            debt, counts[at] = -counts[at], 0.0
            for earlier in range(at - 1, begin[at] - 1, -1):
                paid = min(debt, counts[earlier])
                counts[earlier] -= paid
                debt -= paid
                if debt == 0.0:
                    break
        back = np.empty_like(counts)
        back[order] = counts
        return replace(self, counts=back).only(back != 0.0)

    def since(self, last: int) -> Triangle:
        """Return the reports after a period."""
        return self.only(self.first + self.dates + self.delays > last)

    def collapsed(self, newest: int) -> Triangle:
        """Return the totals of the newest dates, without their delays."""
        kept = self.only((self.dates >= self.n_dates - newest) & self.within())
        return replace(kept, delays=np.zeros_like(kept.delays)).summed()

    def joined(self, other: Triangle) -> Triangle:
        """Return the records of both, on the labels of both; the later as-of date holds."""
        labels = tuple(
            tuple(sorted({*mine, *theirs}, key=str))
            for mine, theirs in zip(self.labels, other.labels, strict=True)
        )
        first = min(self.first, other.first)
        mine, theirs = self.on_axes(labels, first), other.on_axes(labels, first)
        whole = replace(mine, last=max(self.last, other.last))
        return whole.with_records([mine, theirs])

    def with_records(self, parts: Sequence[Triangle]) -> Triangle:
        """Return this triangle with the records of others on its labels and dates."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        return replace(self, **columns).summed()

    def only(self, keep: Flags) -> Triangle:
        """Return the records that are marked, on the same labels and dates."""
        return replace(self, **{name: getattr(self, name)[keep] for name in _COLUMNS})

    def summed(self) -> Triangle:
        """Return each cell once."""
        if not len(self.counts):
            return self
        key = np.column_stack([self.codes, self.dates, self.delays])
        sizes = [*(len(known) for known in self.labels), self.n_dates, int(self.delays.max()) + 1]
        flat, place = np.unique(np.ravel_multi_index(tuple(key.T), sizes), return_inverse=True)
        counts = np.bincount(place, self.counts, len(flat)).astype(np.float64)
        cells = np.stack(np.unravel_index(flat, sizes), axis=1)
        found = replace(
            self, codes=cells[:, :-2], dates=cells[:, -2], delays=cells[:, -1], counts=counts
        )
        return found.only(counts != 0.0)

    def on_axes(self, labels: tuple[tuple[Any, ...], ...], first: int) -> Triangle:
        """Return the same records with the codes of other labels and dates from another first.

        Every label of which there is a record must be among them.
        """
        codes = self.codes.copy()
        for axis, (old, new) in enumerate(zip(self.labels, labels, strict=True)):
            codes[:, axis] = positions_of(old, new)[self.codes[:, axis]]
            lost = codes[:, axis] < 0
            if lost.any():
                label = old[self.codes[lost.argmax(), axis]]
                raise InputError(
                    f"stratum {self.strata[axis]!r} has records of {label!r}, which is not among "
                    "the labels given."
                )
        dates = self.dates + (self.first - first)
        return replace(self, labels=labels, codes=codes, dates=dates, first=first)

    # ------------------------------------------------------------------ inside

    def _from_first(self) -> Triangle:
        """Begin with the first date of which there is a record."""
        begin = int(self.dates.min())
        return replace(self, first=self.first + begin, dates=self.dates - begin)

    def _with_known_labels(self) -> Triangle:
        """Leave out the labels of which there is no record."""
        labels, codes = [], self.codes.copy()
        for axis, known in enumerate(self.labels):
            used = np.unique(self.codes[:, axis])
            labels.append(tuple(known[p] for p in used))
            codes[:, axis] = np.searchsorted(used, self.codes[:, axis])
        return replace(self, labels=tuple(labels), codes=codes)

    def _array(
        self, by: Sequence[str], kept: Flags, more: Sequence[tuple[Positions, int]]
    ) -> Floats:
        """Return sums of the records that are kept, with an axis per stratum of `by`, and more."""
        axes = [(self.codes[:, a], len(self.labels[a])) for a in map(self.axis_of, by)]
        places, sizes = zip(*axes, *more, strict=True)
        flat = np.ravel_multi_index([place[kept] for place in places], sizes)
        sums = np.bincount(flat, self.counts[kept], int(np.prod(sizes)))
        return np.asarray(sums.reshape(sizes))

    def __repr__(self) -> str:
        """Show what the triangle covers."""
        strata = dict(zip(self.strata, map(len, self.labels), strict=True)) or "none"
        return (
            f"<Triangle: dates {first_days(self.first, self.every)} to {self.as_of_date} by "
            f"{self.every}, strata {strata}, max_delay {self.max_delay}, reported "
            f"{self.counts.sum():,.0f}>"
        )
