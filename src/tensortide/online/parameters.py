"""Parameters of the estimator: stored untouched, judged as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from tensortide.core.losses.custom import Custom
from tensortide.core.losses.standard import Bernoulli, Loss
from tensortide.core.penalties.parts import Part
from tensortide.core.steps.method import Method
from tensortide.data.modes import Modes
from tensortide.errors import InputError
from tensortide.methods.registry import method_for
from tensortide.online.compose import compose
from tensortide.validate import check_choice, check_count, check_modes, check_rank, check_seed

Absent: TypeAlias = Literal["missing", "zero"]
Duplicates: TypeAlias = Literal["last", "sum", "mean", "count", "error"]
Combine: TypeAlias = Literal["replace", "add"]
Prior: TypeAlias = Literal["learned", "paper"]
Penalties: TypeAlias = Mapping[str | int, Part | Sequence[Part]]


class Parameters:
    """What `OnlineCP` was made with, in scikit-learn's form."""

    rank: int
    method: str | Method
    modes: Sequence[str] | None
    value: str
    absent: Absent
    duplicates: Duplicates
    combine: Combine
    loss: str | Loss
    penalties: Penalties | None
    prior: Prior | None
    fibres: bool | None
    seed: Any
    threads: int | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Return the constructor's parameters (scikit-learn's convention)."""
        return {name: getattr(self, name) for name in Parameters.__annotations__}

    def _check(self) -> Method:
        check_rank(self.rank)
        method = method_for(self.method)
        check_modes(self.modes, self.value)
        check_choice("absent", self.absent, get_args(Absent))
        check_choice("duplicates", self.duplicates, get_args(Duplicates))
        check_choice("combine", self.combine, get_args(Combine))
        check_seed(self.seed)
        if self.threads is not None:
            check_count("threads", self.threads, least=1)
        if self.combine == "add" and not method.keeps_history:
            raise InputError(
                f"combine='add' needs the known values, which method {method.name!r} does not "
                "keep; use method='gocpt', or add up before the update."
            )
        if method.keeps_history and method.entry_decay < 1.0 and self.absent == "zero":
            raise InputError(
                "forgetting with absent='zero' would have to fade the zeros too, which are not "
                "listed; use method='gocpte', or absent='missing'."
            )
        composed = self._compose()
        if self.fibres not in (None, True, False):
            raise InputError(f"fibres must be True, False or None, not {self.fibres!r}.")
        if self.fibres and not composed.learned:
            raise InputError(
                "fibres=True goes with prior='learned', whose outlook weighs what they remember."
            )
        if self.fibres and isinstance(composed.loss, Bernoulli):
            raise InputError(
                "fibres=True remembers what the model misses of values, and loss 'bernoulli' has "
                "log odds; leave fibres out."
            )
        if self.fibres and isinstance(composed.loss, Custom):
            raise InputError(
                "fibres=True remembers what the model misses of values, and a loss of your own may "
                "be on another scale; leave fibres out."
            )
        if self.fibres and self.absent == "zero":
            raise InputError(
                "fibres=True remembers what the model misses of listed values; with absent='zero' "
                "those are the ones above zero, and all answers would be too large; leave fibres "
                "out."
            )
        return composed

    def _compose(self, modes: Modes | None = None) -> Method:
        """Return the method with all parts of it."""
        method = method_for(self.method)
        return compose(method, self.loss, self.penalties, self.absent, self.prior, modes)

    def _settled(self) -> dict[str, Any]:
        """Return the parameters, with what None stands for where the method decides."""
        method = self._compose()
        prior = "learned" if method.learned else "paper"
        return self.get_params() | {"prior": prior, "fibres": self._keeps_fibres(method)}

    def _keeps_fibres(self, method: Method) -> bool:
        """Tell whether a model remembers fibres."""
        wanted = method.keeps_history if self.fibres is None else self.fibres
        able = self.absent != "zero" and not isinstance(method.loss, Bernoulli | Custom)
        return bool(wanted and method.learned and able)
