"""Losses as parts: value, slope and curvature in the model's value ``y``, for an entry ``x``.

Values are zero at a perfect fit and never negative (divergences), so that losses can be compared
with themselves over time; Bernoulli's is so for yes and no, and `Custom` is what it is given.
`weight` is the curvature that a step works with: it is positive everywhere, where the exact one
may vanish or change its sign.  At the current ``y`` a loss with slope ``g`` and weight ``h`` is
least squares with weight ``h / 2`` and working value ``y - g / h``: no loss needs a kernel of its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.losses.custom import Custom
from tensortide.core.losses.direct import Direct, weight_at
from tensortide.errors import InputError
from tensortide.validate import check_number

TINY = 1e-10  # added to a model value whose logarithm is taken: y may be zero, x then not


def _log_ratio(x: Floats, y: Floats) -> Floats:
    """Return ``x log(x / y)``, zero where x is."""
    return np.asarray(x * np.log(np.where(x > 0.0, x, 1.0) / np.where(x > 0.0, y, 1.0)))


@dataclass(frozen=True, slots=True)
class Squared(Direct):
    """``(x - y)^2``.

    >>> Squared().value(np.array([3.0]), np.array([1.0])).tolist()
    [4.0]
    """

    name: ClassVar[str] = "squared"
    positive: ClassVar[bool] = False  # whether the model's values must not be negative
    least: ClassVar[float] = -np.inf  # smallest value that an entry may have
    most: ClassVar[float] = np.inf

    def value(self, x: Floats, y: Floats) -> Floats:
        """Return the loss of each entry."""
        return np.asarray((x - y) ** 2)

    def slope(self, x: Floats, y: Floats) -> Floats:
        """Return the first derivative in y."""
        return np.asarray(2.0 * (y - x))

    def curvature(self, x: Floats, y: Floats) -> Floats:
        """Return the second derivative in y."""
        return np.full(np.broadcast(x, y).shape, 2.0)

    weight = curvature


@dataclass(frozen=True, slots=True)
class Poisson(Direct):
    """``y - x + x log(x / y)``: Kullback and Leibler's divergence, the loss of counts.

    >>> Poisson().value(np.array([2.0, 0.0]), np.array([4.0, 3.0])).round(3).tolist()
    [0.614, 3.0]
    """

    name: ClassVar[str] = "poisson"
    least_noise: ClassVar[float] = 0.5
    positive: ClassVar[bool] = True
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = np.inf

    def value(self, x: Floats, y: Floats) -> Floats:
        """Return the loss of each entry."""
        safe = y + TINY
        return np.asarray(safe - x + _log_ratio(x, safe))

    def slope(self, x: Floats, y: Floats) -> Floats:
        """Return the first derivative in y."""
        return np.asarray(1.0 - x / (y + TINY))

    def curvature(self, x: Floats, y: Floats) -> Floats:
        """Return the second derivative in y."""
        return np.asarray(x / (y + TINY) ** 2)

    def weight(self, x: Floats, y: Floats) -> Floats:  # noqa: ARG002 - one form for all
        """Return the expected curvature, ``1 / y``."""
        return np.asarray(1.0 / (y + TINY))


@dataclass(frozen=True, slots=True)
class NegativeBinomial(Direct):
    """Counts with variance ``y + y^2 / size``: more spread than Poisson's.

    >>> NegativeBinomial(5.0).value(np.array([2.0]), np.array([4.0])).round(3).tolist()
    [0.373]
    """

    size: float = 10.0

    name: ClassVar[str] = "negative_binomial"
    least_noise: ClassVar[float] = 0.5
    positive: ClassVar[bool] = True
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = np.inf

    def __post_init__(self) -> None:
        """Refuse what is no size."""
        if check_number("size", self.size, least=0.0) == 0.0:
            raise InputError("size must be larger than 0; a large one comes close to Poisson.")

    def value(self, x: Floats, y: Floats) -> Floats:
        """Return the loss of each entry."""
        safe = y + TINY
        both = x + self.size
        return np.asarray(_log_ratio(x, safe) - both * np.log(both / (safe + self.size)))

    def slope(self, x: Floats, y: Floats) -> Floats:
        """Return the first derivative in y."""
        safe = y + TINY
        return np.asarray((x + self.size) / (safe + self.size) - x / safe)

    def curvature(self, x: Floats, y: Floats) -> Floats:
        """Return the second derivative in y."""
        safe = y + TINY
        return np.asarray(x / safe**2 - (x + self.size) / (safe + self.size) ** 2)

    def weight(self, x: Floats, y: Floats) -> Floats:  # noqa: ARG002
        """Return the expected curvature, ``1 / (y + y^2 / size)``."""
        safe = y + TINY
        return np.asarray(1.0 / (safe + safe**2 / self.size))


@dataclass(frozen=True, slots=True)
class Gamma(Direct):
    """``x / y - log(x / y) - 1``: positive values whose spread is a share of their size.

    >>> Gamma().value(np.array([2.0]), np.array([4.0])).round(3).tolist()
    [0.193]
    """

    name: ClassVar[str] = "gamma"
    positive: ClassVar[bool] = True
    least: ClassVar[float] = np.nextafter(0.0, 1.0)
    most: ClassVar[float] = np.inf

    def value(self, x: Floats, y: Floats) -> Floats:
        """Return the loss of each entry."""
        ratio = x / (y + TINY)
        return np.asarray(ratio - np.log(ratio) - 1.0)

    def slope(self, x: Floats, y: Floats) -> Floats:
        """Return the first derivative in y."""
        safe = y + TINY
        return np.asarray(1.0 / safe - x / safe**2)

    def curvature(self, x: Floats, y: Floats) -> Floats:
        """Return the second derivative in y."""
        safe = y + TINY
        return np.asarray(2.0 * x / safe**3 - 1.0 / safe**2)

    def weight(self, x: Floats, y: Floats) -> Floats:  # noqa: ARG002
        """Return the expected curvature, ``1 / y^2``."""
        return np.asarray(1.0 / (y + TINY) ** 2)


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """``log(1 + e^y) - x y``: yes or no (x from 0 to 1), y the logarithm of the odds.

    >>> Bernoulli().mean(np.array([0.0])).tolist()
    [0.5]
    """

    name: ClassVar[str] = "bernoulli"
    least_noise: ClassVar[float] = 0.5
    most_noise: ClassVar[float] = 0.5
    expects: ClassVar[bool] = True
    divergence: ClassVar[bool] = True
    positive: ClassVar[bool] = False
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 1.0

    def value(self, x: Floats, y: Floats) -> Floats:
        """Return the loss of each entry."""
        return np.asarray(np.logaddexp(0.0, y) - x * y)

    def slope(self, x: Floats, y: Floats) -> Floats:
        """Return the first derivative in y."""
        return np.asarray(self.mean(y) - x)

    def curvature(self, x: Floats, y: Floats) -> Floats:
        """Return the second derivative in y."""
        p = self.mean(y)
        return np.asarray(p * (1.0 - p) + 0.0 * x)

    def weight(self, x: Floats, y: Floats) -> Floats:
        """Return the curvature, but not less than a hundredth: certain entries stay in play."""
        return np.maximum(self.curvature(x, y), 0.01)

    def mean(self, y: Floats) -> Floats:
        """Return the probability where the model's value is y."""
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * y))

    def bend(self, mean: float) -> float:
        """Return the weight where entry and expectation are `mean`."""
        p = min(max(mean, 0.01), 0.99)
        return weight_at(self, p, float(np.log(p / (1.0 - p))))


@dataclass(frozen=True, slots=True)
class Huber(Direct):
    """``(x - y)^2`` up to a distance of `delta`, from there on its tangent: outliers pull less.

    >>> Huber(1.0).value(np.array([0.0, 0.0]), np.array([0.5, 3.0])).tolist()
    [0.25, 5.0]
    """

    delta: float = 1.0

    name: ClassVar[str] = "huber"
    positive: ClassVar[bool] = False
    least: ClassVar[float] = -np.inf
    most: ClassVar[float] = np.inf

    def __post_init__(self) -> None:
        """Refuse what is no distance."""
        if check_number("delta", self.delta, least=0.0) == 0.0:
            raise InputError("delta must be larger than 0.")

    def value(self, x: Floats, y: Floats) -> Floats:
        """Return the loss of each entry."""
        gap = np.abs(x - y)
        far = np.maximum(gap - self.delta, 0.0)
        return np.asarray(gap**2 - far**2)

    def slope(self, x: Floats, y: Floats) -> Floats:
        """Return the first derivative in y."""
        return np.asarray(2.0 * np.clip(y - x, -self.delta, self.delta))

    def curvature(self, x: Floats, y: Floats) -> Floats:
        """Return the second derivative in y."""
        return np.where(np.abs(x - y) <= self.delta, 2.0, 0.0)

    def weight(self, x: Floats, y: Floats) -> Floats:
        """Return the curvature of the parabola that touches the loss and lies above it."""
        return np.asarray(2.0 * self.delta / np.maximum(np.abs(x - y), self.delta))


Loss: TypeAlias = Squared | Poisson | NegativeBinomial | Gamma | Bernoulli | Huber | Custom

LOSSES: dict[str, Callable[..., Loss]] = {
    kind.name: kind for kind in (Squared, Poisson, NegativeBinomial, Gamma, Bernoulli, Huber)
}


def missed(loss: Loss, x: Floats, y: Floats) -> Floats:
    """Return how much each entry is missed, on the scale of squares with a cell's curvature.

    That is the loss if nothing can be added to it that does not depend on y; else the square of
    the slope over twice the curvature: the height of the parabola above its lowest point.

    >>> shifted = Custom(lambda x, y: (x - y) ** 2 - 7.0, lambda x, y: 2.0 * (y - x))
    >>> missed(shifted, np.array([3.0]), np.array([1.0])).round(6).tolist()
    [4.0]
    """
    if loss.divergence:
        return loss.value(x, y)
    height = loss.slope(x, y) ** 2 / (2.0 * loss.weight(x, y))
    return np.where(np.isfinite(height), height, 0.0)


def loss_for(loss: object) -> Loss:
    """Return the loss given by name or as a part.

    >>> loss_for("poisson")
    Poisson()
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise InputError(
        f"loss must be one of {', '.join(map(repr, LOSSES))} or a part such as "
        f"tt.losses.Huber(2.0), not {loss!r}."
    )


def check_unit(loss: Loss, values: Floats) -> None:
    """Refuse first values that are hardly larger than what stands for zero."""
    largest = float(values.max(initial=0.0))
    if loss.positive and 0.0 < largest < 1e4 * TINY:
        raise InputError(
            f"loss {loss.name!r} takes a model value of {TINY:g} for zero, and the largest value "
            f"is {largest:.2g}; give the values in a smaller unit (scaled up)."
        )


def allowed_values(loss: Loss) -> str:
    """Say which entries a loss that excludes some is defined for.

    >>> allowed_values(Bernoulli()), allowed_values(Gamma())
    ('from 0 to 1', 'above 0')
    """
    if np.isfinite(loss.most):
        return f"from {loss.least:g} to {loss.most:g}"
    return "above 0" if loss.name == "gamma" else f"from {loss.least:g} on"


def check_loss_values(loss: Loss, values: Floats) -> None:
    """Refuse entries that a loss is not defined for."""
    bad = (values < loss.least) | (values > loss.most)
    if not bad.any():
        if isinstance(loss, Custom):
            loss.check(values)
        return
    value = float(values[bad][0])
    raise InputError(
        f"loss {loss.name!r} takes values {allowed_values(loss)}, but {int(bad.sum())} of "
        f"{len(values)} are not, the first is {value:g}; use another loss, or correct the values."
    )
