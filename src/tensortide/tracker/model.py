"""The model of a run, for reading."""

from __future__ import annotations

from typing import Any

from tensortide.errors import InputError
from tensortide.online.estimator import OnlineCP
from tensortide.online.info import Info


class TrackedModel(OnlineCP):
    """The model of a run.  It learns by `Tracker.ingest` only, so that the ledger knows of it."""

    @classmethod
    def around(cls, estimator: OnlineCP) -> TrackedModel:
        """Return a view of an estimator."""
        view = cls(**estimator.get_params())
        view._model, view._used, view.info_ = estimator._model, estimator._used, estimator.info_
        return view

    def fit(self, *_: Any, **__: Any) -> OnlineCP:
        """Refuse: a run learns through its tracker."""
        raise self._refusal("ingest(records)")

    def update(self, *_: Any, **__: Any) -> Info:
        """Refuse: a run learns through its tracker."""
        raise self._refusal("ingest(records)")

    def change_rank(self, rank: int) -> float:
        """Refuse: a run changes through its tracker."""
        raise self._refusal(f"change_rank({rank})")

    def retire(self, *_: Any, **__: Any) -> None:
        """Refuse: a run changes through its tracker."""
        raise self._refusal("retire(mode, labels)")

    def _refusal(self, instead: str) -> InputError:
        return InputError(
            f"this model belongs to a run; use tracker.{instead}, or model.copy() to go on "
            "without the ledger."
        )
