"""Drive a run by sources: find out what their columns are, take them in turn, watch a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.data.labels import NamedLabels
from tensortide.errors import FileError, InputError
from tensortide.sources.cut import Cut
from tensortide.sources.files import KINDS, Feed, list_files, open_feed
from tensortide.sources.memory import TableFeed
from tensortide.sources.roles import Roles, find_roles
from tensortide.tracker.follower import ChangedFileError, Follower, Skipped, Taken
from tensortide.tracker.learn_again import begin_beside, files_of_run, first_steps
from tensortide.validate import check_choice, check_count

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.tracker.tracker import Tracker


@dataclass(frozen=True, kw_only=True)
class FeedOptions:
    """How sources are taken: cut into steps, bad records, the first steps, watching.

    `on_file` is told each file that begins.
    """

    cut: Cut | None = None
    on_bad: str = "stop"
    first: int = 1
    watch: bool = False
    every: float = 1.0
    name: str | None = None
    changed_file: str = "stop"
    on_file: Callable[[Feed], None] = lambda _: None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        check_choice("on_bad", self.on_bad, ("stop", "quarantine"))
        check_choice("changed_file", self.changed_file, ("stop", "replace", "new"))
        if self.watch and self.changed_file == "replace":
            raise InputError("a run cannot be learned again while it watches; do one of the two.")
        check_count("first", self.first, least=1)
        if self.cut is not None and self.cut.rows is not None:
            check_count("step_rows", self.cut.rows, least=1)


def cut_of(step_by: str | None, step_rows: int | None, step_files: bool) -> Cut | None:
    """Return how records are cut by what the user said; None where nothing was."""
    if sum((step_by is not None, step_rows is not None, step_files)) > 1:
        raise InputError("steps are made by a column, by a number of rows or by file, not by two.")
    if step_by is None and step_rows is None and not step_files:
        return None
    return Cut(step_by, step_rows)


def first_sample(source: Any) -> tuple[pa.Table, bool]:
    """Return the first records of sources that have some, and whether there are several files.

    A folder counts as several: more may come.
    """
    files = list_files(source)
    several = len(files) > 1 or any(Path(s).is_dir() for s in source)
    for path in files:
        feed = open_feed(path)
        try:
            if not feed.empty and (sample := feed.sample()).num_rows:
                return sample, several
        finally:
            feed.close()
    what = ", ".join(map(str, source))
    if not files:
        raise FileError(f"{what}: has no file of a known kind ({', '.join(sorted(KINDS))}).")
    raise FileError(f"{what}: there are no records yet.")


def roles_of(tracker: Tracker, sample: pa.Table, drive: FeedOptions, several: bool) -> Roles:
    """Return what the columns are: as the run remembers, else found now and remembered."""
    stored = tracker.options.get("roles")
    if stored is not None:
        roles = Roles(
            modes=stored["modes"],
            value=stored["value"],
            cut=Cut(**stored["cut"]),
            kinds=stored["kinds"],
        )
        if drive.cut is not None and drive.cut != roles.cut:
            raise InputError(
                f"the run takes {roles.cut}; leave the option out, or begin another run."
            )
        return roles
    params = tracker.params
    counting = params["duplicates"] == "count"
    fitted = tracker.model._require_model().modes if tracker.fitted else None
    modes = params["modes"] if fitted is None else fitted.names
    value = None if counting else params["value"]
    roles = find_roles(sample, modes, value, drive.cut, counting=counting, several=several)
    if fitted is not None:
        if not all(isinstance(labels, NamedLabels) for labels in fitted.labels):
            raise InputError("this run has positions, not labels; ingest batches instead.")
        for name, labels in zip(fitted.names, fitted.labels, strict=True):
            roles.kinds[name] = labels.kind
    remember(tracker, roles)
    return roles


def remember(tracker: Tracker, roles: Roles) -> None:
    """Store in the run what the columns are."""
    cut = {"column": roles.cut.column, "rows": roles.cut.rows}
    tracker.set_options(
        modes=roles.modes,
        roles={"modes": roles.modes, "value": roles.value, "cut": cut, "kinds": roles.kinds},
    )


def feed_files(
    tracker: Tracker, sources: Sequence[str | Path], roles: Roles, drive: FeedOptions
) -> Iterator[Taken | Skipped]:
    """Take all files of the sources in turn; with `watch`, go on until stopped."""
    try:
        yield from _feed_files(tracker, sources, roles, drive)
        return
    except ChangedFileError as error:
        if drive.changed_file != "replace":
            raise
        changed = str(error).split(": ", 1)[0]
    yield Skipped(changed, "has changed; the run is learned again from its files as they are")
    files = files_of_run(tracker, list_files(sources))
    with begin_beside(tracker) as side:
        again = replace(drive, changed_file="stop", first=max(drive.first, first_steps(tracker)))
        yield from _feed_files(side, files, roles, again)
        side.close()
        tracker.adopt_run(side.path)


def _feed_files(
    tracker: Tracker, sources: Sequence[str | Path], roles: Roles, drive: FeedOptions
) -> Iterator[Taken | Skipped]:
    follower = _follower(tracker, roles, drive)
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        follower.look_at(list_files(sources))
        for path in follower.files:
            try:
                state = path.stat()
            except FileNotFoundError:  # gone since it was listed
                continue
            now = (state.st_size, state.st_mtime_ns)
            if drive.watch and seen.get(path) == now:
                continue
            seen[path] = now
            yield from _feed_file(follower, path, drive)
        if not drive.watch:
            yield from follower.finish()
            return
        time.sleep(drive.every)


def _feed_file(follower: Follower, path: Path, drive: FeedOptions) -> Iterator[Taken | Skipped]:
    """Take one file; while watching, a file that cannot be read yet is left for later."""
    trouble = "cannot be read yet"
    try:
        feed = open_feed(path, growing=drive.watch)
        drive.on_file(feed)
        trouble = "cannot be read to its end yet"
        yield from follower.take(feed)
    except FileError as error:
        if not drive.watch or follower.failed:
            raise
        yield Skipped(str(path), f"{trouble} ({error})")


def feed_one(
    tracker: Tracker, feed: Feed, roles: Roles, drive: FeedOptions
) -> Iterator[Taken | Skipped]:
    """Take one feed: a pipe, or tables."""
    follower = _follower(tracker, roles, drive)
    yield from follower.take(feed)
    yield from follower.finish()


def _follower(tracker: Tracker, roles: Roles, drive: FeedOptions) -> Follower:
    return Follower(
        tracker, roles, quarantine=drive.on_bad == "quarantine", first=drive.first,
        changed=drive.changed_file, growing=drive.watch,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a call of `track` did."""

    steps: int
    records: int
    bad: int
    repeated: int
    skipped: tuple[Skipped, ...]
    last: Taken | None

    @classmethod
    def of(cls, events: Iterator[Taken | Skipped]) -> Summary:
        """Run through everything and count."""
        total = cls(steps=0, records=0, bad=0, repeated=0, skipped=(), last=None)
        for event in events:
            if isinstance(event, Skipped):
                total = replace(total, skipped=(*total.skipped, event))
            elif event.info.repeated:
                total = replace(total, repeated=total.repeated + 1, last=event)
            else:
                records, bad = total.records + event.records, total.bad + event.bad
                total = replace(total, steps=total.steps + 1, records=records, bad=bad, last=event)
        return total


def feed_any(tracker: Tracker, source: Any, drive: FeedOptions) -> Iterator[Taken | Skipped]:
    """Take whatever has records: paths or tables."""
    if isinstance(source, str | Path):
        source = [source]
    if isinstance(source, list | tuple) and all(isinstance(s, str | Path) for s in source):
        sample, several = first_sample(source)
        return feed_files(tracker, source, roles_of(tracker, sample, drive, several), drive)
    return feed_tables(tracker, source, drive)


def feed_tables(tracker: Tracker, source: Any, drive: FeedOptions) -> Iterator[Taken | Skipped]:
    """Take tables in memory: one step a table unless it is said otherwise."""
    feed = TableFeed(source, drive.name)
    if feed.empty:
        return
    roles = roles_of(tracker, feed.sample(), drive, True)
    yield from feed_one(tracker, feed, roles, drive)
