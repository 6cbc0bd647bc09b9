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
    from tensortide import datasets as datasets
    from tensortide import methods as methods
    from tensortide import nowcast as nowcast
    from tensortide import simulate as simulate
    from tensortide.core import losses as losses
    from tensortide.core import penalties as penalties
    from tensortide.core.losses import Loss as Loss
    from tensortide.core.penalties import Penalty as Penalty
    from tensortide.core.penalties import fixed as fixed
    from tensortide.core.penalties import l1 as l1
    from tensortide.core.penalties import nonnegative as nonnegative
    from tensortide.core.penalties import nuclear as nuclear
    from tensortide.core.penalties import ridge as ridge
    from tensortide.core.penalties import simplex as simplex
    from tensortide.core.penalties import smooth as smooth
    from tensortide.core.steps import alpha as alpha
    from tensortide.core.steps.alpha import Circumstances as Circumstances
    from tensortide.core.steps.alpha import constant as constant
    from tensortide.core.steps.alpha import density as density
    from tensortide.core.steps.alpha import per_size as per_size
    from tensortide.core.steps.method import Method as Method
    from tensortide.data.batch import Batch as Batch
    from tensortide.data.tables import TableLike as TableLike
    from tensortide.experiments.comparison import Comparison as Comparison
    from tensortide.experiments.comparison import compare as compare
    from tensortide.methods import METHODS as METHODS
    from tensortide.methods import cp_stream as cp_stream
    from tensortide.methods import cpc_als as cpc_als
    from tensortide.methods import em_als as em_als
    from tensortide.methods import em_als_decay as em_als_decay
    from tensortide.methods import gocpt as gocpt
    from tensortide.methods import gocpte as gocpte
    from tensortide.methods import mast as mast
    from tensortide.methods import olstec as olstec
    from tensortide.methods import online_cpd as online_cpd
    from tensortide.methods import online_sgd as online_sgd
    from tensortide.methods import rlst as rlst
    from tensortide.methods import sdt as sdt
    from tensortide.online.estimator import OnlineCP as OnlineCP
    from tensortide.online.info import Info as Info
    from tensortide.online.reading import ReadOnlyModel as ReadOnlyModel
    from tensortide.online.saved import load as load
    from tensortide.report import plots as plots
    from tensortide.tracker.tracker import Tracker as Tracker

__version__ = "0.6.0"

#: Where public names live; they are imported when they are first used.
_HOME = {
    "core.losses": ("Loss",),
    "core.penalties": (
        "Penalty", "fixed", "l1", "nonnegative", "nuclear", "ridge", "simplex", "smooth",
    ),
    "core.steps.alpha": ("Circumstances", "constant", "density", "per_size"),
    "core.steps.method": ("Method",),
    "data.batch": ("Batch",),
    "data.tables": ("TableLike",),
    "experiments.comparison": ("Comparison", "compare"),
    "methods": (
        "METHODS", "cp_stream", "cpc_als", "em_als", "em_als_decay", "gocpt", "gocpte", "mast",
        "olstec", "online_cpd", "online_sgd", "rlst", "sdt",
    ),
    "online.estimator": ("OnlineCP",),
    "online.info": ("Info",),
    "online.reading": ("ReadOnlyModel",),
    "online.saved": ("load",),
    "tracker.tracker": ("Tracker",),
}  # fmt: skip
_MODULES = {
    "alpha": "core.steps.alpha",
    "datasets": "datasets",
    "losses": "core.losses",
    "methods": "methods",
    "nowcast": "nowcast",
    "penalties": "core.penalties",
    "plots": "report.plots",
    "simulate": "simulate",
}
_NAMES = {name: home for home, names in _HOME.items() for name in names}
_ERRORS = (
    FileError, InputError, NoDataError, NotFittedError, SolveError, TensortideError,
    TensortideWarning,
)  # fmt: skip

_RAISED = {error.__name__: error for error in _ERRORS}

__all__ = [*_NAMES, *_MODULES, *_RAISED]  # noqa: PLE0604 - keys are names


def __getattr__(name: str) -> Any:
    """Import public names when they are first used: `import tensortide` stays light."""
    if name in _MODULES:
        return import_module(f"tensortide.{_MODULES[name]}")
    if name in _NAMES:
        return getattr(import_module(f"tensortide.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'tensortide' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported too."""
    return sorted(__all__)
