"""What losses share whose model value is the expected entry itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

import numpy as np

from tensortide.arrays import Floats


class _Weighted(Protocol):
    def weight(self, x: Floats, y: Floats) -> Floats: ...


def weight_at(loss: _Weighted, x: float, y: float) -> float:
    """Return the weight of a single entry."""
    return float(loss.weight(np.array([x]), np.array([y]))[0])


class Direct(ABC):
    """A loss on the scale of the entries; Bernoulli's, on the scale of log odds, is none."""

    __slots__ = ()

    least_noise: ClassVar[float] = 0.0  # expected loss of an entry that is known as well as can be
    most_noise: ClassVar[float] = np.inf  # and of one that is spread as widely as can be
    expects: ClassVar[bool] = True  # whether `mean` is known to give expected entries
    divergence: ClassVar[bool] = True  # whether it says how much is missed: nothing where it fits

    @abstractmethod
    def weight(self, x: Floats, y: Floats) -> Floats:
        """Return the curvature that a step works with."""

    def mean(self, y: Floats) -> Floats:
        """Return the expected entry where the model's value is y."""
        return y

    def bend(self, mean: float) -> float:
        """Return the weight where entry and expectation are `mean`."""
        return weight_at(self, mean, mean)
