"""One way to begin and to step, whatever kind of method it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps import blocks as engine
from tensortide.core.steps import recursion
from tensortide.core.steps import subspace as tracking
from tensortide.core.steps.alpha import constant
from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Memory, Method, Recipe, Recursion
from tensortide.core.steps.outcome import Outcome
from tensortide.core.tensor.factors import Factors
from tensortide.core.updates.exact import Run, serially
from tensortide.errors import SolveError


def preparation(method: Method) -> Recipe:
    """Return how factors are found from scratch: the same way for every method.

    A recipe lends its strategy, its constraint if it holds block by block, its loss and
    what is said about single modes.
    """
    plain = Recipe(name="preparation", keeps_history=True, alpha=constant(0.0), beta=method.beta)
    if not isinstance(method, Recipe):
        return plain
    within = method.penalty is not None and method.penalty.weight is None
    return replace(
        plain, strategy=method.strategy, penalty=method.penalty if within else None,
        loss=method.loss, terms=method.terms, lists_zeros=method.lists_zeros,
        learned=method.learned,
    )  # fmt: skip


def begin(method: Method, rows: Sequence[Floats], change: Change) -> Memory:
    """Return what a method remembers of the preparation data besides the factors."""
    if isinstance(method, Recipe):
        return {}
    if isinstance(method, Recursion):
        return recursion.begin(method, rows, change)
    return tracking.begin(method, rows, change)


def step(
    method: Method, factors: Factors, change: Change, memory: Memory, run: Run = serially
) -> Outcome:
    """Compute one step of any method.  Writes nothing; a step without finite rows is refused."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(method, Recipe):
                outcome = engine.step(method, factors, change, run, memory=memory)
            elif isinstance(method, Recursion):
                outcome = recursion.step(method, factors, change, memory, run)
            else:
                outcome = tracking.step(method, factors, change, memory, run)
    except np.linalg.LinAlgError:
        raise _no_solution(change) from None
    kept = [*outcome.rows, *outcome.memory.values(), np.array(outcome.objective)]
    if not all(np.isfinite(numbers).all() for numbers in kept):
        raise _no_solution(change)
    return outcome


def _no_solution(change: Change) -> SolveError:
    return SolveError(
        "the step has no finite solution: values or factors are too large or too small; "
        "scale the values",
        mode=change.time,
        position=change.entries.shape[change.time] - 1,
    )
