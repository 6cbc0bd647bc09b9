"""A loss of one's own: any differentiable function (paper, section 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.losses.direct import Direct
from tensortide.errors import InputError


@dataclass(frozen=True, slots=True)
class Custom(Direct):
    """Any differentiable loss: functions of (x, y), element by element (paper, section 2.3).

    Without a curvature it is taken from differences of the slope; a step is shortened until the
    loss falls.

    >>> quartic = Custom(lambda x, y: (x - y) ** 4, lambda x, y: 4 * (y - x) ** 3)
    >>> quartic.slope(np.array([0.0]), np.array([1.0])).tolist()
    [4.0]
    """

    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    curvature: Callable[[Floats, Floats], Floats] | None = None
    _: KW_ONLY
    positive: bool = False
    expects: ClassVar[bool] = False  # the model's values may be logarithms, or anything else
    divergence: ClassVar[bool] = False  # what depends on the entry alone may be added to it
    least: float = -np.inf
    most: float = np.inf
    name: str = "custom"

    def __post_init__(self) -> None:
        """Refuse what cannot be called."""
        for part in ("value", "slope", "curvature"):
            given = getattr(self, part)
            if not callable(given) and not (part == "curvature" and given is None):
                raise InputError(f"{part} of a custom loss must be a function of x and y.")

    def weight(self, x: Floats, y: Floats) -> Floats:
        """Return the curvature; where it is not positive, its usual size."""
        shape = np.broadcast(x, y).shape
        if self.curvature is None:
            found = self._by_differences(x, y)
        else:
            found = np.broadcast_to(np.asarray(self.curvature(x, y), np.float64), shape)
        sound = np.isfinite(found) & (found > 0.0)
        usual = float(np.median(found[sound])) if sound.any() else 1.0
        return np.where(sound, found, usual)

    def _by_differences(self, x: Floats, y: Floats) -> Floats:
        """Return how fast the slope grows; upwards of y, since below it there may be no loss."""
        size = np.abs(y)
        step = 1e-4 * np.maximum(size, float(size.mean()) if size.size else 0.0)
        step = np.where(step > 0.0, step, 1e-4)
        return np.asarray((self.slope(x, y + step) - self.slope(x, y)) / step, np.float64)

    def check(self, values: Floats) -> None:
        """Refuse functions that do not work element by element on these values."""
        x = values[:5]
        for part in ("value", "slope", *(["curvature"] if self.curvature else [])):
            found = np.asarray(getattr(self, part)(x, x))
            if found.shape not in (x.shape, ()) or (part != "curvature" and found.shape == ()):
                raise InputError(
                    f"{part} of the custom loss must give a number for each entry: of "
                    f"{len(x)} entries it gave an array of shape {found.shape}."
                )
            if not np.isfinite(found).all():
                raise InputError(f"{part} of the custom loss is not finite where y equals x.")
