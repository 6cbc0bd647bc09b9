"""A run fed from files and pipes: each step continues where the ledger says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.data.steps import superseded
from tensortide.errors import FileError, InputError, TensortideError
from tensortide.feeds.columnar import ColumnarFeed
from tensortide.feeds.files import Feed
from tensortide.feeds.places import Known, Start
from tensortide.feeds.portions import Cut, Portion, UnorderedError, gathered, in_order, streamed
from tensortide.feeds.roles import Roles
from tensortide.feeds.tables import TableFeed
from tensortide.feeds.text import TextFeed
from tensortide.feeds.wanted import Bad, Wanted
from tensortide.info import Info
from tensortide.tracker.batches import BadRecord, Line, Origin

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.tracker.run import Tracker

#: A file that is not in the order of its steps is sorted in memory up to this size.
LARGEST_SORT = 1 << 30


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken (or was known), and how far its source has been read."""

    info: Info
    source: str
    records: int
    bad: int
    label: str | None
    done: int
    size: int | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A source of which nothing was taken, and why."""

    source: str
    why: str
    known: bool = False


class Follower:
    """Feeds a tracker from sources, with the roles that its columns have.

    The first `first` steps are learned together, as one preparation.
    """

    def __init__(
        self, tracker: Tracker, roles: Roles, *, quarantine: bool = False, first: int = 1
    ) -> None:
        self.tracker, self.roles, self.quarantine = tracker, roles, quarantine
        self._first = first
        self._waiting: list[_Step] = []
        self._known = known_places(tracker)

    def take(self, feed: Feed) -> Iterator[Taken | Skipped]:
        """Take all steps of a source that the ledger does not have."""
        try:
            if feed.empty:
                yield Skipped(feed.name, "is empty")
                return
            _require(feed, self.roles.wanted)
            start = feed.start(self._known)
            if isinstance(feed, TextFeed) and feed.line_grew:
                yield self._grown_line(feed)
            if isinstance(feed, ColumnarFeed) and not self.quarantine:
                self._judge(feed, start)
            found = False
            for portion in self._portions(feed, start):
                found = True
                step = _Step(feed, portion, _origin(feed, portion, start))
                if portion.bad and not self.quarantine:
                    raise _stopped(feed, portion.bad)
                self._waiting.append(step)
                self._remember(step.origin)
                if self.tracker.fitted or len(self._waiting) >= self._first:
                    yield self._learn()
            if not found:
                if start.place:
                    yield Skipped(feed.name, "has nothing new", known=True)
                else:
                    yield Skipped(feed.name, "has no records")
        finally:
            feed.close()

    def _grown_line(self, feed: TextFeed) -> Skipped:
        """Say that a last line without its end was learned, and now has become longer."""
        if self.tracker.params["combine"] == "add":
            raise InputError(
                f"{feed.name}: its last line was learned when it was not complete, and adding the "
                "records of that step again would count them twice; begin another run."
            )
        return Skipped(
            feed.name, "its last line was not complete when it was learned; that step comes again"
        )

    def _judge(self, feed: ColumnarFeed, start: Start) -> None:
        """Look through a file of columns before its first step: mended, it is another file."""
        for piece in feed.pieces(self.roles.wanted, start):
            if piece.bad:
                raise _stopped(feed, piece.bad)

    def _batch_id(self, feed: Feed, origin: Origin) -> str:
        """Return the id that the content gives; a second file that begins alike adds its name."""
        batch_id = origin.batch_id or uuid.uuid4().hex
        if feed.path is not None and self.tracker.knows(batch_id):
            return f"{batch_id} {origin.source}"
        return batch_id

    def _remember(self, origin: Origin) -> None:
        """Know a place from now on, also while its step waits for others."""
        if origin.digest is not None and origin.position is not None:
            self._known.add(origin.position, origin.digest, origin.part, origin.head, origin.source)

    def finish(self) -> Iterator[Taken]:
        """Learn what is still waiting because there were fewer steps than wanted first."""
        if self._waiting:
            yield self._learn()

    def _learn(self) -> Taken:
        steps, self._waiting = self._waiting, []
        last = steps[-1]
        feed, portion, origin = last.feed, last.portion, last.origin
        tables = [s.portion.table for s in steps if s.portion.table is not None]
        bad = [
            BadRecord(b.line, b.reason, b.text, s.feed.name) for s in steps for b in s.portion.bad
        ]
        earlier = [s.origin for s in steps[:-1]]
        table = _together(tables, self.tracker.params, self.roles.modes)
        try:
            line = Line(self._batch_id(feed, origin), origin, bad, earlier)
            info = self.tracker.take(table, line)
        except FileError:
            raise
        except TensortideError as error:
            where = _where(steps)
            more = ""
            if isinstance(error, InputError) and not self.tracker.fitted:
                more = " The first steps can be learned together: --first 10, for instance."
            raise InputError(f"{where}: {error}{more}") from None
        n_records = 0 if table is None else table.num_rows
        return Taken(info, feed.name, n_records, len(bad), portion.label, feed.done, feed.size)

    def _portions(self, feed: Feed, start: Start) -> Iterator[Portion]:
        """Cut a source into steps, sorted first where that has to be."""
        cut, wanted = self.roles.cut, self.roles.wanted
        if isinstance(feed, TableFeed) and cut == Cut():
            for piece in feed.pieces(wanted, start):  # a table is what a file is elsewhere
                yield from streamed([piece], cut)
            return
        if cut.column is None or feed.path is None:
            try:
                yield from streamed(feed.pieces(wanted, start), cut)
            except UnorderedError as error:
                raise InputError(
                    f"{feed.name}, {feed.unit} {error.line}: {cut.column} {error}; a pipe has to "
                    f"come in the order of {cut.column}, or in steps of a number of rows."
                ) from None
            return
        whole = Start(0) if isinstance(feed, ColumnarFeed) else start
        unsorted = start.until is not None
        if not unsorted:
            column = Wanted({cut.column: self.roles.kinds[cut.column]}, None)
            unsorted = not in_order(feed.pieces(column, whole), cut.column)
        if not unsorted:
            yield from streamed(feed.pieces(wanted, start), cut)
            return
        if feed.path.stat().st_size > LARGEST_SORT:
            raise InputError(
                f"{feed.name}: is not in the order of {cut.column} and too large to be sorted "
                "here; sort it first, for instance with DuckDB: COPY (FROM 'file' ORDER BY "
                f"{cut.column}) TO 'sorted.parquet'."
            )
        if isinstance(feed, ColumnarFeed):
            start = Start(0, part=start.place, until=feed.size)
        yield from gathered(feed.pieces(wanted, whole), cut, start)


@dataclass(frozen=True, slots=True)
class _Step:
    feed: Feed
    portion: Portion
    origin: Origin


def _where(steps: list[_Step]) -> str:
    """Say which lines of which files steps hold."""
    first, last = steps[0], steps[-1]
    if first.feed.name != last.feed.name:
        return f"{first.feed.name} to {last.feed.name}"
    low, high = first.portion.lines[0], last.portion.lines[1]
    lines = f"{first.feed.unit} {low}" if low == high else f"{first.feed.unit}s {low} to {high}"
    return f"{first.feed.name}, {lines}"


def known_places(tracker: Tracker) -> Known:
    """Return all places in sources that the ledger knows."""
    known = Known()
    for place in tracker.places():
        known.add(*place)
    return known


def _origin(feed: Feed, portion: Portion, start: Start) -> Origin:
    """Say by content where a step ends."""
    if isinstance(feed, TextFeed):
        place = feed.end if portion.place is None else portion.place
        known = start.until is not None and portion.place == start.until
        digest = start.digest if known else feed.digest_at(place)
        return Origin(feed.name, digest, place, portion.part, portion.label, feed.head_at(place))
    # of a file of columns, and of tables, a place is a number of records
    taken = portion.place if portion.part is None else portion.part
    return Origin(feed.name, feed.digest, taken, None, portion.label)


def _together(tables: list[pa.Table], params: dict[str, Any], modes: list[str]) -> Any:
    """Put the first steps together: of a cell that came at several, the last one counts."""
    if not tables:
        return None
    if len(tables) == 1:
        return tables[0]
    import pyarrow as pa

    both = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    if params["combine"] == "add" and params["duplicates"] not in ("sum", "count"):
        raise InputError("with combine='add' the first steps cannot be learned together.")
    if params["combine"] == "add" or params["duplicates"] == "last":
        return both
    numbers = np.repeat(np.arange(len(tables)), [t.num_rows for t in tables])
    return both.filter(pa.array(~superseded(both, modes, numbers)))


def _require(feed: Feed, wanted: Wanted) -> None:
    missing = [name for name in wanted.names if name not in feed.names]
    if missing and not (isinstance(feed, TextFeed) and feed.json):
        raise InputError(
            f"{feed.name}: there is no column {missing[0]!r}; the columns are "
            f"{', '.join(feed.names)}."
        )


def _stopped(feed: Feed, bad: list[Bad]) -> InputError:
    first = bad[0]
    more = f" ({len(bad) - 1:,} more in this step)" if len(bad) > 1 else ""
    return InputError(
        f"{feed.name}, {feed.unit} {first.line}: {first.reason}{more}. Nothing of this step was "
        "learned; mend the file, or set bad records aside with --on-bad quarantine."
    )
