"""The methods by name, and what each can take."""

from tensortide.methods.baselines import (
    cp_stream,
    cpc_als,
    em_als,
    em_als_decay,
    mast,
    olstec,
    online_cpd,
    online_sgd,
    rlst,
    sdt,
)
from tensortide.methods.registry import METHODS, gocpt, gocpte

__all__ = [
    "METHODS",
    "cp_stream",
    "cpc_als",
    "em_als",
    "em_als_decay",
    "gocpt",
    "gocpte",
    "mast",
    "olstec",
    "online_cpd",
    "online_sgd",
    "rlst",
    "sdt",
]
