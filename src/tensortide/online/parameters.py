"""Parameters of the estimator: stored untouched, judged as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from tensortide.core.losses.standard import Loss
from tensortide.core.steps.method import Method
from tensortide.errors import InputError
from tensortide.methods.registry import recipe_for
from tensortide.online.compose import composed
from tensortide.validate import check_choice, check_count, check_modes, check_rank, check_seed

_NAMES = (
    "rank",
    "method",
    "modes",
    "value",
    "absent",
    "duplicates",
    "combine",
    "loss",
    "penalties",
    "seed",
    "threads",
)


class Parameters:
    """What `OnlineCP` was made with, in scikit-learn's form."""

    rank: int
    method: str | Method
    modes: Sequence[str] | None
    value: str
    absent: str
    duplicates: str
    combine: str
    loss: str | Loss
    penalties: Mapping[str | int, Any] | None
    seed: Any
    threads: int | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Return the constructor's parameters (scikit-learn's convention)."""
        return {name: getattr(self, name) for name in _NAMES}

    def set_params(self, **params: Any) -> Self:
        """Set constructor parameters; those of a fitted model take effect at the next fit."""
        before = self.get_params()
        for name, value in params.items():
            if name not in _NAMES:
                raise InputError(f"there is no parameter {name!r}; there are {', '.join(_NAMES)}.")
            setattr(self, name, value)
        try:
            self._check()
        except InputError:
            for name, value in before.items():
                setattr(self, name, value)
            raise
        return self

    def _check(self) -> Method:
        check_rank(self.rank)
        recipe = recipe_for(self.method)
        check_modes(self.modes, self.value)
        check_choice("absent", self.absent, ("missing", "zero"))
        check_choice("duplicates", self.duplicates, ("last", "sum", "mean", "count", "error"))
        check_choice("combine", self.combine, ("replace", "add"))
        check_seed(self.seed)
        if self.threads is not None:
            check_count("threads", self.threads, least=1)
        if self.combine == "add" and not recipe.keeps_history:
            raise InputError(
                f"combine='add' needs the known values, which method {recipe.name!r} does not "
                "keep; use method='gocpt', or add up before the update."
            )
        if recipe.keeps_history and recipe.forgetting < 1.0 and self.absent == "zero":
            raise InputError(
                "forgetting with absent='zero' would have to fade the zeros too, which are not "
                "listed; use method='gocpte', or absent='missing'."
            )
        return composed(recipe, self.loss, self.penalties, self.absent)
