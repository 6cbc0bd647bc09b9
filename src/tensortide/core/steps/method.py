"""A method is data: what it sees, how the data enter, the weights of its terms, its limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from inspect import signature
from typing import Any, ClassVar, TypeAlias

from tensortide.arrays import AnyArray, Shape
from tensortide.core.losses.standard import Loss, Poisson, Squared
from tensortide.core.penalties.parts import Part, Terms
from tensortide.core.penalties.prox import Nuclear, Penalty
from tensortide.core.steps.alpha import Circumstances, Schedule
from tensortide.errors import InputError
from tensortide.validate import check_number, check_share

SQUARED = Squared()
LEARNING = ("gocpt", "gocpte")  # methods whose rows have learned priors unless told otherwise
STRATEGY_NAMES = ("auto", "rows", "imputed")

#: What a method carries from step to step besides factors: named arrays, replaced, never
#: changed in place.
Memory: TypeAlias = Mapping[str, AnyArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a method cannot do; `tensortide.methods.limits` turns it into sentences.

    `one_mode`: a single mode grows, the same one at every step, and every step has to grow
    it.  `complete`: every cell of a new slice has to be there.  `listed`: cells that are
    not listed cannot be zeros.  `new_cells`: values of cells between old labels (late or
    corrected) cannot be taken.  `third_order`: three modes, no more and no less.
    """

    one_mode: bool = False
    complete: bool = False
    listed: bool = False
    new_cells: bool = False
    third_order: bool = False


#: The functions that make methods, by the names of methods; `tensortide.methods` fills it.
FACTORIES: dict[str, Callable[..., Method]] = {}


class _Shown:
    """A method shows what was set, by the names that its function has for it."""

    __slots__ = ()
    name: str

    def __repr__(self) -> str:
        """Return the name, and the parameters that are not what its function has by default."""
        make = FACTORIES.get(self.name)
        parameters = () if make is None else signature(make).parameters
        usual = None if make is None else make()
        shown = [
            f"{p}={_parameter(self, p)!r}"
            for p in parameters
            if _parameter(self, p) != _parameter(usual, p)
        ]
        return f"<method {self.name}{': ' if shown else ''}{', '.join(shown)}>"


def _parameter(method: Any, name: str) -> Any:
    """Return the parameter of a method's function from where the method has it, None elsewhere."""
    found = reduce(
        lambda part, at: getattr(part, at, None), _PLACES.get(name, name).split("."), method
    )
    return found is not None if name == "non_negative" else found


_PLACES = {
    "forgetting": "decay",
    "gamma": "slice_decay",
    "mu": "past_decay",
    "tol": "stop",
    "non_negative": "penalty",
    "nuclear": "penalty.prox.weight",
    "eta": "penalty.weight",
    "growth": "penalty.growth",
}


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Recipe(_Shown):
    """An online method that lowers an objective block by block.

    Attributes
    ----------
    keeps_history
        The full objective L (all entries), else the economy objective L_E (the new ones only).
    alpha, beta
        Weight of the last reconstruction, and of the ridge: a number or a schedule.
    sweeps, stop
        Exactly `sweeps` sweeps; with `stop`, one that moves all numbers by less than this share
        is the last.
    strategy
        How the data enter: "rows", "imputed" or "auto".
    decay
        Of the reconstruction at each step, and with history of the entries by their arrival.
    slice_decay
        Of the slices of the growing mode by their age.
    past_decay
        Of the Gram matrix of the growing mode's past rows, which then no longer move.
    penalty
        The factors are penalised or constrained by ADMM.
    loss, terms, lists_zeros
        The user's (`with_parts`): a loss, terms of single modes, and whether absent cells are
        zeros that have to be looked at.
    learned
        Rows have priors that are learned, and know how sure they are; else the paper's ridge.
    anchor
        The distance to the last reconstruction: "squared", or "loss", which for positive losses is
        the divergence of components (`core.objective.towards`).
    """

    name: str
    keeps_history: bool
    alpha: Schedule
    beta: float | Schedule = 1e-5
    sweeps: int = 1
    strategy: str = "auto"
    decay: float = 1.0
    slice_decay: float = 1.0
    past_decay: float | None = None
    penalty: Penalty | None = None
    stop: float = 0.0
    limits: Limits = Limits()
    loss: Loss = SQUARED
    terms: tuple[Terms, ...] = ()
    lists_zeros: bool = False
    learned: bool = False
    anchor: str = "squared"

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming it."""
        if not callable(self.beta):
            check_number("beta", self.beta, least=0.0)
        check_share("forgetting", self.decay)
        check_share("gamma", self.slice_decay)
        if self.past_decay is not None:
            check_share("mu", self.past_decay)
        check_number("tol", self.stop, least=0.0)
        if isinstance(self.sweeps, bool) or not isinstance(self.sweeps, int) or self.sweeps < 1:
            raise InputError(f"sweeps must be a whole number from 1 on, not {self.sweeps!r}.")
        if self.strategy not in STRATEGY_NAMES:
            raise InputError(
                f"strategy must be 'auto', 'rows' or 'imputed', not {self.strategy!r}."
            )

    def at(self, now: Circumstances) -> Recipe:
        """Return the recipe with the number that its ridge has now."""
        if not callable(self.beta):
            return self
        return replace(self, beta=check_number("beta", self.beta(now), least=0.0))

    @property
    def ridge(self) -> float:
        """The weight of the ridge, which is a number by now (`at`)."""
        assert isinstance(self.beta, int | float)
        return self.beta

    @property
    def entry_decay(self) -> float:
        """Decay of the entries that are kept, at each step."""
        return self.decay

    @property
    def rows_needed(self) -> str:
        """Return which rows a step works on: "touched", "slices" (all but old time), "all"."""
        if self.past_decay is not None:
            return "slices"
        coupled = self.lists_zeros or any(terms.whole for terms in self.terms)
        every = self.keeps_history or self.penalty is not None or coupled
        return "all" if every else "touched"

    @property
    def general(self) -> bool:
        """Tell whether a loss or terms of its own take the place of plain least squares."""
        return bool(self.terms) or not isinstance(self.loss, Squared)

    def choose(self, n_entries: int, shape: Shape) -> str:
        """Return the strategy; "auto" takes the dense one where nothing has to be imputed.

        With holes the sparse one lowers the objective more per sweep and costs about the same
        here, as the imputed tensor is never written out (docs/experiments.md, ablation).
        """
        if self.strategy != "auto":
            return self.strategy
        return "imputed" if n_entries == math.prod(shape) else "rows"


@dataclass(frozen=True, slots=True, repr=False)
class _OfSlices(_Shown):
    """What methods have in common that keep no history and see new slices whole."""

    keeps_history: ClassVar[bool] = False
    entry_decay: ClassVar[float] = 1.0  # of entries kept: there are none
    slice_decay: ClassVar[float] = 1.0
    rows_needed: ClassVar[str] = "slices"
    loss: ClassVar[Loss] = SQUARED
    learned: ClassVar[bool] = False
    terms: ClassVar[tuple[Terms, ...]] = ()

    name: str
    decay: float = 1.0
    beta: float = 1e-5
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming it."""
        check_number("beta", self.beta, least=0.0)
        check_share("forgetting", self.decay)


@dataclass(frozen=True, slots=True, repr=False)
class Recursion(_OfSlices):
    """An online method that adds each batch to running sums, or descends along its gradient.

    A step solves the new rows of the growing mode, then adds the batch's normal equations of
    every other mode to `decay` times those of the past and solves (`step` None), or moves
    the rows along the gradient of the batch.  With `resolve` the new rows are solved once
    more at the end.
    """

    step: float | None = None
    resolve: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming it."""
        _OfSlices.__post_init__(self)
        if self.step is not None and check_number("step", self.step, least=0.0) == 0.0:
            raise InputError("step must be larger than 0.")


@dataclass(frozen=True, slots=True, repr=False)
class Tracking(_OfSlices):
    """A subspace tracker: the matrix with one column per slice, kept as a product of factors."""

    by_svd: bool = False
    structured: bool = True


Method: TypeAlias = Recipe | Recursion | Tracking


def with_parts(
    method: Method, loss: Loss, parts: Sequence[Sequence[Part]] | None, *, absent_zero: bool
) -> Method:
    """Return a method with a loss and, for each mode, penalties and constraints."""
    positive = loss.positive
    if isinstance(loss, Squared) and not parts:
        return method
    plain = isinstance(method, Recipe) and not (
        method.penalty or method.past_decay or method.slice_decay < 1.0
    )
    if not isinstance(method, Recipe) or not plain or method.strategy == "imputed":
        raise InputError(
            f"method {method.name!r} is made for least squares as published; a loss or "
            "penalties go with 'gocpt', 'gocpte' and 'cpc_als' (strategy 'auto' or 'rows')."
        )
    if absent_zero and loss.least > 0.0:
        raise InputError(f"loss {loss.name!r} has no zeros, so absent='zero' does not go with it.")
    terms = tuple(Terms.of(p) for p in parts or ())
    if positive and any(isinstance(t.prox, Nuclear) for t in terms):
        raise InputError(
            f"loss {loss.name!r} needs non-negative factors, which the nuclear norm does not keep; "
            "use l1, ridge or simplex."
        )
    terms = tuple(replace(t, nonnegative=t.nonnegative or positive) for t in terms)
    listed = absent_zero and not isinstance(loss, Squared | Poisson)
    return replace(method, loss=loss, terms=terms, lists_zeros=listed)


def with_prior(method: Method, prior: str | None) -> Method:
    """Return a method whose rows have learned priors, or the paper's; None: as it suits best."""
    if prior not in (None, "learned", "paper"):
        raise InputError(f"prior must be 'learned' or 'paper', not {prior!r}.")
    able = isinstance(method, Recipe) and method.name in LEARNING
    if prior == "paper" or (prior is None and not able):
        return method
    if not isinstance(method, Recipe) or not able:
        raise InputError(
            f"method {method.name!r} is made for its own regularisation as published; "
            "prior='learned' goes with 'gocpt' and 'gocpte'."
        )
    if any(terms != Terms(nonnegative=terms.nonnegative) for terms in method.terms):
        if prior is None:
            return method
        raise InputError(
            "prior='learned' says what rows look like, and so do penalties other than "
            "nonnegative(); pass prior='paper' with them."
        )
    made, weights = FACTORIES[method.name](), ["alpha", "beta"]
    if method.loss.positive and not method.keeps_history:
        weights = ["beta"]  # counts hold on to the last model by their divergence from it
    for name in weights:
        if getattr(method, name) != getattr(made, name):
            raise InputError(
                f"{name} is a weight of the paper's objective and does nothing beside learned "
                "priors; pass prior='paper' with it, or leave it out."
            )
    return replace(method, learned=True)
