"""`OnlineCP`: the public face of a model that evolves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tensortide.core.losses.standard import Loss
from tensortide.core.steps.method import Method
from tensortide.data.modes import Modes
from tensortide.errors import InputError, NotFittedError
from tensortide.online.info import Info
from tensortide.online.parameters import Absent, Combine, Duplicates, Penalties, Prior
from tensortide.online.reading import ReadOnlyModel
from tensortide.validate import check_count, check_factors, check_modes, check_rank

if TYPE_CHECKING:
    from tensortide.online.model import Model
    from tensortide.online.plan import Plan


class OnlineCP(ReadOnlyModel):
    """A rank-R CP model of a tensor that grows, fills up and is corrected.

    Parameters
    ----------
    rank
        Number of components.
    method
        A name in `METHODS` or what such a function returns: ``gocpt()`` keeps history,
        ``gocpte()`` needs none; ``tensortide methods`` lists all.
    modes, value
        Names of the label columns and of the value column of a table.  Without `modes` all
        columns but `value` are modes.
    absent
        ``"missing"``: cells that are not listed are unknown; ``"zero"``: they are zeros.
    duplicates
        Several records for one cell in a batch: ``"last"``, ``"sum"``, ``"mean"``,
        ``"count"`` (of records; needs no value column) or ``"error"``.
    combine
        A record for a known cell: ``"replace"`` its value, or ``"add"`` to it.
    loss
        ``"squared"``, ``"poisson"`` (counts), ``"negative_binomial"``, ``"gamma"``,
        ``"bernoulli"`` (yes or no), ``"huber"`` (outliers), or a part of `tensortide.losses`.
    penalties
        For each mode a part or a list of parts: `ridge`, `l1`, `nonnegative`, `simplex`,
        `nuclear`, `smooth`, `fixed`; for example ``{"date": tt.smooth(7)}``.
    prior
        ``"learned"``: every row has a prior that is learned from the data, and knows how sure it
        is; ``"paper"``: the ridge `beta` of the paper, towards zero.  None: learned for 'gocpt'
        and 'gocpte', and paper for the other methods.
    fibres
        Remember what the model leaves over of each fibre (all labels but those of the ordered
        mode), which gives back last values.  None: where history is kept.
    seed
        Same records, same seed: the same bits.
    threads
        For large steps; None means all cores.  Changes no bit of the result.  Steps with a loss
        or penalties of their own use one.

    Examples
    --------
    >>> import tensortide as tt
    >>> model = tt.OnlineCP(rank=1, method="gocpte", modes=["place", "day"], value="count")
    >>> _ = model.fit({"place": ["A", "A", "B", "B"], "day": [1, 2, 1, 2], "count": [2, 4, 3, 6]})
    >>> info = model.update({"place": ["A", "B"], "day": [3, 3], "count": [6, 9]})
    >>> info.new_labels
    {'place': 0, 'day': 1}
    >>> model.predict({"place": ["B"], "day": [3]}).round(3).tolist()
    [9.0]
    """

    def __init__(
        self,
        rank: int,
        method: str | Method = "gocpt",
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
        seed: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.rank = rank
        self.method = method
        self.modes = modes
        self.value = value
        self.absent = absent
        self.duplicates = duplicates
        self.combine = combine
        self.loss = loss
        self.penalties = penalties
        self.prior = prior
        self.fibres = fibres
        self.seed = seed
        self.threads = threads
        self._model: Model | None = None
        self._used: dict[str, Any] = {}  # the parameters that the fitted model has
        self._check()

    def set_params(self, **params: Any) -> Self:
        """Set constructor parameters; those of a fitted model take effect at the next fit."""
        before = self.get_params()
        for name, value in params.items():
            if name not in before:
                raise InputError(f"there is no parameter {name!r}; there are {', '.join(before)}.")
            setattr(self, name, value)
        try:
            self._check()
        except InputError:
            for name, value in before.items():
                setattr(self, name, value)
            raise
        return self

    # ------------------------------------------------------------------ learning

    def fit(
        self,
        records: Any,
        *,
        mask: Any = None,
        starts: int = 5,
        max_sweeps: int = 500,
        tol: float = 1e-6,
        init: Sequence[Any] | None = None,
        progress: bool | None = None,
    ) -> OnlineCP:
        """Prepare: factors from scratch by alternating least squares; forgets what was before.

        Each of the random `starts` gets a few sweeps; the best goes on until a sweep lowers
        the objective by less than `tol` of itself.  `mask` (1 observed) goes with an array.
        `init` are factors to start from instead, rows in the order in which labels appear;
        with ``max_sweeps=0`` they are taken as they are, so that several methods can begin
        alike.
        `progress` None shows a bar when standard error is a terminal.
        """
        began = time.perf_counter()
        check_count("starts", starts, least=1)
        check_count("max_sweeps", max_sweeps, least=1 if init is None else 0)
        if not (isinstance(tol, (int, float)) and 0.0 <= tol < 1.0):
            raise InputError(f"tol must be a number from 0 to 1, not {tol!r}.")
        self._check()
        effort = (starts, max_sweeps, tol)
        model, info = self._prepare(records, mask, effort, init, progress)
        info = replace(info, seconds=time.perf_counter() - began)
        self._model, self.info_, self._used = model, info, self.get_params()
        return self

    def update(
        self, records: Any = None, *, retract: Any = None, mode: int | str = -1, mask: Any = None
    ) -> Info:
        """Take one step and say what it did.  A step that fails changes nothing.

        Records are a table, a dict of columns or a `Batch`; an array is appended as slices
        along `mode`.  `retract` are cells to forget (methods with history only).  Before
        any `fit` the first update prepares.
        """
        began = time.perf_counter()
        if self._model is None:
            if records is None:
                raise NotFittedError("this model has seen no data yet; give records.")
            if retract is not None:
                raise NotFittedError("there is nothing to retract from before the first data.")
            return self.fit(records, mask=mask).info_
        plan = self._plan(records, retract, mode, mask)
        if plan is None:
            self.info_ = replace(self._model.nothing(), seconds=time.perf_counter() - began)
            return self.info_
        info = replace(plan.info, seconds=time.perf_counter() - began)
        before = self.info_
        try:
            self.info_ = info
            return self._model.adopt(plan, info)
        except BaseException:
            self.info_ = before
            raise

    partial_fit = update  # scikit-learn's name

    def _plan(
        self, records: Any, retract: Any = None, mode: int | str = -1, mask: Any = None
    ) -> Plan | None:
        """Compute the next step of a fitted model and take nothing over yet."""
        model = self._require_model()
        cells = None if retract is None else self._cells_to_retract(model, retract)
        if records is None:
            records = model.modes.no_records(self._used["value"])
        from tensortide.parallel.threads import runner

        return model.plan(self._arrival(records, mode, mask), cells, runner(self.threads))

    def change_rank(self, rank: int) -> float:
        """Go on with another number of components; returns the share of the model lost.

        Up: values stay the same and the new components learn from the next step on.
        Down: the nearest model of lower rank, found without data; the return value is
        ``|old - new| / |old|`` over all cells.
        """
        number = check_rank(rank)
        model = self._require_model()
        changed, lost = model.with_rank(number, self._rng(model.n_steps, model.rank))
        before = self.rank, self._used
        try:
            self._model, self.rank, self._used = changed, number, self._used | {"rank": number}
            return lost
        except BaseException:
            self._model, (self.rank, self._used) = model, before
            raise

    def retire(self, mode: str | int, labels: Sequence[Any]) -> None:
        """Forget labels of a mode: their rows, and their entries where history is kept."""
        model = self._require_model()
        index = model.modes.index(mode)
        keep = np.ones(model.modes.shape[index], bool)
        keep[model.modes.positions_of(index, labels)] = False
        self._model = model.without_rows(index, keep)

    # ------------------------------------------------------------------ inside

    def _prepare(
        self,
        records: Any,
        mask: Any,
        effort: tuple[int, int, float],
        init: Sequence[Any] | None,
        progress: bool | None,
    ) -> tuple[Model, Info]:
        from tensortide.core.steps.prepare import TRIAL_SWEEPS, Effort
        from tensortide.online.changes import Rules
        from tensortide.online.model import Model
        from tensortide.parallel.threads import runner
        from tensortide.progress import watched_sweeps

        modes = Modes.for_records(records, check_modes(self.modes, self.value), self.value)
        method = self._compose(modes)
        arrival = modes.read(records, self.value, counting=self.duplicates == "count", mask=mask)
        if not len(arrival.values):
            raise InputError("there are no records to prepare from.")
        rules = Rules(self.absent == "zero", self.duplicates, self.combine == "add")
        starts, max_sweeps, tol = effort
        given = None if init is None else check_factors(init, arrival.new_shape, self.rank)
        most = starts * min(TRIAL_SWEEPS, max_sweeps) + max_sweeps
        with watched_sweeps(most, show=progress) as tell:
            return Model.from_first_data(
                method, rules, modes, arrival, rank=self.rank, rng=self._rng(),
                effort=Effort(max_sweeps, tol, starts, given), run=runner(self.threads),
                fibres=self._keeps_fibres(method),
                on_sweep=tell,
            )  # fmt: skip

    def _cells_to_retract(self, model: Model, retract: Any) -> Any:
        if model.store is None:
            raise InputError(
                f"method {model.method.name!r} keeps no history, so it cannot forget single "
                "cells; use method='gocpt'."
            )
        return model.modes.cells(retract)

    def _rng(self, *occasion: int) -> np.random.Generator:
        """Return random numbers that depend on the seed and the occasion only."""
        if isinstance(self.seed, np.random.Generator):
            return self.seed
        return np.random.default_rng([self.seed, *occasion] if occasion else self.seed)
