"""What a batch does to the tensor, as the engine sees it."""

from __future__ import annotations

from dataclasses import dataclass

from tensortide.arrays import Flags, Floats, Places, Positions, Shape
from tensortide.core.penalties.parts import Ties
from tensortide.core.steps.outlook import Neighbours
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """Rows of the ordered mode that a batch brings, or brings cells of, in the order of labels.

    `fresh` are the local rows of new labels and `neighbours` what comes before them; `known` and
    `beside` the same for known labels, where the outlook of those is wanted too; `line` and
    `along` for all rows that have two before them, where all rows take part.
    """

    mode: int
    fresh: Positions
    neighbours: Neighbours
    known: Positions
    beside: Neighbours
    line: Positions
    along: Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The cells of a batch as they are judged: values, which of them count, what is remembered.

    `weights` are those of the cells, none where all are one.  `recalled` has for each cell what
    the memory of its fibre says, without memory no column; `plain` the last value and the mean of
    its fibre, NaN where it has none.
    """

    values: Floats
    weights: Floats
    live: Flags
    recalled: Floats
    plain: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One arrival of data.

    Attributes
    ----------
    old_shape, new_shape
        Sizes of the modes before and after.
    entries
        What the method sees, in local rows.
    positions
        For each mode, the position that each local row stands for: ascending, so old rows come
        first.  None: all rows take part, and row i stands for position i.
    arrived
        The local cells of the batch itself, to be predicted before they are learned.
    n_seen
        Distinct entries seen before.
    step
        Steps taken before.
    time
        The mode that grows; if none does now, the one that grew last.
    absent_zero
        Whether cells that are not listed are zeros.
    complete
        Whether the batch has all cells outside the old box and no others.
    ties
        What the labels make of the terms of each mode (`core.penalties`).
    coming, news
        The rows that have an outlook, and the batch as it is judged; for learned priors.
    """

    old_shape: Shape
    new_shape: Shape
    entries: AnyEntries
    positions: tuple[Positions | None, ...]
    arrived: Places | DenseBox
    n_seen: float
    step: int
    time: int
    absent_zero: bool
    complete: bool = False
    ties: tuple[Ties, ...] = ()
    coming: Coming | None = None
    news: News | None = None

    def n_upper(self, mode: int) -> int:
        """Return how many of the rows of a mode that take part are old."""
        rows, old = self.positions[mode], self.old_shape[mode]
        return old if rows is None else int(rows.searchsorted(old))

    @property
    def weighted(self) -> bool:
        """Whether entries have weights."""
        return not isinstance(self.entries, DenseBox) and len(self.entries.orders[0].weights) > 0

    @property
    def n_arrived(self) -> int:
        """How many cells have come."""
        complete = isinstance(self.arrived, DenseBox)
        return self.arrived.n_entries if complete else len(self.arrived)  # type: ignore

    @property
    def growing(self) -> int:
        """Size of the mode that grows: the paper's ``I^t``."""
        return self.new_shape[self.time]

    @property
    def density(self) -> float:
        """Observed fraction of the old box."""
        if self.absent_zero:
            return 1.0
        cells = 1.0
        for size in self.old_shape:
            cells *= size
        return min(1.0, self.n_seen / cells) if cells else 0.0
