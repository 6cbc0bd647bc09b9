"""Scores against an independent implementation and their own laws."""

from __future__ import annotations

import numpy as np
import pytest

import tensortide as tt
from tensortide.nowcast.scoring import LEVELS, block_bootstrap, check_levels, scores


def forecasts(seed=0, n=200):
    rng = np.random.default_rng(seed)
    return np.sort(rng.gamma(3.0, 20.0, (n, len(LEVELS))), axis=1), rng.gamma(3.0, 20.0, n)


def test_the_score_is_scoringrules():
    scoringrules = pytest.importorskip("scoringrules")
    quantiles, truth = forecasts()
    alpha = np.array([0.05, 0.2, 0.5])
    expected = scoringrules.weighted_interval_score(
        truth, quantiles[:, 3], quantiles[:, [0, 1, 2]], quantiles[:, [6, 5, 4]], alpha
    )
    np.testing.assert_allclose(scores(quantiles, truth).wis, expected, rtol=1e-12)


def test_the_parts_add_up_and_none_is_negative():
    found = scores(*forecasts(1))
    parts = (found.dispersion, found.overprediction, found.underprediction)
    assert min(p.min() for p in parts) >= 0.0
    np.testing.assert_allclose(sum(parts), found.wis, rtol=1e-12)


def test_a_point_forecast_scores_its_absolute_error():
    truth = np.array([3.0, 10.0])
    same = np.repeat(np.array([[5.0], [5.0]]), len(LEVELS), axis=1)
    np.testing.assert_allclose(scores(same, truth).wis, [2.0, 5.0])


def test_the_true_quantiles_score_best():
    rng = np.random.default_rng(2)
    truth = rng.normal(100.0, 10.0, 20_000)
    from statistics import NormalDist

    z = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
    means = {}
    for width in (0.5, 1.0, 2.0):
        quantiles = np.tile(100.0 + 10.0 * width * z, (len(truth), 1))
        means[width] = scores(quantiles, truth).wis.mean()
    assert means[1.0] < min(means[0.5], means[2.0])
    calibrated = scores(np.tile(100.0 + 10.0 * z, (len(truth), 1)), truth).covered
    assert calibrated[0.5].mean() == pytest.approx(0.5, abs=0.02)
    assert calibrated[0.95].mean() == pytest.approx(0.95, abs=0.01)


def test_neighbours_that_resemble_each_other_widen_the_interval():
    rng = np.random.default_rng(3)
    steps, ones = 5.0 + np.repeat(rng.normal(size=30), 10), np.ones(300)
    alone = block_bootstrap(steps, ones, block=1)
    blocks = block_bootstrap(steps, ones, block=14)
    assert blocks[1] - blocks[0] > 1.5 * (alone[1] - alone[0])
    with pytest.raises(tt.InputError, match="same length, not empty"):
        block_bootstrap(np.empty(0), np.empty(0))


def test_the_bootstrap_covers_about_what_it_promises():
    rng = np.random.default_rng(4)
    inside = 0
    for seed in range(200):
        mine, theirs = rng.gamma(4.0, 1.0, 60), rng.gamma(4.0, 1.0, 60)
        low, high = block_bootstrap(mine, theirs, draws=400, seed=seed)
        inside += low <= 1.0 <= high
    assert inside / 200 > 0.8


@pytest.mark.parametrize("levels", [[], [0.5, 0.4], [0.1, 0.5], [0.0, 0.5, 1.0], [0.1, 0.6, 0.9]])
def test_levels_have_to_lie_about_the_median(levels):
    with pytest.raises(tt.InputError, match="quantile levels"):
        check_levels(levels)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(tt.InputError, match=r"shape \(3, 2\) do not fit a truth of shape \(3,\)"):
        scores(np.zeros((3, 2)), np.zeros(3))


def test_too_few_days_have_no_bootstrap_interval():
    few = np.array([1.0, 2.0, 3.0, 4.0])
    assert np.isnan(block_bootstrap(few, few)).all()
    assert np.isnan(block_bootstrap(np.ones(9), np.zeros(9))).all()
