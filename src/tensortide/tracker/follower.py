"""A run fed from files and pipes: each step continues where the ledger says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.losses.standard import Loss, loss_for
from tensortide.data.superseded import superseded
from tensortide.errors import FileError, InputError, TensortideError, TooFewError
from tensortide.online.info import Info
from tensortide.sources.columnar import ColumnarFeed
from tensortide.sources.columns import BadRecord, ColumnSpec
from tensortide.sources.cut import (
    Cut,
    StepRecords,
    UnorderedError,
    gather_steps,
    in_order,
    stream_steps,
)
from tensortide.sources.files import Feed
from tensortide.sources.memory import TableFeed
from tensortide.sources.resume import KnownPlaces, Place, ResumeAt, Verdict
from tensortide.sources.roles import Roles
from tensortide.sources.text import TextFeed
from tensortide.tracker.batches import Line
from tensortide.validate import check_columns_exist

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.tracker.tracker import Tracker

#: A file that is not in the order of its steps is sorted in memory up to this size.
LARGEST_SORT = 1 << 30
_TAKEN_AS_NEW = "has changed; all its records are learned, also those that were learned before"


@dataclass(frozen=True, slots=True, kw_only=True)
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


class ChangedFileError(InputError):
    """A file is no longer what was learned of it, and the user has to say what that means."""


class Follower:
    """Feeds a tracker from sources, with the roles that its columns have.

    The first `first` steps are learned together, as one preparation.  A file that has changed
    since it was learned is an error, unless `changed` is "new": then all of it is learned.
    While files are written (`growing`), one that has become shorter is left for later.
    """

    def __init__(
        self, tracker: Tracker, roles: Roles, *, quarantine: bool = False, first: int = 1,
        changed: str = "stop", growing: bool = False,
    ) -> None:  # fmt: skip
        self.tracker, self.roles, self.quarantine = tracker, roles, quarantine
        self._wanted = replace(roles.wanted, loss=_judging_loss(tracker.params))
        self._first, self._changed, self._growing = first, changed, growing
        self._waiting: list[_Step] = []
        self._known = KnownPlaces(tracker.base, tracker.places())
        self.files: list[Path] = []  # that stand beside each other now
        self.failed = False  # whether the run itself could not be written
        self._remarks: list[Skipped] = []  # what was found out while a file was judged

    def look_at(self, files: list[Path]) -> None:
        """Begin another look at files that stand beside each other."""
        self.files = files
        self._known.look_again()

    def take(self, feed: Feed) -> Iterator[Taken | Skipped]:
        """Take all steps of a source that the ledger does not have."""
        try:
            if feed.empty:
                yield Skipped(feed.name, "is empty")
                return
            _require(feed, self._wanted)
            start = feed.start(self._known)
            if start.verdict is Verdict.SHORTER and self._growing and not self._note_move(start):
                yield Skipped(feed.name, "is shorter than what was learned of it; it is left")
                return
            start = self._begin_again(feed, start)
            yield from self._notes(feed, start)
            if isinstance(feed, ColumnarFeed) and not self.quarantine:
                self._judge(feed, start)
            found = False
            portions = self._portions(feed, start)
            for portion in portions:
                found = True
                step = _Step(feed, portion, self._place(feed, portion, start))
                if portion.bad and not self.quarantine:
                    raise _bad_records_error(feed, portion.bad)
                self._waiting.append(step)
                if self.tracker.fitted or len(self._waiting) >= self._first:
                    yield self._learn(portions)
                else:  # another file that is the same is another step, also while this one waits
                    self._known.add(step.origin)
            if not found:
                yield _nothing(feed, start)
        finally:
            feed.close()

    def _begin_again(self, feed: Feed, start: ResumeAt) -> ResumeAt:
        """Judge a changed file anew where its content has moved, else as the user says."""
        if start.verdict not in (Verdict.CHANGED, Verdict.SHORTER):
            return start
        if self._note_move(start):  # what is there now may be a file that moved, too
            return self._begin_again(feed, feed.start(self._known))
        if self._changed != "new":
            raise ChangedFileError(_what_changed(feed, start))
        self._remarks.append(Skipped(feed.name, _TAKEN_AS_NEW))
        return ResumeAt(generation=start.generation + 1)

    def _note_move(self, start: ResumeAt) -> bool:
        """Tell whether what was learned of a changed file is in another one, and note it."""
        if start.earlier is None:
            return False
        to = self._known.find_moved(start.earlier, self.files)
        if to is not None:
            words = f"what was learned of it is in {to} now; this is another file"
            self._remarks.append(Skipped(start.earlier.source, words))
        return to is not None

    def _place(self, feed: Feed, portion: StepRecords, start: ResumeAt) -> Place:
        """Say by content where a step ends."""
        path = None if feed.path is None else self._known.path_of(feed.path)
        place = Place(source=feed.name, path=path, label=portion.label, generation=start.generation)
        if isinstance(feed, TextFeed):
            end = feed.end if portion.place is None else portion.place
            known = start.until is not None and portion.place == start.until
            digest = start.digest if known else feed.digest_at(end)
            return replace(
                place, digest=digest, position=end, part=portion.part, head=feed.head_at(end)
            )
        # of a file of columns, and of tables, a place is a number of records
        taken = portion.place if portion.part is None else portion.part
        return replace(place, digest=feed.digest, position=taken)

    def _notes(self, feed: Feed, start: ResumeAt) -> Iterator[Skipped]:
        """Say what a person would not expect of a file."""
        yield from self._remarks
        self._remarks = []
        if start.verdict is Verdict.RENAMED and start.earlier is not None:
            self._keep_name(feed, start)
            was = start.earlier
            if was.path is not None and (self.tracker.base / was.path).is_file():
                yield Skipped(
                    feed.name, f"holds what was learned of {was.source}, which is another file now"
                )
        if start.verdict is Verdict.ALIKE and start.earlier is not None:
            other = start.earlier.source
            yield Skipped(
                feed.name,
                f"begins with all that {other} held when it was learned; both are there, so all "
                f"of it is learned (if it is {other} continued, remove that one before)",
            )
        if not (isinstance(feed, TextFeed) and feed.line_grew):
            return
        if self.tracker.params["combine"] == "add":
            raise ChangedFileError(
                f"{feed.name}: its last line was learned when it was not complete, and adding the "
                "records of that step again would count them twice. --changed-file replace learns "
                "the run again with the file as it is now."
            )
        yield Skipped(
            feed.name, "its last line was not complete when it was learned; that step comes again"
        )

    def _keep_name(self, feed: Feed, start: ResumeAt) -> None:
        """Let the ledger know a file by its new path too, so that a later change is seen."""
        if feed.path is not None and start.earlier is not None and self.tracker.fitted:
            was = start.earlier
            before = f"{was.generation} {was.path or was.source}"
            place = replace(self._known.of(feed.path)[-1], source=feed.name, renamed=before)
            self.tracker.take(None, Line(self._batch_id(place, set()), place))

    def _judge(self, feed: ColumnarFeed, start: ResumeAt) -> None:
        """Look through a file of columns before its first step: mended, it is another file."""
        for piece in feed.pieces(self._wanted, start):
            if piece.bad:
                raise _bad_records_error(feed, piece.bad)

    def _batch_id(self, place: Place, others: set[str]) -> str:
        """Return the id that the content gives; what stands at several places adds its name.

        Whether a place was learned before is decided by its path, not here.
        """
        batch_id = found = place.batch_id or uuid.uuid4().hex
        number = 1
        while place.path is not None and (found in others or self.tracker.knows(found)):
            found = f"{batch_id} {place.source}" + (f" ({number})" if number > 1 else "")
            number += 1
        others.add(found)
        return found

    def finish(self) -> Iterator[Taken]:
        """Learn what is still waiting because there were fewer steps than wanted first."""
        if self._waiting:
            yield self._learn()

    def _learn(self, coming: Iterator[StepRecords] | None = None) -> Taken:
        steps, self._waiting = self._waiting, []
        last = steps[-1]
        feed, portion, origin = last.feed, last.portion, last.origin
        tables = [s.portion.table for s in steps if s.portion.table is not None]
        bad = [replace(b, source=s.feed.name) for s in steps for b in s.portion.bad]
        table = _together(tables, self.tracker.params, self.roles.modes)
        ids: set[str] = set()
        try:
            earlier = [Line(self._batch_id(s.origin, ids), s.origin) for s in steps[:-1]]
            line = Line(self._batch_id(origin, ids), origin, bad, earlier)
            info = self.tracker.take(table, line)
        except FileError:
            self.failed = True  # it is the run that cannot be written, not the file
            raise
        except TensortideError as error:
            where = _where(steps)
            more = ""
            if isinstance(error, TooFewError) and self._more(feed, coming):
                needed = len(steps) * self.tracker.params["rank"] // len(table) + 1
                n_first = max(10, 2 * len(steps), needed)
                more = f" The first steps can be learned together: --first {n_first}, for instance."
            raise InputError(f"{where}: {error}{more}") from None
        self._known.add(origin)  # the others are known since they wait
        n_records = 0 if table is None else table.num_rows
        return Taken(
            info=info, source=feed.name, records=n_records, bad=len(bad), label=portion.label,
            done=feed.done, size=feed.size,
        )  # fmt: skip

    def _more(self, feed: Feed, coming: Iterator[StepRecords] | None) -> bool:
        """Tell whether more steps follow; a pipe, which may be slow, is not waited for."""
        if coming is None or (isinstance(feed, TextFeed) and feed.path is None):
            return coming is not None
        with suppress(TensortideError):
            return next(coming, None) is not None or feed.path in self.files[:-1]
        return True

    def _portions(self, feed: Feed, start: ResumeAt) -> Iterator[StepRecords]:
        """Cut a source into steps, sorted first where that has to be."""
        cut, wanted = self.roles.cut, self._wanted
        if isinstance(feed, TableFeed) and cut == Cut():
            for piece in feed.pieces(wanted, start):  # a table is what a file is elsewhere
                yield from stream_steps([piece], cut)
            return
        if cut.column is None or feed.path is None:
            try:
                yield from stream_steps(feed.pieces(wanted, start), cut)
            except UnorderedError as error:
                raise InputError(
                    f"{feed.name}, {feed.unit} {error.line}: {cut.column} {error}; a pipe has to "
                    f"come in the order of {cut.column}, or in steps of a number of rows."
                ) from None
            return
        whole = ResumeAt() if isinstance(feed, ColumnarFeed) else start
        unsorted = start.until is not None
        if not unsorted:
            column = ColumnSpec({cut.column: self.roles.kinds[cut.column]}, None)
            unsorted = not in_order(feed.pieces(column, whole), cut.column)
        if not unsorted:
            yield from stream_steps(feed.pieces(wanted, start), cut)
            return
        if feed.path.stat().st_size > LARGEST_SORT:
            raise InputError(
                f"{feed.name}: is not in the order of {cut.column} and too large to be sorted "
                "here; sort it first, for instance with DuckDB: COPY (FROM 'file' ORDER BY "
                f"{cut.column}) TO 'sorted.parquet'."
            )
        if isinstance(feed, ColumnarFeed):
            start = ResumeAt(part=start.place, until=feed.size, generation=start.generation)
        yield from gather_steps(feed.pieces(wanted, whole), cut, start)


@dataclass(frozen=True, slots=True)
class _Step:
    feed: Feed
    portion: StepRecords
    origin: Place


def _where(steps: list[_Step]) -> str:
    """Say which lines of which files steps hold."""
    first, last = steps[0], steps[-1]
    if first.feed.name != last.feed.name:
        return f"{first.feed.name} to {last.feed.name}"
    low, high = first.portion.lines[0], last.portion.lines[1]
    lines = f"{first.feed.unit} {low}" if low == high else f"{first.feed.unit}s {low} to {high}"
    return f"{first.feed.name}, {lines}"


def _nothing(feed: Feed, start: ResumeAt) -> Skipped:
    """Say why nothing was taken."""
    if start.verdict is Verdict.RENAMED and start.earlier is not None:
        was = start.earlier.source
        return Skipped(feed.name, f"is {was}, renamed, with nothing new", known=True)
    if start.place:
        return Skipped(feed.name, "has nothing new", known=True)
    return Skipped(feed.name, "has no records")


def _what_changed(feed: Feed, start: ResumeAt) -> str:
    """Say where a file differs from what was learned of it, and what can be done."""
    if isinstance(feed, TextFeed) and start.verdict is Verdict.SHORTER:
        where = "has become shorter than what was learned of it"
    else:
        first, last = start.lines + 1, start.changed_by
        where = "has changed since it was learned"
        if last is not None and last >= first:
            where += (
                f", in line {first:,}" if last == first else f", in lines {first:,} to {last:,}"
            )
    return (
        f"{feed.name}: {where}; nothing of it was learned now. --changed-file replace learns the "
        "run again with the file as it is now, --changed-file new takes all of it as new records "
        "beside the old ones."
    )


def _judging_loss(params: dict[str, Any]) -> Loss | None:
    """Return the loss if it judges each record: of values that are put together only the result."""
    alone = params["duplicates"] in ("last", "error") and params["combine"] == "replace"
    return loss_for(params["loss"]) if alone else None


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


def _require(feed: Feed, wanted: ColumnSpec) -> None:
    if not (isinstance(feed, TextFeed) and feed.json):
        check_columns_exist(feed.names, wanted.names, where=f"{feed.name}: ")


def _bad_records_error(feed: Feed, bad: list[BadRecord]) -> InputError:
    first = bad[0]
    more = f" ({len(bad) - 1:,} more in this step)" if len(bad) > 1 else ""
    return InputError(
        f"{feed.name}, {feed.unit} {first.line}: {first.reason}{more}. Nothing of this step was "
        "learned; mend the file, or set bad records aside with --on-bad quarantine."
    )
