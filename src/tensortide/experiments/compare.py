"""All methods and their rivals on one's own data: predict each batch, then learn it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps.method import LEARNING
from tensortide.errors import InputError, TensortideError
from tensortide.experiments.coded import CodedSteps, code
from tensortide.experiments.compare_result import Result, Share
from tensortide.experiments.cut_table import Held, Steps, cut
from tensortide.experiments.rivals import RIVALS
from tensortide.methods.registry import METHODS
from tensortide.online.estimator import OnlineCP
from tensortide.online.score import fitness, norm

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.online.parameters import Absent, Duplicates

PAPER = " (paper)"  # behind the name of a method: with the paper's prior
FIBRES = " (fibres)"  # with a memory of fibres
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

    def coded(self, steps: Steps) -> CodedSteps:
        """Return the steps as rivals take them."""
        return code(steps, self.modes, self.value, self.step_by, self.duplicates)

    def model(self, name: str, rank: int | None = None) -> OnlineCP:
        """Return an empty model for these records; a name may end in its variant."""
        method, paper = method_of(name), name.endswith(PAPER)
        return OnlineCP(
            self.rank if rank is None else rank, method, modes=self.modes, value=self.value,
            absent=cast("Absent", self.absent), duplicates=cast("Duplicates", self.duplicates),
            prior="paper" if paper else None, fibres=True if name.endswith(FIBRES) else None,
            seed=self.seed,
        )  # fmt: skip


def judge_method(
    task: Task, name: str, steps: Steps, start: list[Floats] | None = None,
    final: tuple[Any, Floats] | None = None, tell: Callable[[], None] = lambda: None,
) -> Result:  # fmt: skip
    """Run a method; one with the paper's ridge begins with factors that were prepared for all.

    At the end it is judged by the `final_cells`, if any are given.  `tell` is called after each
    step.
    """
    result = Result(method=name, parameters=parameters_of(name))
    new, held = Share(), Share()
    model = task.model(name)
    at = 0
    try:
        if start is None or model._compose().learned:  # a prior is learned with its rows
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
    result.settle(new, held)
    if final is not None:
        labels, values = final
        result.fitness = fitness(values, model.predict(labels))
    return result


def judge_rival(name: str, steps: CodedSteps, tell: Callable[[], None] = lambda: None) -> Result:
    """Run a rival on the same steps, to be judged by the same cells."""
    rival = RIVALS[name](steps)
    result = Result(method=name, kind="rival", parameters=rival.parameters)
    new, held = Share(), Share()
    rival.learn(steps.first)
    for batch, aside in zip(steps.batches, steps.held, strict=True):
        began = time.perf_counter()
        gap = batch.values - rival.predict(batch)
        rival.learn(batch)
        result.seconds += time.perf_counter() - began
        result.errors.append(new.add(norm(gap), norm(batch.values)))
        missed = norm(aside.values - rival.predict(aside))
        result.errors_held.append(held.add(missed, norm(aside.values)))
        result.steps += 1
        tell()
    result.bytes = rival.nbytes
    result.settle(new, held)
    return result


def prepare(task: Task, steps: Steps, progress: bool | None = False) -> list[Floats]:
    """Return the factors that all methods with the paper's ridge begin with."""
    return task.model("gocpt" + PAPER).fit(steps.first, progress=progress).factors_


def method_of(name: str) -> str:
    """Return the method that a contender is a variant of.

    >>> method_of("gocpte (paper)"), method_of("gocpte (fibres)"), method_of("sdt")
    ('gocpte', 'gocpte', 'sdt')
    """
    return name.removesuffix(PAPER).removesuffix(FIBRES)


def parameters_of(name: str) -> dict[str, Any]:
    """Return the parameters of a method by name.

    >>> parameters_of("olstec")
    {'forgetting': 0.98, 'beta': 1e-05}
    """
    method = method_of(name)
    given = signature(METHODS[method]).parameters.values()
    idle = ("alpha", "beta") if method in LEARNING and not name.endswith(PAPER) else ()
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
