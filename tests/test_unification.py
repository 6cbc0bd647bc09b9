"""Section 4 of the paper: earlier objectives are cases of GOCPT's, in value and in slope."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.core.objective.data_terms import observed_rows
from tensortide.core.objective.squares import BoxTerm, Objective
from tensortide.core.penalties.prox import NonNegative, Nuclear
from tensortide.core.steps.change import Change
from tensortide.core.steps.decay import decay_slices
from tensortide.core.tensor.workspace import Workspace
from tests import oracles_baselines
from tests.engines import entries_of

SEEDS = st.integers(0, 10**6)


def central_differences(function, factors, step=1e-5):
    slopes = []
    for f in factors:
        slope = np.zeros_like(f)
        for at in np.ndindex(*f.shape):
            kept = f[at]
            f[at] = kept + step
            above = function(factors)
            f[at] = kept - step
            slope[at] = (above - function(factors)) / (2 * step)
            f[at] = kept
        slopes.append(slope)
    return slopes


def workspace(factors, old):
    work = Workspace(old, [len(f) - o for f, o in zip(factors, old, strict=True)], 2)
    for part, f in zip(work.rows(), factors, strict=True):
        part[:] = f
    return work


def slopes_of(objective):
    work = objective.work
    slope = np.zeros_like(work.stack)
    for block in work.blocks():
        where = work.stacked(block)
        slope[where] = objective.equations(block).gradient(work.stack[where])
    return [slope[work.part(mode)] for mode in range(work.order)]


@given(seed=SEEDS, weight=st.sampled_from([0.0, 0.1, 1.0]))
def test_economy_objective_with_the_nuclear_norm_is_mast(seed, weight):
    rng = np.random.default_rng(seed)
    old, new = (3, 4, 3), (4, 4, 5)
    factors = [rng.standard_normal((n, 2)) for n in new]
    previous = [rng.standard_normal((n, 2)) for n in old]
    box = np.ones(new, bool)
    box[:3, :4, :3] = False
    cells = {tuple(map(int, c)): float(rng.standard_normal()) for c in np.argwhere(box)}
    work = workspace(factors, old)
    reference = np.zeros_like(work.stack)
    for mode, rows in enumerate(previous):
        reference[work.upper_part(mode)] = rows
    entries = entries_of(list(cells), list(cells.values()), new)
    listed, _ = observed_rows(work, entries)
    ours = Objective(work, listed, [BoxTerm(0.6, reference, upper_only=True)], 0.0)
    nuclear = Nuclear(weight)

    def theirs(factors):
        return oracles_baselines.mast_objective(factors, previous, cells, 0.6, weight, 0.0)

    value = ours.value() + sum(nuclear.value(rows) for rows in work.rows())
    assert value == pytest.approx(theirs(factors), rel=1e-9)
    slopes = central_differences(theirs, [f.copy() for f in factors])
    for mine, rows, slope in zip(slopes_of(ours), factors, slopes, strict=True):
        left, _, right = np.linalg.svd(rows, full_matrices=False)
        np.testing.assert_allclose(mine + weight * left @ right, slope, rtol=1e-4, atol=1e-4)


@given(seed=SEEDS, gamma=st.sampled_from([0.5, 0.9, 1.0]))
def test_full_objective_without_reconstruction_and_with_decay_is_online_sgd(seed, gamma):
    rng = np.random.default_rng(seed)
    shape = (4, 3, 6)
    factors = [rng.standard_normal((n, 2)) for n in shape]
    x = rng.standard_normal(shape)
    x[rng.random(shape) < 0.5] = np.nan
    x[0, 0, 0] = 1.0
    cells = np.argwhere(~np.isnan(x))
    work = workspace(factors, shape)
    entries = entries_of(cells, x[tuple(cells.T)], shape)
    change = Change(
        old_shape=shape, new_shape=shape, entries=entries, positions=(None,) * 3,
        arrived=cells.astype(np.int32), n_seen=0, step=0, time=2, absent_zero=False,
    )  # fmt: skip
    fade = decay_slices(work, change, gamma)
    listed, boxes = observed_rows(work, fade.entries)
    ours = Objective(work, listed, boxes, 0.3)

    def theirs(factors):
        return oracles_baselines.decayed_objective(factors, x, gamma, 0.3)

    assert ours.value() == pytest.approx(theirs(factors), rel=1e-9)
    scale = [fade.scale[work.part(mode)] for mode in range(3)]
    slopes = central_differences(theirs, [f.copy() for f in factors])
    for mine, by, slope in zip(slopes_of(ours), scale, slopes, strict=True):
        np.testing.assert_allclose(mine * by, slope, rtol=1e-4, atol=1e-4)


@given(seed=SEEDS, weight=st.sampled_from([0.1, 1.0, 3.0]))
@pytest.mark.parametrize("prox", [Nuclear(0.7), NonNegative()])
def test_the_proximal_map_beats_other_points(prox, seed, weight):
    """Its answer has the smallest ``weight r(Z) + 1/2 |Z - V|^2`` of all points near by."""
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((5, 3))

    def goal(z):
        return weight * prox.value(z) + 0.5 * ((z - v) ** 2).sum()

    best = prox.apply(v, weight)
    for size in (1e-3, 0.1, 1.0):
        other = best + size * rng.standard_normal(v.shape)
        if isinstance(prox, NonNegative):
            other = np.abs(other)
        assert goal(best) <= goal(other) + 1e-12
