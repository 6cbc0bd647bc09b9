"""A method is data: what it sees, how the data enter, and the weights of its terms."""

from __future__ import annotations

from dataclasses import dataclass

from tensortide.core.alpha import Schedule, check_number
from tensortide.core.types import Shape
from tensortide.errors import InputError

STRATEGY_NAMES = ("auto", "rows", "imputed")
DENSE_ENOUGH = 0.9  # share of observed cells above which "auto" imputes; see docs/numerics.md


@dataclass(frozen=True, slots=True)
class Recipe:
    """An online method for the engine.

    `keeps_history` decides between the full objective L (all entries) and the economy
    objective L_E (the new ones only).
    """

    name: str
    keeps_history: bool
    alpha: Schedule
    beta: float = 1e-5
    sweeps: int = 1
    strategy: str = "auto"
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming it."""
        check_number("beta", self.beta, least=0.0)
        if not 0.0 < check_number("forgetting", self.forgetting, least=0.0) <= 1.0:
            raise InputError(f"forgetting must lie in (0, 1], not {self.forgetting!r}.")
        if isinstance(self.sweeps, bool) or not isinstance(self.sweeps, int) or self.sweeps < 1:
            raise InputError(f"sweeps must be a whole number from 1 on, not {self.sweeps!r}.")
        if self.strategy not in STRATEGY_NAMES:
            raise InputError(
                f"strategy must be 'auto', 'rows' or 'imputed', not {self.strategy!r}."
            )

    def choose(self, n_entries: float, shape: Shape) -> str:
        """Return the strategy for this density of the cells that the method sees."""
        if self.strategy != "auto":
            return self.strategy
        cells = 1.0
        for size in shape:
            cells *= size
        return "imputed" if n_entries >= DENSE_ENOUGH * cells else "rows"
