"""Nowcasts of late counts: reporting triangles, completed with calibrated intervals.

>>> import tensortide as tt
>>> tt.nowcast.Nowcaster(ranks=3).name
'tensortide'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortide.nowcast import plots as plots
    from tensortide.nowcast.count_model.state import CHAIN_LADDER as CHAIN_LADDER
    from tensortide.nowcast.count_model.state import Settings as Settings
    from tensortide.nowcast.hub import hub_table as hub_table
    from tensortide.nowcast.ladders import BASELINES as BASELINES
    from tensortide.nowcast.ladders import ChainLadder as ChainLadder
    from tensortide.nowcast.ladders import HazardLadder as HazardLadder
    from tensortide.nowcast.ladders import Unadjusted as Unadjusted
    from tensortide.nowcast.nowcast import Nowcast as Nowcast
    from tensortide.nowcast.nowcast import Quantiles as Quantiles
    from tensortide.nowcast.nowcaster import Nowcaster as Nowcaster
    from tensortide.nowcast.replay_result import Replay as Replay
    from tensortide.nowcast.replay_result import ScoreDifference as ScoreDifference
    from tensortide.nowcast.replay_result import ScoredNowcasts as ScoredNowcasts
    from tensortide.nowcast.replayer import replay as replay
    from tensortide.nowcast.scoring import Scores as Scores
    from tensortide.nowcast.scoring import scores as scores
    from tensortide.nowcast.triangle import Triangle as Triangle

#: Where public names live; they are imported when they are first used.
_HOME = {
    "count_model.state": ("CHAIN_LADDER", "Settings"),
    "hub": ("hub_table",),
    "ladders": ("BASELINES", "ChainLadder", "HazardLadder", "Unadjusted"),
    "nowcast": ("Nowcast", "Quantiles"),
    "nowcaster": ("Nowcaster",),
    "replay_result": ("Replay", "ScoreDifference", "ScoredNowcasts"),
    "replayer": ("replay",),
    "scoring": ("Scores", "scores"),
    "triangle": ("Triangle",),
}
_NAMES = {name: home for home, names in _HOME.items() for name in names}

__all__ = ["plots", *_NAMES]  # noqa: PLE0604 - keys are names


def __getattr__(name: str) -> Any:
    """Import public names when they are first used."""
    if name == "plots":
        return import_module("tensortide.nowcast.plots")
    if name in _NAMES:
        return getattr(import_module(f"tensortide.nowcast.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'tensortide.nowcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported too."""
    return sorted(__all__)
