"""What can be read from a fitted model: predictions, scores, components, factors, surprises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from tensortide.arrays import AnyArray, Floats, Shape
from tensortide.errors import InputError, NotFittedError
from tensortide.methods.registry import by_name
from tensortide.online.parameters import Parameters
from tensortide.validate import check_choice, check_count
from tensortide.wording import written

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray

    from tensortide.data.arrival import Arrival
    from tensortide.online.estimator import OnlineCP
    from tensortide.online.info import Info
    from tensortide.online.model import Model

Unknown: TypeAlias = Literal["error", "nan", "forecast"]
Scale: TypeAlias = Literal["mean", "model"]

_LEARNING = {
    "fit": "ingest(records)",
    "update": "ingest(records)",
    "partial_fit": "ingest(records)",
    "change_rank": "change_rank(rank)",
    "retire": "retire(mode, labels)",
}


class _ReadOnlyError(InputError, AttributeError):
    """Somebody wants to teach a model that is for reading."""


class ReadOnlyModel(Parameters):
    """What can be read from a model; `tensortide.Tracker.model` hands it out, `copy` can learn.

    It shows one state: a run that goes on does not change it.
    """

    _model: Model | None
    _used: dict[str, Any]
    _before_priors: bool = False  # read from a file of a version that knew no learned priors
    info_: Info

    @classmethod
    def around(cls, estimator: ReadOnlyModel) -> ReadOnlyModel:
        """Return a view of an estimator as it is now."""
        view = cls()
        for name, value in estimator.get_params().items():
            setattr(view, name, value)
        view._model, view._used, view.info_ = estimator._model, estimator._used, estimator.info_
        view._before_priors = estimator._before_priors
        return view

    def predict(self, cells: Any, *, unknown: Unknown = "error", scale: Scale = "mean") -> Floats:
        """Return the model's values at labelled cells, in the order given.

        Cells are a table with the mode columns or an (n, N) array of positions.  A label
        that the model has not seen is an error, or gives NaN with ``unknown="nan"``; with
        ``unknown="forecast"`` labels of the ordered mode that never came are forecast (see
        `forecast`), and others are an error.  With loss 'bernoulli' the values are
        probabilities, and log odds with ``scale="model"``.
        """
        check_choice("unknown", unknown, get_args(Unknown))
        check_choice("scale", scale, get_args(Scale))
        model = self._require_model()
        if unknown == "forecast":
            from tensortide.online.forecast import forecast_cells

            values = forecast_cells(self._require_outlook(), cells)[0]
            return model.method.loss.mean(values) if scale == "mean" else values
        positions = model.modes.cells(cells, unknown_is_nan=unknown == "nan")
        lost = positions[:, 0] < 0
        values = model.predict(np.where(lost[:, None], 0, positions))
        if scale == "mean":
            values = model.method.loss.mean(values)
        values[lost] = np.nan
        return values

    def forecast(
        self,
        steps: int | Sequence[Any],
        mode: str | int | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        max_cells: int = 5_000_000,
    ) -> pa.Table:
        """Return what is expected of the labels that come next: a row per cell and label.

        `steps` is how many labels ahead, in the usual distance of labels, or a list of labels:
        ahead, or between known ones, where a value lies on the straight line between those of
        the two next to it.  `mode` is the one that goes on; it can be left out where only one
        has dates or times, or else whole numbers.  `where` chooses labels of other modes,
        ``{"place": ["Kiel"]}``.  Cells are those that were observed where the model knows them
        (history, or fibres), else all combinations of labels, up to `max_cells` rows.  The
        columns are the modes, ``value``, and ``forecast``: whether the label never came.  One
        step ahead is what the next batch is predicted with before it is learned.

        >>> import tensortide as tt
        >>> days = {"place": ["A", "B"] * 4, "day": [1, 1, 2, 2, 3, 3, 4, 4], "value": [3, 6] * 4}
        >>> ahead = tt.OnlineCP(rank=1).fit(days).forecast(2, where={"place": "B"})
        >>> ahead["day"].to_pylist(), [round(v, 2) for v in ahead["value"].to_pylist()]
        ([5, 6], [6.0, 6.0])
        """
        from tensortide.online.forecast import forecast_table

        return forecast_table(self._require_outlook(), steps, mode, where, max_cells)

    def surprise(self, records: Any, *, mode: int | str = -1, mask: Any = None) -> pa.Table:
        """Say how likely each value of a batch is before it is learned; nothing is learned.

        A row per cell: its labels, value, what is expected, the 95 % range, and the
        probability of a value at least as far out (NaN while there is no experience with new
        labels, unless four or more cells of one new label can be compared).  `update` lists the
        least likely in ``info.surprises``.
        """
        from tensortide.online.surprise import judged_table

        model = self._require_model()
        arrival = self._arrival(records, mode, mask)
        return judged_table(model.judge(arrival), arrival, model.modes)

    def score(self, records: Any, *, mask: Any = None) -> float:
        """Return the fitness ``1 - |x - y| / |x|`` on these cells (of an array: the observed)."""
        model = self._require_model()
        from tensortide.online.changes import distinct
        from tensortide.online.score import fitness

        arrival = model.modes.read(
            records, self._used["value"], counting=self._used["duplicates"] == "count", mask=mask
        )
        for name, fresh in zip(model.modes.names, arrival.fresh, strict=True):
            if len(fresh):
                raise InputError(
                    f"mode {name!r} has no label {written(next(iter(fresh)))}; score takes labels "
                    "that the model has seen."
                )
        if not len(arrival.values):
            raise InputError("there are no cells to score.")
        cells = distinct(model.rules, arrival)
        values = model.method.loss.mean(model.predict(cells.coords))
        return fitness(cells.values, values)

    def components(self, top: int = 10) -> pa.Table:
        """Return who is in each component: component, weight, mode, label, loading.

        Strongest component first, columns of norm one, at most `top` labels per mode.
        """
        check_count("top", top, least=1)
        from tensortide.online.components import components_table

        model = self._require_model()
        return components_table(model.rows(), model.modes, top)

    def reconstruct(
        self,
        labels: Mapping[str, Sequence[Any]] | None = None,
        *,
        max_cells: int = 50_000_000,
        scale: Scale = "mean",
    ) -> Floats:
        """Return the model as a dense array over all labels, or over those given per mode.

        Values are those of `predict`; with loss 'bernoulli' and ``scale="model"`` log odds.
        Refuses a box of more than `max_cells` cells and says how large it would be.
        """
        from tensortide.online.export import dense_box

        check_choice("scale", scale, get_args(Scale))
        model = self._require_model()
        values = dense_box(model.rows(), model.modes, labels, max_cells)
        return model.method.loss.mean(values) if scale == "mean" else values

    def to_cp_tensor(self) -> tuple[Floats, list[Floats]]:
        """Return (weights, factors), which tensorly's CPTensor takes."""
        return self.weights_, self.factors_

    def to_xarray(self) -> xarray.Dataset:
        """Return the factors as an xarray data set indexed by labels (needs xarray)."""
        from tensortide.online.export import to_dataset

        model = self._require_model()
        return to_dataset(model.rows(), model.modes)

    @property
    def factors_(self) -> list[Floats]:
        """The factors, one (I_n, R) array per mode (copies)."""
        return [rows.copy() for rows in self._require_model().rows()]

    @property
    def weights_(self) -> Floats:
        """Weights of the components: ones, as the factors carry the scale."""
        return np.ones(self._require_model().rank)

    @property
    def labels_(self) -> dict[str, AnyArray]:
        """The labels of each mode, in the order of the factors' rows."""
        modes = self._require_model().modes
        return {n: labels.array() for n, labels in zip(modes.names, modes.labels, strict=True)}

    @property
    def shape_(self) -> Shape:
        """Size of each mode."""
        return self._require_model().modes.shape

    @property
    def n_steps_(self) -> int:
        """Steps taken, preparation included."""
        return self._require_model().n_steps

    @property
    def n_entries_(self) -> int:
        """Distinct cells seen; without history an estimate.

        Its standard error is 1.6 %; cells that are reported again after labels were retired
        count twice.
        """
        return round(self._require_model().n_entries)

    @property
    def state_bytes_(self) -> int:
        """Bytes of numbers that the model holds: factors, what the method remembers, history."""
        model = self._require_model()
        held = sum(rows.nbytes for rows in model.rows())
        held += sum(array.nbytes for array in model.memory.values())
        held += sum(told.nbytes for told in model.factors.precisions())
        held += 0 if model.ahead.fibres is None else model.ahead.fibres.nbytes
        return held + (0 if model.store is None else model.store.nbytes)

    # ------------------------------------------------------------------ keeping

    def copy(self) -> OnlineCP:
        """Return an independent model, which can learn."""
        from tensortide.online.estimator import OnlineCP

        other = OnlineCP(**self.get_params())
        if self._model is not None:
            other._model, other.info_ = self._model.copy(), self.info_
            other._used, other._before_priors = dict(self._used), self._before_priors
        return other

    def save(self, path: str | Path) -> None:
        """Write the model to one file: arrays and JSON, no pickle.  Replaces it whole or not."""
        from tensortide.online.saved import save_model

        save_model(self._used, self._require_model(), Path(path))

    def __repr__(self) -> str:
        """Show the parameters that matter and what the model has seen."""
        name, method = type(self).__name__, repr(by_name(self.method))
        if self._model is None:
            return f"{name}(rank={self.rank}, method={method}, not fitted)"
        names = self._model.modes.names
        shape = " x ".join(f"{n} {m}" for m, n in zip(names, self.shape_, strict=True))
        return f"{name}(rank={self.rank}, method={method}, {shape}, step {self.n_steps_})"

    def _repr_html_(self) -> str:
        """Show the model in a notebook: what it has seen, and who is in its components."""
        from tensortide.online.display import model_html

        return model_html(self)

    if not TYPE_CHECKING:  # which is to see that a name is wrong

        def __getattr__(self, name: str) -> Any:
            """Say how a run learns, where somebody asks its model to."""
            if name in _LEARNING:
                raise _ReadOnlyError(
                    f"this model is for reading, it has no {name}; its run learns by tracker."
                    f"{_LEARNING[name]}, and model.copy() learns without the ledger."
                )
            return object.__getattribute__(self, name)  # which raises again what it did

    # ------------------------------------------------------------------ inside

    def _arrival(self, records: Any, mode: int | str, mask: Any) -> Arrival:
        modes = self._require_model().modes
        return modes.read(
            records,
            self._used["value"],
            counting=self._used["duplicates"] == "count",
            mask=mask,
            append_along=modes.index(mode),
        )

    def _require_outlook(self) -> Model:
        """Return the model if it sees anything ahead; else say what keeps it from that."""
        model = self._require_model()
        if not model.learned:
            from tensortide.online.no_outlook import no_outlook

            raise InputError(no_outlook(model.method, self._used, former=self._before_priors))
        return model

    def _require_model(self) -> Model:
        if self._model is None:
            raise NotFittedError("this model has seen no data yet; call fit or update first.")
        return self._model
