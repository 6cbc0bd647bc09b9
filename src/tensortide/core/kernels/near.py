"""Compiled loops over the rows before others in an ordered mode: what they suggest for a row.

A step asks this for a handful of rows, where calls of NumPy would take most of its time.
"""

from __future__ import annotations

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.compiled import compiled


@compiled("void(float64[:,::1], int64[:,::1], float64[:,::1], float64[:,:,::1])")
def suggest_near(rows: Floats, recent: Positions, means: Floats, out: Floats) -> None:
    """Write the first five candidates of each row: mean row, last, means of the last 2, 4, 8.

    `recent` names the rows before each, nearest first, -1 where none is; `means` is one for all
    or one for each.  Where no row comes before, all candidates are the mean row.
    """
    rank = rows.shape[1]
    for k in range(recent.shape[0]):
        mean = means[k if means.shape[0] > 1 else 0]
        found = out[k]
        count, done = 0, 2
        for r in range(rank):
            found[0, r] = mean[r]
            for c in range(1, 5):
                found[c, r] = mean[r] if recent[k, 0] < 0 else 0.0
        if recent[k, 0] < 0:
            continue
        for back in range(recent.shape[1]):
            at = recent[k, back]
            if at < 0:
                break
            for c in range(done, 5):
                for r in range(rank):
                    found[c, r] += rows[at, r]
            count += 1
            if count == 1:
                for r in range(rank):
                    found[1, r] = rows[at, r]
            if count == 1 << (done - 1):  # the mean of the last 2, 4 or 8 is whole
                for r in range(rank):
                    found[done, r] /= count
                done += 1
        for c in range(done, 5):  # fewer rows than that come before
            for r in range(rank):
                found[c, r] /= count


@compiled("void(float64[:,::1], int64[:,::1], int64[:,::1], float64[:,::1], float64[:,:,::1])")
def suggest(rows: Floats, recent: Positions, ago: Positions, means: Floats, out: Floats) -> None:
    """Write all candidates of each row: the near ones, two damped trends, rows a season ago."""
    suggest_near(rows, recent, means, out)
    for k in range(recent.shape[0]):
        found = out[k]
        before, earlier = recent[k, 1], recent[k, 4]
        for r in range(rows.shape[1]):
            last = found[1, r]
            found[5, r] = found[6, r] = last
            if before >= 0:
                found[5, r] = last + 0.5 * (last - rows[before, r])
            if earlier >= 0:
                found[6, r] = last + (last - rows[recent[k, 3], r]) / 3.0
            for season in range(ago.shape[1]):
                at = ago[k, season]
                found[7 + season, r] = rows[at, r] if at >= 0 else last
