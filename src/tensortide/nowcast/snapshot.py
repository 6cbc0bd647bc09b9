"""What is known on one as-of day, arranged for models: the newest dates by age, all cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.nowcast.triangle import Triangle

_MONDAY = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """A triangle as of its last day, cut to the newest `window` dates.

    *Cells* are the combinations of strata that have been reported; *age* counts periods back
    from the as-of period, so a date of age a has its delays 0..a known, less the periods for which
    nothing has been published (`silent`).  With `news`, the triangle holds totals only, and what
    was reported since the last step stands apart.  `signed` leaves negative increments where they
    were published, in place of taking them back from what came before.
    """

    triangle: Triangle
    window: int
    news: Triangle | None = None
    silent: int = 0
    signed: bool = False

    def cut(self, window: int) -> Snapshot:
        """Return the same day with another window; what does not depend on it is shared."""
        other = replace(self, window=window)
        other.__dict__.update(cells=self.cells, published=self.published)
        return other

    @cached_property
    def recent(self) -> Triangle:
        """The increments of the window, without negative ones; or the news alone, as they are."""
        t = self.triangle if self.news is None else self.news
        inside = (t.dates > t.n_dates - 1 - self.n_dates) & t.within()
        cut = t.only(inside)
        return cut if self.signed or self.news is not None else cut.without_negatives()

    @property
    def n_dates(self) -> int:
        """Dates in the window."""
        return min(self.window, self.triangle.n_dates)

    @property
    def n_delays(self) -> int:
        """Delays of the triangle, 0 included."""
        return self.triangle.max_delay + 1

    @property
    def n_ages(self) -> int:
        """Ages of dates that are not complete yet; a silence keeps dates open."""
        return min(self.triangle.max_delay + self.silent, self.triangle.n_dates)

    @cached_property
    def cells(self) -> Positions:
        """The combinations of strata that occur, (n, k) codes in order."""
        codes = self.triangle.codes
        if not codes.shape[1]:
            return np.zeros((1, 0), np.int64)
        sizes = [len(known) for known in self.triangle.labels]
        distinct = np.unique(np.ravel_multi_index(tuple(codes.T), sizes))
        return np.stack(np.unravel_index(distinct, sizes), axis=1)

    def cell_of(self, codes: Positions) -> Positions:
        """Return the number of the cell of each record."""
        if not codes.shape[1]:
            return np.zeros(len(codes), np.int64)
        sizes = [len(known) for known in self.triangle.labels]
        known = np.ravel_multi_index(tuple(self.cells.T), sizes)
        return np.asarray(np.searchsorted(known, np.ravel_multi_index(tuple(codes.T), sizes)))

    @cached_property
    def published(self) -> Floats:
        """What is published, corrections included: cells x ages, the as-of date first."""
        t = self.triangle
        ages = t.n_dates - 1 - t.dates
        kept = (ages < self.n_ages) & t.within()
        flat = self.cell_of(t.codes[kept]) * self.n_ages + ages[kept]
        sums = np.bincount(flat, t.counts[kept], len(self.cells) * self.n_ages)
        return np.asarray(sums.reshape(len(self.cells), self.n_ages))

    @cached_property
    def by_date(self) -> Floats:
        """What is published of each date of the window, all strata together, oldest first.

        Without what came in a silence that lasts.
        """
        t = self.triangle
        first = t.n_dates - self.n_dates
        kept = (t.dates >= first) & t.within()
        kept &= t.dates + t.delays < t.n_dates - self.silent
        sums = np.bincount(t.dates[kept] - first, t.counts[kept], self.n_dates)
        return np.asarray(sums, np.float64)

    @cached_property
    def weekdays(self) -> Positions:
        """The weekday (0 Monday) of each date of the window, oldest first; else all zero."""
        t = self.triangle
        periods = np.arange(t.last - self.n_dates + 1, t.last + 1)
        if t.every != "day":
            return np.zeros(self.n_dates, np.int64)
        return np.asarray((periods + _MONDAY) % 7)

    @property
    def n_weekdays(self) -> int:
        """Seven for days, one for longer periods."""
        return 7 if self.triangle.every == "day" else 1

    @cached_property
    def known(self) -> Flags:
        """Which cells of the window are known: dates (oldest first) x delays."""
        ages = np.arange(self.n_dates - 1, -1, -1) - self.silent
        return np.asarray(np.arange(self.n_delays) <= ages[:, None])

    def squares(self, size: int = 256) -> Iterator[tuple[slice, Floats]]:
        """Give the increments of the window, corrections included: cells x dates x delays.

        So many cells at a time: all of them together would be dense.
        """
        t = self.triangle
        first = t.n_dates - self.n_dates
        kept = np.flatnonzero((t.dates >= first) & t.within())
        cell = self.cell_of(t.codes[kept])
        order = np.argsort(cell, kind="stable")
        kept, cell = kept[order], cell[order]
        flat = (cell * self.n_dates + t.dates[kept] - first) * self.n_delays + t.delays[kept]
        square = self.n_dates * self.n_delays
        for begin in range(0, len(self.cells), size):
            end = min(begin + size, len(self.cells))
            some = slice(*np.searchsorted(cell, [begin, end]))
            sums = np.bincount(
                flat[some] - begin * square, t.counts[kept[some]], (end - begin) * square
            )
            shape = (end - begin, self.n_dates, self.n_delays)
            yield slice(begin, end), np.asarray(sums, np.float64).reshape(shape)
