"""`Tracker`: a model whose every step is on the disk before it is taken."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.errors import FileError, InputError, NotFittedError
from tensortide.methods.registry import method_for
from tensortide.online.estimator import OnlineCP
from tensortide.online.info import Info
from tensortide.online.plain_data import plain_params
from tensortide.sources.resume import Place
from tensortide.tracker.batches import Line, known_batch, last_link, warn_of_others
from tensortide.tracker.commit import commit_first, commit_step, commit_whole
from tensortide.tracker.history import remove_strays
from tensortide.tracker.learn_again import adopt_ledger
from tensortide.tracker.ledger import FILE, Ledger, is_unused, make_folder
from tensortide.tracker.lock import Lock
from tensortide.tracker.reader import RunReader

if TYPE_CHECKING:
    from tensortide.core.losses.standard import Loss
    from tensortide.core.steps.method import Method
    from tensortide.online.parameters import Absent, Combine, Duplicates, Penalties, Prior
    from tensortide.tracker.feeding import Summary


class Tracker(RunReader):
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

    def __init__(self, *_: object, **__: object) -> None:
        raise InputError("use Tracker.open(path) or Tracker.create(path, ...).")

    @classmethod
    def _open(cls, path: Path, lock: Lock | None) -> Tracker:
        run = cls.__new__(cls)
        run._begin(path, lock)
        if lock is not None:
            try:
                remove_strays(run._ledger)
            except BaseException:
                run.close()
                raise
        return run

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
        prior: Prior | None = None,
        fibres: bool | None = None,
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
            combine=combine, loss=loss, penalties=penalties, prior=prior, fibres=fibres, seed=seed,
            threads=threads,
        )  # fmt: skip
        keeps = method_for(method).keeps_history if keep_surprises is None else keep_surprises
        meta = {
            "params": plain_params(estimator.get_params()),
            "options": {"keep_surprises": bool(keeps)},
        }
        folder = make_folder(Path(path))
        lock = Lock(folder, wait=wait)
        try:
            if (folder / FILE).exists() and not is_unused(folder):
                raise FileError(
                    f"{folder}: there is a run already; open it, or choose another folder."
                )
            Ledger.create(folder, meta)
        except BaseException:
            lock.release()
            raise
        return cls._open(folder, lock)

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False, wait: float = 0.0) -> Tracker:
        """Go on with a run.

        One process writes at a time: a second one waits up to `wait` seconds, then refuses.
        With `read_only` the run is read as it stands, also while another process writes.
        """
        folder = Path(path)
        if not (folder / FILE).is_file():
            raise FileError(f"{folder}: there is no run here (no {FILE}).")
        return cls._open(folder, None if read_only else Lock(folder, wait=wait))

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
        model = estimator._require_model()
        info = model.nothing() if plan is None else plan.info
        info = replace(info, batch_id=line.batch_id, seconds=time.perf_counter() - began)
        with self._following_the_disk():
            commit_step(self._ledger, model, plan, info, line)
            if plan is not None:
                self._leave_views(model)
                model.adopt(plan, info)
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
        from tensortide.tracker.feeding import FeedOptions, Summary, cut_of, feed_any

        how = FeedOptions(
            cut=cut_of(step_by, step_rows, step_files), on_bad=on_bad, first=first, name=name,
            changed_file=changed_file,
        )  # fmt: skip
        return Summary.of(feed_any(self, source, how))

    def change_rank(self, rank: int) -> float:
        """Go on with another number of components; see `OnlineCP.change_rank`."""
        estimator = self._require_estimator().copy()
        lost = estimator.change_rank(rank)
        self._rewrite(estimator, "rank", f"rank {rank}")
        return lost

    def retire(self, mode: str | int, labels: Sequence[Any]) -> None:
        """Forget labels of a mode; see `OnlineCP.retire`."""
        estimator = self._require_estimator().copy()
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
            model = None if estimator is None else estimator._require_model()
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
            commit_whole(self._ledger, estimator._require_model(), kind, line)
            self._estimator = estimator

    @contextmanager
    def _following_the_disk(self) -> Iterator[None]:
        """Forget the model in memory if anything comes between: the disk knows what happened."""
        try:
            yield
        except BaseException:
            self._estimator = None
            raise

    def _check_writable(self) -> None:
        if self._lock is None:
            raise FileError(f"{self.path}: the run was opened for reading only, or is closed.")
