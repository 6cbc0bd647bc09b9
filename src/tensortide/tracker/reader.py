"""The half of a run that only reads: its model, its ledger, what it set aside."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import WeakSet

from tensortide.errors import FileError, NotFittedError
from tensortide.online.estimator import OnlineCP
from tensortide.online.plain_data import read_params
from tensortide.online.reading import ReadOnlyModel
from tensortide.tracker.batches import batches_table, known_batch, read_places, read_quarantine
from tensortide.tracker.ledger import Ledger
from tensortide.tracker.state import read_model
from tensortide.tracker.surprises import KeptSurprise, read_surprises

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.online.model import Model
    from tensortide.sources.columns import BadRecord
    from tensortide.sources.resume import Place
    from tensortide.tracker.lock import Lock


class Progress(NamedTuple):
    """The number of the last batch, and the steps, records and bad records of some batches."""

    last: int
    steps: int
    records: int
    bad: int


class RunReader:
    """A run as it stands; `Tracker` is one that learns, if it has the lock."""

    path: Path
    base: Path  # the folder that paths of sources are relative to
    _lock: Lock | None
    _ledger: Ledger
    _estimator: OnlineCP | None
    _views: WeakSet[ReadOnlyModel]

    def _begin(self, path: Path, lock: Lock | None) -> None:
        """Open the ledger, for reading only where there is no lock, and read the model."""
        self.path = self.base = path
        self._lock = lock
        self._estimator, self._views = None, WeakSet()
        try:
            self._ledger = Ledger(path, read_only=lock is None)
            self._load()
        except BaseException:
            self._release()
            raise

    @property
    def model(self) -> ReadOnlyModel:
        """The model as of the last commit, for reading; `model.copy()` can learn on its own.

        It stays as it is while the run goes on; one that is held while the next step is taken
        costs a copy of the factors, so ask for it anew rather than keep it in a loop.
        """
        view = ReadOnlyModel.around(self._require_estimator())
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
    def settled(self) -> dict[str, Any]:
        """The parameters with what None stands for: which prior, and whether fibres are kept."""
        return OnlineCP(**self.params)._settled()

    @property
    def options(self) -> dict[str, Any]:
        """Settings of the run that are not those of the model."""
        found: dict[str, Any] = self._ledger.get("options")
        return found

    def progress(self, since: int = 0) -> Progress:
        """Return what the batches after a number have brought, as the disk has it."""
        with self._ledger.reading() as db:
            row = db.execute(
                "SELECT ifnull(max(seq), ?1), ifnull(sum(kind IN ('prepare', 'step')), 0), "
                "ifnull(sum(records), 0), ifnull(sum(bad), 0) FROM batches WHERE seq > ?1",
                (since,),
            ).fetchone()
        return Progress(*row)

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

    def __enter__(self) -> Self:
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
        from tensortide.markup import strong

        model = self.model._repr_html_() if self.fitted else "<div>no data yet</div>"
        return f"<div>run {strong(self.path)}</div>{model}"

    def __repr__(self) -> str:
        """Show where it is and what it holds."""
        model = "no data yet" if not self.fitted else repr(self._require_estimator())
        return f"Tracker({str(self.path)!r}, {model})"

    # ------------------------------------------------------------------ inside

    def _leave_views(self, model: Model) -> None:
        """Give models that were handed out, and are still held, a state of their own."""
        views = [view for view in self._views if view._model is model]
        if views:
            kept = model.copy()
            for view in views:
                view._model = kept
        self._views.clear()

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

    def _require_estimator(self) -> OnlineCP:
        estimator = self._current()
        if estimator is None:
            raise NotFittedError(f"{self.path}: this run has seen no data yet.")
        return estimator

    def _release(self) -> None:
        if hasattr(self, "_ledger"):
            self._ledger.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
