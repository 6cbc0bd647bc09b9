"""Tensortide: a low-rank CP model of a tensor that never stops changing.

>>> import tensortide as tt
>>> tt.OnlineCP(rank=2, method="gocpte")
OnlineCP(rank=2, method='gocpte', not fitted)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensortide.errors import (
    FileError,
    InputError,
    NoDataError,
    NotFittedError,
    SolveError,
    TensortideError,
    TensortideWarning,
)

if TYPE_CHECKING:
    from tensortide import datasets, nowcast, plots, simulate
    from tensortide.baselines import (
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
    from tensortide.core import losses
    from tensortide.core.alpha import Circumstances, constant, density, per_size
    from tensortide.core.penalties import (
        fixed,
        l1,
        nonnegative,
        nuclear,
        ridge,
        simplex,
        smooth,
    )
    from tensortide.data.batch import Batch
    from tensortide.estimator import OnlineCP
    from tensortide.info import Info
    from tensortide.methods import METHODS, gocpt, gocpte
    from tensortide.readers.checkpoint import load
    from tensortide.tracker.run import Tracker

__version__ = "0.4.0"

__all__ = [
    "METHODS",
    "Batch",
    "Circumstances",
    "FileError",
    "Info",
    "InputError",
    "NoDataError",
    "NotFittedError",
    "OnlineCP",
    "SolveError",
    "TensortideError",
    "TensortideWarning",
    "Tracker",
    "constant",
    "cp_stream",
    "cpc_als",
    "datasets",
    "density",
    "em_als",
    "em_als_decay",
    "fixed",
    "gocpt",
    "gocpte",
    "l1",
    "load",
    "losses",
    "mast",
    "nonnegative",
    "nowcast",
    "nuclear",
    "olstec",
    "online_cpd",
    "online_sgd",
    "per_size",
    "plots",
    "ridge",
    "rlst",
    "sdt",
    "simplex",
    "simulate",
    "smooth",
]

_HOME = {
    "cp_stream": "baselines",
    "cpc_als": "baselines",
    "em_als": "baselines",
    "em_als_decay": "baselines",
    "mast": "baselines",
    "olstec": "baselines",
    "online_cpd": "baselines",
    "online_sgd": "baselines",
    "rlst": "baselines",
    "sdt": "baselines",
    "METHODS": "methods",
    "gocpt": "methods",
    "gocpte": "methods",
    "Batch": "data.batch",
    "Circumstances": "core.alpha",
    "constant": "core.alpha",
    "density": "core.alpha",
    "per_size": "core.alpha",
    "fixed": "core.penalties",
    "l1": "core.penalties",
    "nonnegative": "core.penalties",
    "nuclear": "core.penalties",
    "ridge": "core.penalties",
    "simplex": "core.penalties",
    "smooth": "core.penalties",
    "Info": "info",
    "OnlineCP": "estimator",
    "load": "readers.checkpoint",
    "Tracker": "tracker.run",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used: `import tensortide` stays light."""
    if name == "losses":
        return import_module("tensortide.core.losses")
    if name in ("datasets", "nowcast", "plots", "simulate"):
        return import_module(f"tensortide.{name}")
    if name in _HOME:
        return getattr(import_module(f"tensortide.{_HOME[name]}"), name)
    raise AttributeError(f"module 'tensortide' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported too."""
    return sorted(__all__)
