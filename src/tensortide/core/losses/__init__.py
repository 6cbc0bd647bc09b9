"""What a miss costs: the losses by name, and one's own."""

from tensortide.core.losses.custom import Custom
from tensortide.core.losses.standard import (
    LOSSES,
    Bernoulli,
    Gamma,
    Huber,
    Loss,
    NegativeBinomial,
    Poisson,
    Squared,
    check_loss_values,
    check_unit,
    loss_for,
)

__all__ = [
    "LOSSES",
    "Bernoulli",
    "Custom",
    "Gamma",
    "Huber",
    "Loss",
    "NegativeBinomial",
    "Poisson",
    "Squared",
    "check_loss_values",
    "check_unit",
    "loss_for",
]
