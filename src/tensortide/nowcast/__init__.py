"""Nowcasts of late counts: reporting triangles, completed with calibrated intervals.

>>> import tensortide as tt
>>> tt.nowcast.Nowcaster(ranks=3).name
'tensortide'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortide.nowcast import plots
    from tensortide.nowcast.count_model.state import CHAIN_LADDER, Settings
    from tensortide.nowcast.hub import hub_table
    from tensortide.nowcast.ladders import BASELINES, ChainLadder, HazardLadder, Unadjusted
    from tensortide.nowcast.nowcast import Nowcast, Quantiles
    from tensortide.nowcast.nowcaster import Nowcaster
    from tensortide.nowcast.replay_result import Replay, ScoreDifference, ScoredNowcasts
    from tensortide.nowcast.replayer import replay
    from tensortide.nowcast.scoring import Scores, scores
    from tensortide.nowcast.triangle import Triangle

__all__ = [
    "BASELINES",
    "CHAIN_LADDER",
    "ChainLadder",
    "HazardLadder",
    "Nowcast",
    "Nowcaster",
    "Quantiles",
    "Replay",
    "ScoreDifference",
    "ScoredNowcasts",
    "Scores",
    "Settings",
    "Triangle",
    "Unadjusted",
    "hub_table",
    "plots",
    "replay",
    "scores",
]

_HOME = {
    "BASELINES": "ladders",
    "CHAIN_LADDER": "count_model.state",
    "Settings": "count_model.state",
    "ChainLadder": "ladders",
    "HazardLadder": "ladders",
    "Unadjusted": "ladders",
    "Nowcast": "nowcast",
    "Nowcaster": "nowcaster",
    "Quantiles": "nowcast",
    "Replay": "replay_result",
    "ScoreDifference": "replay_result",
    "ScoredNowcasts": "replay_result",
    "replay": "replayer",
    "Scores": "scoring",
    "scores": "scoring",
    "Triangle": "triangle",
    "hub_table": "hub",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used."""
    if name in _HOME:
        return getattr(import_module(f"tensortide.nowcast.{_HOME[name]}"), name)
    if name == "plots":
        return import_module("tensortide.nowcast.plots")
    raise AttributeError(f"module 'tensortide.nowcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported too."""
    return sorted(__all__)
