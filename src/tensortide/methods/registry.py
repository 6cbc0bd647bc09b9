"""The methods: the paper's own two, the registry of all, and their way into files."""

from __future__ import annotations

import datetime as dt
import re
import reprlib
from collections.abc import Callable
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from tensortide.core.losses.custom import Custom
from tensortide.core.losses.standard import (
    Bernoulli,
    Gamma,
    Huber,
    NegativeBinomial,
    Poisson,
    Squared,
)
from tensortide.core.penalties.parts import L1, Fixed, Ridge, Smooth
from tensortide.core.penalties.prox import NonNegative, Nuclear, Penalty, Simplex
from tensortide.core.steps.alpha import Schedule, constant, density, per_size, schedule
from tensortide.core.steps.method import FACTORIES, Limits, Method, Recipe, Recursion, Tracking
from tensortide.errors import InputError
from tensortide.methods import baselines

FULL_ALPHA = density(0.01)
ECONOMY_ALPHA = density(1.0)


def gocpt(
    alpha: float | Schedule = FULL_ALPHA,
    beta: float | Schedule = 1e-5,
    sweeps: int = 1,
    strategy: str = "auto",
    forgetting: float = 1.0,
) -> Recipe:
    """GOCPT, the full objective: all entries seen so far, and the last reconstruction.

    Objective L (`eq:baseline_objective`): squared residual on all observed entries
    + alpha || previous model - model ||^2 on the old box + beta || factors ||^2.
    With learned priors, the default of `OnlineCP`, these take the place of alpha and beta.
    Cost per step ``nnz N R (N + R)`` for all entries kept; memory as said in `data.store`.

    >>> gocpt().keeps_history
    True
    """
    return Recipe(
        name="gocpt", keeps_history=True, alpha=schedule(alpha), beta=beta, sweeps=sweeps,
        strategy=strategy, decay=forgetting,
    )  # fmt: skip


def gocpte(
    alpha: float | Schedule = ECONOMY_ALPHA,
    beta: float | Schedule = 1e-5,
    sweeps: int = 1,
    strategy: str = "auto",
    forgetting: float = 1.0,
) -> Recipe:
    """GOCPT_E, the economy objective: the new entries, and the last reconstruction.

    Objective L_E (`eq:baseline_objective`): squared residual on the entries of the batch
    + alpha || previous model - model ||^2 on the old box + beta || factors ||^2.
    With learned priors, the default of `OnlineCP`, these take the place of alpha and beta.
    Cost per step ``nnz N R (N + R)`` for the batch alone; keeps no raw value.

    >>> gocpte(sweeps=2).keeps_history
    False
    """
    full = gocpt(alpha, beta, sweeps, strategy, forgetting)
    return replace(full, name="gocpte", keeps_history=False, anchor="loss")


METHODS: dict[str, Callable[..., Method]] = {
    make.__name__: make
    for make in (
        gocpt, gocpte, baselines.cpc_als, baselines.em_als, baselines.em_als_decay,
        baselines.online_cpd, baselines.mast, baselines.cp_stream, baselines.rlst, baselines.sdt,
        baselines.online_sgd, baselines.olstec,
    )
}  # fmt: skip
FACTORIES.update(METHODS)

_LIST = ", ".join(map(repr, METHODS))


def method_for(method: Any) -> Method:
    """Return the method given by name or as what a method's function returns."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        return method_named(method)()
    if any(method is make for make in METHODS.values()):
        raise InputError(f"method is a function; call it: method=tt.{method.__name__}().")
    raise InputError(
        f"method must be one of {_LIST} or what such a function returns, not "
        f"{reprlib.repr(method)}."
    )


def method_named(name: str) -> Callable[..., Method]:
    """Return the function that makes a method; a name that is nearly right is suggested.

    >>> method_named("CP-stream")
    Traceback (most recent call last):
    ...
    tensortide.errors.InputError: there is no method 'CP-stream'; did you mean 'cp_stream'?
    """
    if name in METHODS:
        return METHODS[name]
    plain = {re.sub("[^a-z]", "", known): known for known in METHODS}
    near = get_close_matches(re.sub("[^a-z]", "", name.lower()), plain, n=1, cutoff=0.75)
    if near:
        raise InputError(f"there is no method {name!r}; did you mean {plain[near[0]]!r}?")
    raise InputError(f"there is no method {name!r}; method must be one of {_LIST}.")


def by_name(method: Any) -> Any:
    """Return a method for people: its name, or all of it where parameters are not the default.

    >>> by_name(gocpte()), by_name(baselines.olstec(0.5))
    ('gocpte', <method olstec: forgetting=0.5>)
    """
    name = getattr(method, "name", None)
    return name if name in METHODS and METHODS[name]() == method else method


_PARTS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        Recipe, Recursion, Tracking, Limits, Penalty, Nuclear, NonNegative, Simplex, Ridge, L1,
        Smooth, Fixed, Squared, Poisson, NegativeBinomial, Gamma, Bernoulli, Huber, constant,
        density, per_size,
    )
}  # fmt: skip


def describe(part: Any) -> Any:
    """Return a method, or a part of one, as plain data, for files."""
    kind = type(part).__name__
    if _PARTS.get(kind) is type(part):
        return {"kind": kind} | {
            f.name: describe(getattr(part, f.name))
            for f in fields(part)
            if getattr(part, f.name) != f.default
        }
    if isinstance(part, tuple):
        return [plain_label(label) for label in part]
    if isinstance(part, Custom):
        raise InputError(
            "a model whose loss is made of functions of your own cannot be saved; use a loss of "
            "tensortide.losses."
        )
    if callable(part):
        raise InputError(
            "a model whose alpha is a function of your own cannot be saved; use a number, "
            "density(...) or per_size(...)."
        )
    return part.item() if hasattr(part, "item") else part


def plain_label(label: Any) -> Any:
    """Return a label as JSON knows it; dates as ISO text, which their mode understands."""
    plain = label.item() if hasattr(label, "item") else label
    return plain.isoformat() if isinstance(plain, dt.date) else plain


def from_description(facts: Any) -> Any:
    """Return what `describe` described."""
    if not isinstance(facts, dict):
        return facts
    given = {name: from_description(value) for name, value in facts.items()}
    if "forgetting" in given:  # as it was called before 0.5.0
        given["decay"] = given.pop("forgetting")
    return _PARTS[given.pop("kind")](**given)
