"""Fitness on real data; the figures in docs/measurements.md come from `make figures`."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import quality


@pytest.fixture
def here(real_data, monkeypatch):
    monkeypatch.setenv("TENSORTIDE_DATA", str(real_data))


@pytest.mark.real_data
@pytest.mark.parametrize(("method", "least"), [("gocpte", 0.890), ("gocpt", 0.897)])
def test_indian_pines_completion_reaches_the_paper(here, method, least):
    """98 % masked, rank 5, one band a step: average over steps and five seeds."""
    scores = [quality.run("indian_pines", method, seed)[0] for seed in range(5)]
    assert np.mean(scores) >= least


@pytest.mark.real_data
@pytest.mark.parametrize(("method", "every"), [("gocpte", 1), ("gocpt", 20)])
def test_orl_faces_factorization_reaches_the_paper(here, method, every):
    """A complete tensor, rank 5, one shot a step."""
    assert quality.run("orl_faces", method, seed=0, every=every)[0] >= 0.745


def test_fitness_without_the_tensor_equals_fitness_with_it():
    rng = np.random.default_rng(0)
    x, seen = rng.random((5, 6, 7)), rng.random((5, 6, 7)) < 0.3
    factors = [rng.random((n, 2)) for n in (5, 6, 4)]
    y = np.einsum("ar,br,cr->abc", *factors)
    gap, hidden = x[..., :4] - y, ~seen[..., :4]
    assert quality.RunningFitness(x, None)(factors) == pytest.approx(
        1 - np.linalg.norm(gap) / np.linalg.norm(x[..., :4])
    )
    assert quality.RunningFitness(x, seen)(factors) == pytest.approx(
        1 - np.linalg.norm(gap[hidden]) / np.linalg.norm(x[..., :4][hidden])
    )
