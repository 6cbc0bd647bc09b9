"""Weights on a simplex that minimise a quadratic: how candidates are mixed."""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.compiled import compiled
from tensortide.core.kernels.matrices import factorise

STEPS = 100  # changes of the candidates in use at most; one for each is the rule
ENOUGH = 1e-12  # share of the mean of the diagonal by which a candidate has to be better


@compiled("int64(float64[:,::1], int64[::1], int64, float64, float64[::1])")
def _best_of(errors: Floats, used: Positions, n_used: int, more: float, best: Floats) -> int:
    """Write the weights, of any sign, that are best with the used candidates; 1 if none are."""
    g = np.empty((n_used, n_used))
    lower = np.zeros((n_used, n_used))
    for a in range(n_used):
        for b in range(n_used):
            g[a, b] = errors[used[a], used[b]]
        g[a, a] += more
    if factorise(g, lower):
        return 1
    for a in range(n_used):
        dot = 1.0
        for b in range(a):
            dot -= lower[a, b] * best[b]
        best[a] = dot / lower[a, a]
    total = 0.0
    for a in range(n_used - 1, -1, -1):
        dot = best[a]
        for b in range(a + 1, n_used):
            dot -= lower[b, a] * best[b]
        best[a] = dot / lower[a, a]
        total += best[a]
    for a in range(n_used):
        best[a] /= total
    return 0


@compiled("void(float64[:,::1], boolean[::1], float64, float64[::1])")
def mix_simplex(errors: Floats, allowed: Flags, ridge: float, weights: Floats) -> None:
    """Write the non-negative weights that add up to one and minimise ``w' (G + ridge) w``.

    The ridge is a share of the mean of the diagonal: candidates that err alike get the same
    weight.  Only `allowed` candidates get weight; where no error is known, or one is not finite,
    the first has it all.  Candidates come into use one by one, the most promising first, and
    leave it where they would get a negative weight.
    """
    n = len(weights)
    size = 0.0
    finite = 0.0
    for i in range(n):
        size += errors[i, i]
        for j in range(n):
            finite += 0.0 * errors[i, j]
    first = 0
    known = size > 0.0 and finite == 0.0
    for i in range(n):
        weights[i] = 0.0
        if known and allowed[i] and (not allowed[first] or errors[i, i] < errors[first, first]):
            first = i
    weights[first] = 1.0
    if not known:
        return
    more = ridge * size / n
    used = np.empty(n, np.int64)
    used[0] = first
    n_used = 1
    best = np.empty(n)
    for _ in range(STEPS):
        if _best_of(errors, used, n_used, more, best):
            break
        share = 1.0
        for a in range(n_used):
            if not best[a] > 0.0:
                share = min(share, weights[used[a]] / (weights[used[a]] - best[a]))
        kept = 0
        for a in range(n_used):
            i = used[a]
            weights[i] += share * (best[a] - weights[i])
            if best[a] > 0.0 or weights[i] > 1e-15:
                used[kept] = i
                kept += 1
            else:
                weights[i] = 0.0
        if kept < n_used:
            n_used = kept
            continue
        level = 0.0
        lowest = np.inf
        coming = -1
        for i in range(n):
            if not allowed[i]:
                continue
            slope = more * weights[i]
            for j in range(n):
                slope += errors[i, j] * weights[j]
            level += weights[i] * slope
            if weights[i] == 0.0 and slope < lowest:
                lowest = slope
                coming = i
        if not lowest < level - ENOUGH * size / n:
            break
        used[n_used] = coming
        n_used += 1
    total = 0.0
    for i in range(n):
        total += weights[i]
    for i in range(n):
        weights[i] /= total


@compiled("void(float64[:,::1], int64, float64, int64, float64[::1], float64[::1])")
def mix_by_turns(
    errors: Floats, n: int, ridge: float, rounds: int, weights: Floats, recalled: Floats
) -> None:
    """Write weights w of n columns E and v of the others R with which ``(E w - R v)^2`` is small.

    `errors` is the Gram matrix of all columns.  Both are on the simplex, and are found by turns;
    v begins with all weight on the first.
    """
    m = errors.shape[0] - n
    own, kept = np.empty((n, n)), np.empty((m, m))
    pull_own, pull_kept = np.empty(n), np.empty(m)
    every_own, every_kept = np.ones(n, np.bool_), np.ones(m, np.bool_)
    for k in range(m):
        recalled[k] = 1.0 if k == 0 else 0.0
    for i in range(n):
        for j in range(n):
            own[i, j] = errors[i, j]
    mix_simplex(own, every_own, ridge, weights)
    for _ in range(rounds):
        square = 0.0
        for i in range(n):
            pull_own[i] = 0.0
            for k in range(m):
                pull_own[i] += errors[i, n + k] * recalled[k]
        for k in range(m):
            for j in range(m):
                square += recalled[k] * errors[n + k, n + j] * recalled[j]
        for i in range(n):
            for j in range(n):
                own[i, j] = errors[i, j] - pull_own[i] - pull_own[j] + square
        mix_simplex(own, every_own, ridge, weights)
        square = 0.0
        for k in range(m):
            pull_kept[k] = 0.0
            for i in range(n):
                pull_kept[k] += weights[i] * errors[i, n + k]
        for i in range(n):
            for j in range(n):
                square += weights[i] * errors[i, j] * weights[j]
        for k in range(m):
            for j in range(m):
                kept[k, j] = errors[n + k, n + j] - pull_kept[k] - pull_kept[j] + square
        mix_simplex(kept, every_kept, ridge, recalled)
