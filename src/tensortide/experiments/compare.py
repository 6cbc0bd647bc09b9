"""All methods on one's own data: predict each batch, then learn it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps.method import LEARNING
from tensortide.errors import InputError, TensortideError
from tensortide.experiments.cut_table import Held, Steps, cut
from tensortide.methods.registry import METHODS
from tensortide.online.estimator import OnlineCP
from tensortide.online.score import fitness, norm, share_missed

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.online.parameters import Absent, Duplicates

PAPER = " (paper)"  # behind the name of a method: with the paper's prior
CONTENDERS = [*METHODS, *(name + PAPER for name in LEARNING)]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Records, what they mean, and how they are cut into steps.

    `hold_out` is the share of the cells that is never learned, to judge by; None: see `cut`.
    """

    table: pa.Table
    modes: list[str]
    value: str
    step_by: str
    rank: int = 5
    start: float = 0.5
    absent: str = "missing"
    duplicates: str = "last"
    seed: int = 0
    hold_out: float | None = None

    def steps(self) -> Steps:
        """Cut the records."""
        share = self.hold_out
        if self.absent == "zero":
            if share:
                raise InputError(
                    "cells that are held out would count as zeros with absent='zero'; use one or "
                    "the other."
                )
            share = 0.0
        return cut(
            self.table, self.modes, self.value, self.step_by, self.start,
            duplicates=self.duplicates, hold_out=share, seed=self.seed,
        )  # fmt: skip

    def model(self, name: str, rank: int | None = None) -> OnlineCP:
        """Return an empty model for these records; a name may end in the paper's prior."""
        method, paper = name.removesuffix(PAPER), name.endswith(PAPER)
        return OnlineCP(
            self.rank if rank is None else rank, method, modes=self.modes, value=self.value,
            absent=cast("Absent", self.absent), duplicates=cast("Duplicates", self.duplicates),
            prior="paper" if paper else None, seed=self.seed,
        )  # fmt: skip


@dataclass(kw_only=True)
class Result:
    """How a method did; `refused` says why it stopped, at the step `refused_at` (0: preparing).

    Errors are ``|x - y| / |x|``: of each batch before it was learned and after, and of the cells
    of the batch that were held out, after the others were learned; None where x is zero.
    """

    method: str
    parameters: dict[str, Any]
    errors: list[float | None] = field(default_factory=list)
    errors_after: list[float | None] = field(default_factory=list)
    errors_held: list[float | None] = field(default_factory=list)
    error: float | None = None
    error_held: float | None = None
    error_held_spread: float | None = None
    fitness: float | None = None
    seconds: float = 0.0
    bytes: int = 0
    steps: int = 0
    refused: str | None = None
    refused_at: int | None = None


class _Share:
    """The size of errors against the size of values, over many steps."""

    def __init__(self) -> None:
        self.squares: list[tuple[float, float]] = []

    def add(self, missed: float, size: float) -> float | None:
        """Count a step (two norms) and return its own share."""
        self.squares.append((missed**2, size**2))
        return share_missed(missed, size)

    def total(self) -> float | None:
        """Return the share over all steps."""
        missed, size = np.array(self.squares).sum(axis=0)
        return float(np.sqrt(missed / size)) if size > 0.0 else None

    def spread(self) -> float | None:
        """Return the standard error of the share: the jackknife, leaving out one step each."""
        squares = np.array(self.squares)
        squares = squares[squares[:, 1] > 0.0]
        if len(squares) < 3:
            return None
        missed, size = (squares.sum(axis=0) - squares).T
        left_out = np.sqrt(missed / size)
        return float(np.sqrt((len(squares) - 1) * np.mean((left_out - left_out.mean()) ** 2)))


def compare(
    task: Task, name: str, steps: Steps, start: list[Floats], final: tuple[Any, Floats],
    tell: Callable[[], None] = lambda: None,
) -> Result:  # fmt: skip
    """Run a method from prepared factors, to be judged at the end by the `final_cells`.

    `tell` is called after each step.
    """
    result = Result(method=name, parameters=parameters_of(name))
    new, held = _Share(), _Share()
    model = task.model(name)
    at = 0
    try:
        if model._compose().learned:  # a prior is learned with its rows
            model.fit(steps.first, progress=False)
        else:
            model.fit(steps.first, init=start, max_sweeps=0, progress=False)
        for batch, aside in zip(steps.batches, steps.held, strict=True):
            at += 1
            began = time.perf_counter()
            info = model.update(batch)
            result.seconds += time.perf_counter() - began
            result.errors.append(new.add(info.missed or 0.0, info.norm or 0.0))
            fits = info.norm is not None and info.norm > 0.0
            result.errors_after.append(1.0 - model.score(batch) if fits else None)
            result.errors_held.append(held.add(*_norms(model, aside)))
            result.steps += 1
            tell()
    except TensortideError as error:
        result.refused, result.refused_at = str(error), at
        return result
    result.bytes = model.state_bytes_
    result.error, result.error_held = new.total(), held.total()
    result.error_held_spread = held.spread()
    labels, values = final
    result.fitness = fitness(values, model.predict(labels))
    return result


def prepare(task: Task, steps: Steps, progress: bool | None = False) -> list[Floats]:
    """Return the factors that all methods with the paper's ridge begin with."""
    return task.model("gocpt" + PAPER).fit(steps.first, progress=progress).factors_


def parameters_of(name: str) -> dict[str, Any]:
    """Return the parameters of a method by name.

    >>> parameters_of("olstec")
    {'forgetting': 0.98, 'beta': 1e-05}
    """
    method = name.removesuffix(PAPER)
    given = signature(METHODS[method]).parameters.values()
    idle = ("alpha", "beta") if method in LEARNING and method == name else ()
    prior = {"prior": "learned" if idle else "paper"} if method in LEARNING else {}
    return prior | {
        p.name: p.default if isinstance(p.default, (int, float, str)) else repr(p.default)
        for p in given
        if p.default is not False and p.name not in idle
    }


def _norms(model: OnlineCP, held: Held) -> tuple[float, float]:
    """Return the norms of error and value of the cells held out whose labels are known by now."""
    if not len(held.values):
        return 0.0, 0.0
    y = model.predict(held.labels, unknown="nan")
    known = np.isfinite(y) & np.isfinite(held.values)
    return norm(held.values[known] - y[known]), norm(held.values[known])


def final_cells(task: Task, steps: Steps) -> tuple[Any, Floats]:
    """Return labels and values of all cells learned, each with the value that was given last.

    The rule for duplicates holds within a step: the last one that has a cell says what it is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about the model, which is not used
        keeper = task.model("gocpt" + PAPER, rank=1)
        keeper.fit(steps.first, max_sweeps=1, starts=1, progress=False)
    for batch in steps.batches:
        keeper.update(batch)
    store = keeper._require_model().store
    assert store is not None
    coords, values = store.entries.coords(), store.entries.orders[0].values
    return {m: keeper.labels_[m][coords[:, k]] for k, m in enumerate(task.modes)}, values
