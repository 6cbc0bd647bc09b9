"""`Tracker`: a model whose every step is on the disk before it is taken."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tensortide.errors import FileError, InputError, NotFittedError
from tensortide.online.estimator import OnlineCP
from tensortide.online.info import Info
from tensortide.online.plain_data import plain_params, read_params
from tensortide.online.reading import ReadOnlyModel
from tensortide.sources.resume import Place
from tensortide.tracker.batches import (
    Line,
    batches_table,
    known_batch,
    last_link,
    read_places,
    read_quarantine,
    warn_of_others,
)
from tensortide.tracker.commit import commit_first, commit_step, commit_whole
from tensortide.tracker.history import remove_strays
from tensortide.tracker.learn_again import adopt_ledger
from tensortide.tracker.ledger import FILE, Ledger, is_unused, make_folder
from tensortide.tracker.lock import Lock
from tensortide.tracker.state import read_model
from tensortide.tracker.surprises import KeptSurprise, read_surprises

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.core.losses.standard import Loss
    from tensortide.core.steps.method import Method
    from tensortide.online.model import Model
    from tensortide.online.parameters import Absent, Combine, Duplicates, Penalties
    from tensortide.sources.columns import BadRecord
    from tensortide.tracker.feeding import Summary


class Tracker:
    """A durable run: a folder whose ledger has every batch exactly once.

    What is on the disk is the truth; the model in memory follows it.  A step that fails for
    whatever reason, also a kill or a full disk, leaves the run as it was before.

    >>> import tempfile, tensortide as tt
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> first = {"place": ["A", "A", "B", "B"], "day": [1, 2, 1, 2], "count": [2, 4, 3, 6]}
    >>> with tt.Tracker.create(folder, 1, modes=["place", "day"], value="count") as run:
    ...     _ = run.ingest(first, batch_id="monday")
    ...     print(run.ingest(first, batch_id="monday"))
    batch 'monday' was applied at step 1: nothing done
    >>> with tt.Tracker.open(folder, read_only=True) as run:
    ...     run.model.predict({"place": ["B"], "day": [2]}).round(3).tolist()
    [6.0]
    """

    def __init__(self, path: Path, lock: Lock | str | None = "") -> None:
        if isinstance(lock, str):
            raise InputError("use Tracker.open(path) or Tracker.create(path, ...).")
        self.path, self._lock = path, lock
        read_only = lock is None
        try:
            self._ledger = Ledger(self.path, read_only=read_only)
            self._estimator: OnlineCP | None = None
            self._views: WeakSet[ReadOnlyModel] = WeakSet()
            self._load()
            if not read_only:
                remove_strays(self._ledger)
        except BaseException:
            self._release()
            raise

    @classmethod
    def create(
        cls,
        path: str | Path,
        rank: int = 5,
        method: str | Method = "gocpte",
        *,
        modes: Sequence[str] | None = None,
        value: str = "value",
        absent: Absent = "missing",
        duplicates: Duplicates = "last",
        combine: Combine = "replace",
        loss: str | Loss = "squared",
        penalties: Penalties | None = None,
        seed: int = 0,
        threads: int | None = None,
        keep_surprises: bool | None = None,
        wait: float = 0.0,
    ) -> Tracker:
        """Begin a run in a new folder; the parameters are those of `OnlineCP`.

        The method is `gocpte` unless said otherwise: what lies on a disk for years should hold no
        raw value that nobody asked to keep.
        `keep_surprises` None: only where the method keeps history anyway, since surprises
        are raw values.
        """
        estimator = OnlineCP(
            rank, method, modes=modes, value=value, absent=absent, duplicates=duplicates,
            combine=combine, loss=loss, penalties=penalties, seed=seed, threads=threads,
        )  # fmt: skip
        params = plain_params(estimator.get_params())
        keeps = read_params(params)["method"].keeps_history
        options = {"keep_surprises": keeps if keep_surprises is None else bool(keep_surprises)}
        folder = make_folder(Path(path))
        lock = Lock(folder, wait=wait)
        try:
            if (folder / FILE).exists() and not is_unused(folder):
                raise FileError(
                    f"{folder}: there is a run already; open it, or choose another folder."
                )
            Ledger.create(folder, {"params": params, "options": options})
        except BaseException:
            lock.release()
            raise
        return cls(folder, lock)

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False, wait: float = 0.0) -> Tracker:
        """Go on with a run.

        One process writes at a time: a second one waits up to `wait` seconds, then refuses.
        With `read_only` the run is read as it stands, also while another process writes.
        """
        folder = Path(path)
        if not (folder / FILE).is_file():
            raise FileError(f"{folder}: there is no run here (no {FILE}).")
        return cls(folder, None if read_only else Lock(folder, wait=wait))

    # ------------------------------------------------------------------ learning

    def ingest(
        self, records: Any = None, batch_id: str | None = None, *, retract: Any = None
    ) -> Info:
        """Take one step and commit it; a batch id that is known already does nothing.

        Records and `retract` are what `OnlineCP.update` takes.  Without an id every call is a
        batch of its own.
        """
        if batch_id is None:
            batch_id = uuid.uuid4().hex
        elif not (isinstance(batch_id, str) and batch_id):
            raise InputError(f"batch_id must be a text, not {batch_id!r}.")
        return self.take(records, Line(batch_id), retract)

    def take(self, records: Any, line: Line, retract: Any = None) -> Info:
        """Take one step whose line in the ledger says where it came from."""
        began = time.perf_counter()
        self._check_writable()
        known = known_batch(self._ledger, line.batch_id)
        if known is not None:
            warn_of_others(known, records)
            return known.info
        estimator = self._current()
        if estimator is None:
            return self._prepare(records, line, retract, began)
        plan = None
        if records is not None or retract is not None:
            plan = estimator._plan(records, retract)
        model = estimator._fitted()
        info = model.nothing() if plan is None else plan.info
        info = replace(info, batch_id=line.batch_id, seconds=time.perf_counter() - began)
        with self._following_the_disk():
            commit_step(self._ledger, model, plan, info, line)
            if plan is not None:
                self._leave_views(model)
                model.adopt(plan)
            estimator.info_ = info
        return info

    def track(
        self,
        source: Any,
        *,
        step_by: str | None = None,
        step_rows: int | None = None,
        step_files: bool = False,
        name: str | None = None,
        on_bad: str = "stop",
        first: int = 1,
        changed_file: str = "stop",
    ) -> Summary:
        """Take all that a source has and the ledger does not.

        A source is a path or a list of paths (files, folders), a table, an iterator of tables,
        a DuckDB query or a database cursor.  Files are known by path and content; tables by
        `name` and the number of records taken, and without a name everything is new.  Steps
        are made by a column, by a number of records, or are files (tables); the first `first`
        of them are learned together.  `on_bad` is ``"stop"`` or ``"quarantine"``.  A file that is
        no longer what was learned of it is an error; with `changed_file` ``"replace"`` the run is
        learned again from its files, with ``"new"`` all of that file is taken as new records.
        """
        from tensortide.tracker import feeding as drive

        how = drive.FeedOptions(
            drive.cut_of(step_by, step_rows, step_files), on_bad, first, name=name,
            changed_file=changed_file,
        )  # fmt: skip
        return drive.Summary.of(drive.taken(self, source, how))

    def change_rank(self, rank: int) -> float:
        """Go on with another number of components; see `OnlineCP.change_rank`."""
        estimator = self._fitted().copy()
        lost = estimator.change_rank(rank)
        self._rewrite(estimator, "rank", f"rank {rank}")
        return lost

    def retire(self, mode: str | int, labels: Sequence[Any]) -> None:
        """Forget labels of a mode; see `OnlineCP.retire`."""
        estimator = self._fitted().copy()
        estimator.retire(mode, labels)
        self._rewrite(estimator, "retire", f"{mode}: {len(labels)} labels retired")
        self._ledger.forget("the labels that were retired")

    def adopt_run(self, folder: Path) -> None:
        """Become the run in another folder, which is closed: at once, or not at all."""
        self._check_writable()
        with self._following_the_disk():
            useless = adopt_ledger(self._ledger, folder)
            self._ledger.mark_commit(*last_link(self._ledger))
            self._estimator = None
        for file in useless:
            file.unlink(missing_ok=True)

    # ------------------------------------------------------------------ reading

    @property
    def model(self) -> ReadOnlyModel:
        """The model as of the last commit, for reading; `model.copy()` can learn on its own.

        It stays as it is while the run goes on.
        """
        view = ReadOnlyModel.around(self._fitted())
        self._views.add(view)
        return view

    @property
    def fitted(self) -> bool:
        """Whether there is a model: the first data have come."""
        return self._current() is not None

    @property
    def params(self) -> dict[str, Any]:
        """What the run was created with; the rank may have been changed since."""
        return read_params(self._ledger.get("params"))

    @property
    def options(self) -> dict[str, Any]:
        """Settings of the run that are not those of the model."""
        found: dict[str, Any] = self._ledger.get("options")
        return found

    def set_options(self, *, modes: Sequence[str] | None = None, **options: Any) -> None:
        """Change settings of the run; `modes` are set where it was created without."""
        self._check_writable()
        params = self._ledger.get("params")
        with self._ledger.writing() as db:
            self._ledger.put("options", self.options | options)
            if options.get("keep_surprises") is False:
                db.execute("DELETE FROM surprises")
                self._ledger.sum_up("surprises")
            if modes is not None and params["modes"] is None:
                self._ledger.put("params", params | {"modes": list(modes)})
        if options.get("keep_surprises") is False:
            self._ledger.forget("the surprises that were removed")
        if modes is not None and self._estimator is not None:
            self._estimator = None

    def batches(self) -> pa.Table:
        """Return the ledger: one row per batch, oldest first."""
        with self._ledger.reading():
            return batches_table(self._ledger)

    def surprises(self) -> list[KeptSurprise]:
        """Return the values that were least likely before they were learned, if they are kept."""
        with self._ledger.reading():
            return read_surprises(self._ledger)

    def knows(self, batch_id: str) -> bool:
        """Tell whether a batch of this id has been applied."""
        with self._ledger.reading():
            return known_batch(self._ledger, batch_id) is not None

    def quarantined(self) -> list[BadRecord]:
        """Return the bad records that were set aside, oldest first."""
        with self._ledger.reading():
            return read_quarantine(self._ledger)

    def places(self) -> list[Place]:
        """Return where steps have ended in their sources, oldest first."""
        with self._ledger.reading():
            return read_places(self._ledger)

    def close(self) -> None:
        """Let others write; a closed tracker cannot be used any more."""
        self._release()

    def __enter__(self) -> Tracker:
        """Return the tracker itself; it is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _repr_html_(self) -> str:
        """Show the run in a notebook."""
        from html import escape

        model = self.model._repr_html_() if self.fitted else "<div>no data yet</div>"
        return f"<div>run <strong>{escape(str(self.path))}</strong></div>{model}"

    def __repr__(self) -> str:
        """Show where it is and what it holds."""
        model = "no data yet" if not self.fitted else repr(self._fitted())
        return f"Tracker({str(self.path)!r}, {model})"

    # ------------------------------------------------------------------ inside

    def _prepare(self, records: Any, line: Line, retract: Any, began: float) -> Info:
        """Make the model from first data; a first batch of bad records only leaves its line."""
        estimator, info = None, Info(step=0, entries=0)
        if records is not None:
            estimator = OnlineCP(**self.params)
            info = estimator.update(records, retract=retract)
        elif not line.bad:
            raise NotFittedError("this run has seen no data yet; give records.")
        info = replace(info, batch_id=line.batch_id, seconds=time.perf_counter() - began)
        with self._following_the_disk():
            model = None if estimator is None else estimator._fitted()
            commit_first(self._ledger, model, info, line)
            if estimator is not None:
                estimator.info_ = info
            self._estimator = estimator
        return info

    def _rewrite(self, estimator: OnlineCP, kind: str, label: str) -> None:
        """Commit a model that is another one throughout."""
        self._check_writable()
        line = Line(uuid.uuid4().hex, Place(source="", label=label))
        with self._following_the_disk():
            commit_whole(self._ledger, estimator._fitted(), kind, line)
            self._estimator = estimator

    def _leave_views(self, model: Model) -> None:
        """Give models that were handed out, and are still held, a state of their own."""
        views = [view for view in self._views if view._model is model]
        if views:
            kept = model.copy()
            for view in views:
                view._model = kept
        self._views.clear()

    @contextmanager
    def _following_the_disk(self) -> Iterator[None]:
        """Forget the model in memory if anything comes between: the disk knows what happened."""
        try:
            yield
        except BaseException:
            self._estimator = None
            raise

    def _load(self) -> None:
        """Read the model; a reader may have to look again while a writer tidies its history."""
        for _ in range(3 if self._lock is None else 1):
            try:
                return self._load_once()
            except FileError as error:
                trouble = error
        raise trouble

    def _load_once(self) -> None:
        with self._ledger.reading():
            self._estimator = read_model(self._ledger)

    def _current(self) -> OnlineCP | None:
        if self._estimator is None:
            self._load()
        return self._estimator

    def _fitted(self) -> OnlineCP:
        estimator = self._current()
        if estimator is None:
            raise NotFittedError(f"{self.path}: this run has seen no data yet.")
        return estimator

    def _check_writable(self) -> None:
        if self._lock is None:
            raise FileError(f"{self.path}: the run was opened for reading only, or is closed.")

    def _release(self) -> None:
        if hasattr(self, "_ledger"):
            self._ledger.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
