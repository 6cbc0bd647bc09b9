"""What the rows of a mode are drawn to, or held to."""

from tensortide.core.penalties.parts import Part as Penalty
from tensortide.core.penalties.parts import fixed, l1, nonnegative, nuclear, ridge, simplex, smooth

__all__ = ["Penalty", "fixed", "l1", "nonnegative", "nuclear", "ridge", "simplex", "smooth"]
