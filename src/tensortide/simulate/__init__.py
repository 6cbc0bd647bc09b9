"""Streams that are made, for tests and first tries."""

from tensortide.simulate.hospital import admissions
from tensortide.simulate.streams import (
    LowRank,
    Stream,
    growth,
    low_rank,
    random_mask,
    reporting,
    revise,
)

__all__ = [
    "LowRank",
    "Stream",
    "admissions",
    "growth",
    "low_rank",
    "random_mask",
    "reporting",
    "revise",
]
