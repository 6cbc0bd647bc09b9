"""`tensortide track`: keep the model of a run current from files and pipes."""

from __future__ import annotations

import json
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

from tensortide.errors import FileError, InputError, TensortideError
from tensortide.progress import Bar
from tensortide.sources.files import open_feed
from tensortide.sources.roles import Roles, find_roles
from tensortide.tracker.feeding import (
    FeedOptions,
    feed_files,
    feed_one,
    first_sample,
    remember,
    roles_of,
)
from tensortide.tracker.follower import Skipped, Taken
from tensortide.tracker.ledger import FILE, is_unused
from tensortide.tracker.quarantine import write_quarantine
from tensortide.tracker.tracker import Tracker
from tensortide.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.online.parameters import Absent, Combine, Duplicates, Prior
    from tensortide.sources.files import Feed

#: Steps over which the fitness that is shown is averaged.
RECENT = 20


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What the user said about the model of the run; None where nothing was said."""

    rank: int | None
    method: str | None
    modes: list[str] | None
    value: str | None
    absent: str | None
    duplicates: str | None
    combine: str | None
    loss: str | None
    prior: str | None
    fibres: bool | None
    seed: int | None


def run_track(
    sources: Sequence[str], into: Path, asked: ModelOptions, drive: FeedOptions, *,
    keep_surprises: bool | None, wait: float, as_json: bool,
) -> None:  # fmt: skip
    """Begin or continue a run and take all that is new."""
    if "-" in sources and len(sources) > 1:
        raise InputError("standard input (-) cannot be mixed with files.")
    screen = Console(stderr=True, highlight=False)
    pipe = sources == ["-"]
    feed = open_feed(None) if pipe else None
    with _run(sources, feed, into, asked, drive, keep_surprises, wait, screen) as (tracker, roles):
        told = _Telling(tracker, screen, as_json=as_json, drive=drive)
        try:
            with told.bar, _stop_on_sigterm():
                if feed is not None:
                    events = feed_one(tracker, feed, roles, drive)
                else:
                    drive = replace(drive, on_file=told.begin)
                    events = feed_files(tracker, sources, roles, drive)
                for event in events:
                    told.tell(event)
                    if drive.watch and isinstance(event, Taken) and event.bad:
                        write_quarantine(tracker)
        except KeyboardInterrupt:
            told.recount()
            told.summary("stopped")
            if not drive.watch:
                told.note("Everything up to here is kept; the same command goes on.")
                raise SystemExit(130) from None
            return
        except TensortideError:
            told.recount()
            if told.n_steps:
                told.summary("stopped")
            raise
        finally:
            write_quarantine(tracker)
        told.summary("done")


@contextmanager
def _run(
    sources: Sequence[str], feed: Feed | None, into: Path, asked: ModelOptions, drive: FeedOptions,
    keep_surprises: bool | None, wait: float, screen: Console,
) -> Iterator[tuple[Tracker, Roles]]:  # fmt: skip
    """Open the run, or make it from what the sources look like."""
    if (into / FILE).is_file() and not is_unused(into):
        with Tracker.open(into, wait=wait) as tracker:
            _check_same(tracker, asked, into)
            if keep_surprises is not None:
                tracker.set_options(keep_surprises=keep_surprises)
            if tracker.options.get("roles") is None:
                sample, several = _sample(sources, feed, drive, screen)
                roles = roles_of(tracker, sample, drive, several)
            else:
                roles = roles_of(tracker, None, drive, False)
            screen.print(f"{into}: goes on after step {_steps(tracker)}; {roles.cut}.")
            yield tracker, roles
        return
    sample, several = _sample(sources, feed, drive, screen)
    duplicates = asked.duplicates or "last"
    roles = find_roles(
        sample, asked.modes, asked.value, drive.cut,
        counting=duplicates == "count", several=several,
    )  # fmt: skip
    for guess in roles.said:
        screen.print(f"guessed {guess}")
    combine = _combine(asked, screen)
    kinds = ", ".join(f"{name} ({roles.kinds[name]})" for name in roles.modes)
    value = "records are counted" if roles.value is None else f"values in {roles.value}"
    with Tracker.create(
        into,
        asked.rank or 5,
        asked.method or "gocpte",
        modes=roles.modes,
        value=roles.value or "value",
        absent=cast("Absent", asked.absent or "missing"),
        duplicates=cast("Duplicates", duplicates),
        combine=cast("Combine", combine),
        loss=asked.loss or "squared",
        prior=cast("Prior | None", asked.prior),
        fibres=asked.fibres,
        seed=asked.seed or 0,
        keep_surprises=keep_surprises,
        wait=wait,
    ) as tracker:
        remember(tracker, roles)
        screen.print(f"{into}: a new run; labels {kinds}; {value}; {roles.cut}.")
        yield tracker, roles


def _combine(asked: ModelOptions, screen: Console) -> str:
    """Return what a record of a known cell does: events that are counted add up, where they can."""
    if asked.combine is not None or asked.duplicates != "count":
        return asked.combine or "replace"
    from tensortide.methods.registry import method_for

    if method_for(asked.method or "gocpte").keeps_history:
        screen.print("guessed combine: add (later events of a cell add to its count)")
        return "add"
    screen.print(
        "note: a method without history keeps no counts, so the events of a later step take the "
        "place of a cell's earlier count; where events of a cell come in several steps, use "
        "--method gocpt."
    )
    return "replace"


def _sample(
    sources: Sequence[str], feed: Feed | None, drive: FeedOptions, screen: Console
) -> tuple[pa.Table, bool]:
    if feed is not None:
        if feed.empty or not (sample := feed.sample()).num_rows:
            raise FileError("standard input: there are no records.")
        return sample, False
    waiting = False
    while True:
        try:
            return first_sample(sources)
        except FileError:
            if not drive.watch or any(not Path(s).exists() for s in sources):
                raise
        if not waiting:
            screen.print(f"waiting for records in {', '.join(sources)} ...")
        waiting = True
        time.sleep(drive.every)


def _check_same(tracker: Tracker, asked: ModelOptions, into: Path) -> None:
    """Refuse options that differ from what the run was begun with."""
    from tensortide.core.losses.standard import loss_for
    from tensortide.methods.registry import method_for

    has = tracker.settled
    differences = []
    for name, given in asdict(asked).items():
        if given is None or (name == "value" and has["duplicates"] == "count"):
            continue
        parts = {"method": method_for, "loss": loss_for}
        if (parts[name](given) if name in parts else given) != has[name]:
            differences.append(_differs(name, has[name], given))
    if differences:
        raise InputError(
            f"{into}: the run was begun with {'; '.join(differences)}. Leave the options out to go "
            "on with it, or begin another run with another --into."
        )


def _differs(name: str, has: Any, given: Any) -> str:
    """Say in the words of the options what a run has and what was asked for."""
    from tensortide.methods.registry import by_name

    if name == "fibres":
        words = {True: "--keep-fibres", False: "--no-fibres"}
        return f"{words[has]}, not {words[given]}"
    if name == "modes":
        return f"--modes {','.join(has)}, not {','.join(given)}"
    before = by_name(has) if name == "method" else getattr(has, "name", has)
    return f"--{name} {before}, not {given}"


def _steps(tracker: Tracker) -> int:
    return tracker.model.n_steps_ if tracker.fitted else 0


@contextmanager
def _stop_on_sigterm() -> Iterator[None]:
    """Let a polite kill stop the run as Ctrl-C does."""

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Telling:
    """Shows the progress to people on standard error, or steps to machines on standard output."""

    def __init__(
        self, tracker: Tracker, screen: Console, *, as_json: bool, drive: FeedOptions
    ) -> None:
        self.tracker, self.screen, self.as_json = tracker, screen, as_json
        self.each_step = drive.watch and not as_json and not screen.is_terminal
        self.joined = drive.first > 1  # so the first step holds corrections of its own cells
        self.before = tracker.progress().last
        self.n_combined = 0
        self.n_steps = self.n_records = self.n_bad = self.n_repeated = self.n_known = 0
        self.began = time.perf_counter()
        self.errors: deque[float] = deque(maxlen=RECENT)
        self.learned: deque[float] = deque(maxlen=RECENT)
        self.bar = Bar(None, "starting", show=screen.is_terminal and not as_json, screen=screen)
        self.bar.tell(after=f"step {_steps(tracker)}")

    def begin(self, feed: Feed) -> None:
        """Begin a file; its size is the length of the bar."""
        self.bar.begin_again(feed.size, Path(feed.name).name)

    def tell(self, event: Taken | Skipped) -> None:
        """Show what happened."""
        if isinstance(event, Skipped):
            self.n_known += event.known
            if not self.as_json and not event.known:
                self.note(f"{event.source}: {event.why}.")
            return
        info = event.info
        if info.repeated:
            self.n_repeated += 1
            return
        self.n_steps += event.records > 0  # bad records alone are no step
        self.n_records += event.records
        self.n_bad += event.bad
        self.n_combined += 0 if self.joined and info.step == 1 else info.duplicates
        if info.prequential_error is not None:
            self.errors.append(info.prequential_error)
        if info.learned_error is not None:
            self.learned.append(info.learned_error)
        if self.each_step:
            self.note(f"{Path(event.source).name}: {info}")
        words = f"step {info.step} {self.rate:,.0f} records/s"
        words += "" if self.fitness is None else f" fitness {self.fitness:.3f}"
        self.bar.tell(after=words, done=event.done)
        if self.as_json:
            print(json.dumps(_line(event)), flush=True)

    @property
    def rate(self) -> float:
        """Records per second since the start."""
        return self.n_records / max(time.perf_counter() - self.began, 1e-9)

    @property
    def fitness(self) -> float | None:
        """Mean fitness of the last batches, predicted before they were learned."""
        return 1.0 - sum(self.errors) / len(self.errors) if self.errors else None

    def recount(self) -> None:
        """Count by the ledger: a step may be on the disk that nobody was told of, or not be there.

        An interrupt may come right behind its commit, and a run that is learned again from its
        files is kept at its end only.  Where the ledger cannot be read either, what was told holds.
        """
        with suppress(TensortideError):
            _, self.n_steps, self.n_records, self.n_bad = self.tracker.progress(self.before)

    def note(self, text: str) -> None:
        """Say something beside the bar."""
        self.screen.print(text)

    def summary(self, word: str) -> None:
        """Say what was done altogether."""
        seconds = time.perf_counter() - self.began
        if self.as_json:
            print(json.dumps({
                word: True, "steps": self.n_steps, "records": self.n_records, "bad": self.n_bad,
                "known": self.n_repeated, "step": _steps(self.tracker), "seconds": seconds,
                "fitness": self.fitness, "run": str(self.tracker.path),
            }))  # fmt: skip
            return
        text = f"{word}: {counted(self.n_steps, 'step')}, {counted(self.n_records, 'record')}"
        text += f" in {seconds:.1f} s"
        if self.n_records:
            text += f" ({self.rate:,.0f} a second)"
        if self.n_known:
            text += f", {counted(self.n_known, 'file')} had nothing new"
        if self.n_repeated:
            text += f", {counted(self.n_repeated, 'step')} known already"
        if self.fitness is not None:
            over = counted(len(self.errors), "step")
            after = 1.0 - sum(self.learned) / len(self.learned)
            text += f"; fitness {self.fitness:.3f} before learning, {after:.3f} after (last {over})"
        self.note(text + ".")
        if self.n_combined:
            self._tell_combined()
        if self.n_bad and not self.n_records:
            self.note("Every record was bad: nothing was learned.")
        if self.n_bad:
            self.note(
                f"{counted(self.n_bad, 'bad record')} set aside: "
                f"{self.tracker.path / 'quarantine.csv'}"
            )

    def _tell_combined(self) -> None:
        rule = self.tracker.params["duplicates"]
        said = {
            "last": "dropped for a later one of the same cell and step; --duplicates sum, mean or "
            "count combine them instead",
            "sum": "added to another one of the same cell and step",
            "mean": "averaged with others of the same cell and step",
            "count": "counted with others of the same cell and step",
        }
        self.note(f"{counted(self.n_combined, 'record')} {said[rule]}.")


def _line(event: Taken) -> dict[str, Any]:
    from tensortide.tracker.batches import report_of

    return {
        "source": event.source,
        "label": event.label,
        "records": event.records,
        "bad": event.bad,
        **report_of(event.info),
    }
