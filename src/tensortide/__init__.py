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
    from tensortide import datasets, nowcast, simulate
    from tensortide.core import losses
    from tensortide.core.penalties.parts import (
        fixed,
        l1,
        nonnegative,
        nuclear,
        ridge,
        simplex,
        smooth,
    )
    from tensortide.core.steps.alpha import Circumstances, constant, density, per_size
    from tensortide.data.batch import Batch
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
    from tensortide.online.estimator import OnlineCP
    from tensortide.online.info import Info
    from tensortide.online.saved import load
    from tensortide.report import plots
    from tensortide.tracker.tracker import Tracker

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
    "cp_stream": "methods.baselines",
    "cpc_als": "methods.baselines",
    "em_als": "methods.baselines",
    "em_als_decay": "methods.baselines",
    "mast": "methods.baselines",
    "olstec": "methods.baselines",
    "online_cpd": "methods.baselines",
    "online_sgd": "methods.baselines",
    "rlst": "methods.baselines",
    "sdt": "methods.baselines",
    "METHODS": "methods.registry",
    "gocpt": "methods.registry",
    "gocpte": "methods.registry",
    "Batch": "data.batch",
    "Circumstances": "core.steps.alpha",
    "constant": "core.steps.alpha",
    "density": "core.steps.alpha",
    "per_size": "core.steps.alpha",
    "fixed": "core.penalties.parts",
    "l1": "core.penalties.parts",
    "nonnegative": "core.penalties.parts",
    "nuclear": "core.penalties.parts",
    "ridge": "core.penalties.parts",
    "simplex": "core.penalties.parts",
    "smooth": "core.penalties.parts",
    "Info": "online.info",
    "OnlineCP": "online.estimator",
    "load": "online.saved",
    "Tracker": "tracker.tracker",
}

_MODULES = {
    "datasets": "datasets",
    "losses": "core.losses",
    "nowcast": "nowcast",
    "plots": "report.plots",
    "simulate": "simulate",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used: `import tensortide` stays light."""
    if name in _MODULES:
        return import_module(f"tensortide.{_MODULES[name]}")
    if name in _HOME:
        return getattr(import_module(f"tensortide.{_HOME[name]}"), name)
    raise AttributeError(f"module 'tensortide' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported too."""
    return sorted(__all__)
