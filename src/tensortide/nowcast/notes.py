"""What a reader has to know beside the numbers of a nowcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensortide.wording import counted

if TYPE_CHECKING:
    from tensortide.nowcast.nowcast import Nowcast

FEW = 7  # earlier nowcasts below which intervals are not learned yet


def remarks(nowcast: Nowcast) -> list[str]:
    """Return sentences on what is not in the numbers, and on what the intervals rest."""
    triangle, told = nowcast.triangle, []
    every, longest = triangle.every, counted(triangle.max_delay, triangle.every)
    past = int(np.isfinite(nowcast.spread.nowcasts).any(axis=(1, 2)).sum())
    if past < FEW:
        told.append(
            f"The intervals are a guess: there {'is' if past == 1 else 'are'} "
            f"{counted(past, 'earlier nowcast')} to learn from."
        )
    if nowcast.silent:
        told.append(
            f"For {counted(nowcast.silent, every)} hardly anything has been reported: taken as "
            "not published yet."
        )
    if triangle.n_dates <= triangle.max_delay:
        told.append(
            f"The data cover {counted(triangle.n_dates, every)}, less than the maximum delay of "
            f"{longest}: what comes later than was ever seen is not foreseen."
        )
    late = float(triangle.counts[~triangle.within()].sum())
    if late:
        told.append(
            f"{late:,.0f} of {triangle.counts.sum():,.0f} counts came later than the maximum delay "
            f"of {longest}: they belong to no final count."
        )
    return told
