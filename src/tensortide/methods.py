"""The methods, each a function that returns a recipe; `METHODS` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tensortide.core.alpha import Schedule, constant, density, per_size, schedule
from tensortide.core.recipe import Recipe
from tensortide.errors import InputError

FULL_ALPHA = density(0.01)
ECONOMY_ALPHA = density(1.0)


def gocpt(
    alpha: float | Schedule = FULL_ALPHA,
    beta: float = 1e-5,
    sweeps: int = 1,
    strategy: str = "auto",
    forgetting: float = 1.0,
) -> Recipe:
    """GOCPT, the full objective: all entries seen so far, and the last reconstruction.

    Objective L (`eq:baseline_objective`): squared residual on all observed entries
    + alpha || previous model - model ||^2 on the old box + beta || factors ||^2.
    Cost per step ``nnz N R (N + R)`` for all entries kept; memory as said in `data.store`.

    >>> gocpt().keeps_history
    True
    """
    return Recipe("gocpt", True, schedule(alpha), beta, sweeps, strategy, forgetting)


def gocpte(
    alpha: float | Schedule = ECONOMY_ALPHA,
    beta: float = 1e-5,
    sweeps: int = 1,
    strategy: str = "auto",
    forgetting: float = 1.0,
) -> Recipe:
    """GOCPT_E, the economy objective: the new entries, and the last reconstruction.

    Objective L_E (`eq:baseline_objective`): squared residual on the entries of the batch
    + alpha || previous model - model ||^2 on the old box + beta || factors ||^2.
    Cost per step ``nnz N R (N + R)`` for the batch alone; keeps no raw value.

    >>> gocpte(sweeps=2).keeps_history
    False
    """
    return Recipe("gocpte", False, schedule(alpha), beta, sweeps, strategy, forgetting)


METHODS: dict[str, Callable[..., Recipe]] = {"gocpt": gocpt, "gocpte": gocpte}


def recipe_for(method: Any) -> Recipe:
    """Return the recipe of a method given by name or as a recipe."""
    if isinstance(method, Recipe):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]()
    raise InputError(
        f"method must be one of {', '.join(repr(m) for m in METHODS)} or what such a function "
        f"returns, not {method!r}."
    )


def describe(recipe: Recipe) -> dict[str, Any]:
    """Return the recipe as plain data, for files."""
    alpha = recipe.alpha
    kinds = {kind.__name__: kind for kind in (constant, density, per_size)}
    if type(alpha).__name__ not in kinds:
        raise InputError(
            "a model whose alpha is a function of your own cannot be saved; use a number, "
            "density(...) or per_size(...)."
        )
    return {
        "name": recipe.name,
        "beta": float(recipe.beta),
        "sweeps": recipe.sweeps,
        "strategy": recipe.strategy,
        "forgetting": float(recipe.forgetting),
        "alpha": {"kind": type(alpha).__name__, **_plain(asdict(alpha))},  # type: ignore[call-overload]
    }


def _plain(numbers: dict[str, Any]) -> dict[str, float | None]:
    return {name: None if x is None else float(x) for name, x in numbers.items()}


def from_description(facts: dict[str, Any]) -> Recipe:
    """Return the recipe that `describe` described."""
    given = dict(facts)
    alpha = dict(given.pop("alpha"))
    kinds = {"constant": constant, "density": density, "per_size": per_size}
    return METHODS[given.pop("name")](alpha=kinds[alpha.pop("kind")](**alpha), **given)
