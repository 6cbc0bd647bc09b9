"""The weight of the reconstruction: numbers, the density rule, and schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tensortide.arrays import Shape
from tensortide.errors import InputError
from tensortide.validate import check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a schedule may know about the step that is about to be made.

    `density` is the observed fraction of the old box (one where absent cells are zeros),
    `growing` the new size of the mode that grows, the paper's ``I^t`` (the largest, if
    several grow; the one that grew last, if none does).
    """

    step: int
    old_shape: Shape
    new_shape: Shape
    n_entries: float
    density: float
    growing: int


Schedule: TypeAlias = Callable[[Circumstances], float]


@dataclass(frozen=True, slots=True)
class density:  # noqa: N801 - reads as a word: alpha=density(1)
    """``alpha = factor * observed fraction of the old box``.

    At factor one the reconstruction weighs exactly as much as the data that it replaces.

    >>> now = Circumstances(
    ...     step=3, old_shape=(10, 10), new_shape=(10, 50), n_entries=25, density=0.25, growing=50)
    >>> density(1)(now)
    0.25
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no weight."""
        check_number("the factor of density", self.factor, least=0.0)

    def __call__(self, now: Circumstances) -> float:
        """Return the weight."""
        return self.factor * now.density


@dataclass(frozen=True, slots=True)
class per_size:  # noqa: N801
    """``alpha = c / I^t``, at most `cap`: the paper's schedules (table `tb:hyperparameters`).

    >>> now = Circumstances(
    ...     step=3, old_shape=(10, 10), new_shape=(10, 50), n_entries=25, density=0.25, growing=50)
    >>> per_size(0.5)(now)
    0.01
    >>> per_size(200, cap=1)(now)
    1.0
    """

    c: float
    cap: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no weight."""
        check_number("c of per_size", self.c, least=0.0)
        if self.cap is not None:
            check_number("cap of per_size", self.cap, least=0.0)

    def __call__(self, now: Circumstances) -> float:
        """Return the weight."""
        weight = self.c / now.growing
        return weight if self.cap is None else float(min(self.cap, weight))


@dataclass(frozen=True, slots=True)
class constant:  # noqa: N801
    """The same weight at every step."""

    weight: float

    def __call__(self, now: Circumstances) -> float:  # noqa: ARG002 - one form for all schedules
        """Return the weight."""
        return self.weight


def schedule(alpha: float | Schedule) -> Schedule:
    """Return a schedule: the callable itself, or a constant weight."""
    if isinstance(alpha, str):
        raise InputError(
            f"alpha must be a number or a schedule such as tt.density(1), not {alpha!r}."
        )
    return alpha if callable(alpha) else constant(check_number("alpha", alpha, least=0.0))
