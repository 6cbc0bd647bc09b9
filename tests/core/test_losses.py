"""Losses: derivatives against central differences, perfect fits, positive weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.losses.custom import Custom
from tensortide.core.losses.standard import LOSSES, check_loss_values, loss_for
from tensortide.errors import InputError
from tests import oracles

EVERY = sorted(LOSSES)


def example(name: str, rng: np.random.Generator, size: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Entries and model values where a loss is defined."""
    loss = loss_for(name)
    y = rng.gamma(2.0, 1.0, size) + 0.05 if loss.positive else rng.normal(0.0, 2.0, size)
    if name == "bernoulli":
        return rng.integers(0, 2, size).astype(float), y
    if name == "gamma":
        return rng.gamma(2.0, 1.0, size) + 0.05, y
    if loss.positive:
        return rng.poisson(1.5, size).astype(float), y
    return rng.normal(0.0, 2.0, size), y


@pytest.mark.parametrize("name", EVERY)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_slopes_and_curvatures_equal_central_differences(name, seed):
    loss = loss_for(name)
    x, y = example(name, np.random.default_rng(seed))
    if name == "huber":  # the curvature jumps at the distance delta
        x, y = x[np.abs(np.abs(x - y) - 1.0) > 1e-3], y[np.abs(np.abs(x - y) - 1.0) > 1e-3]
    step = 1e-5 * np.maximum(np.abs(y), 0.1)
    slope = (loss.value(x, y + step) - loss.value(x, y - step)) / (2.0 * step)
    np.testing.assert_allclose(loss.slope(x, y), slope, rtol=1e-5, atol=1e-5)
    bend = (loss.slope(x, y + step) - loss.slope(x, y - step)) / (2.0 * step)
    np.testing.assert_allclose(loss.curvature(x, y), bend, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_values_are_the_textbook_ones(name):
    x, y = example(name, np.random.default_rng(3))
    expected = [oracles.loss_value(name, a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(loss_for(name).value(x, y), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_a_loss_is_never_negative_and_its_weight_is_positive(name):
    loss = loss_for(name)
    x, y = example(name, np.random.default_rng(4), 500)
    assert (loss.value(x, y) >= -1e-12).all()
    assert (loss.weight(x, y) > 0.0).all()
    if name != "bernoulli":
        perfect = np.abs(x)
        assert np.abs(loss.value(perfect, perfect)).max() < 1e-8
        assert (loss.value(x, y) >= loss.value(np.abs(x), np.abs(x)) - 1e-8).all()


def test_the_negative_binomial_comes_close_to_poisson_when_its_size_is_large():
    x, y = example("poisson", np.random.default_rng(5))
    near = loss_for("negative_binomial").__class__(1e9)
    np.testing.assert_allclose(near.value(x, y), loss_for("poisson").value(x, y), atol=1e-5)


def test_a_loss_of_ones_own_needs_value_and_slope_only():
    loss = Custom(lambda x, y: (x - y) ** 4, lambda x, y: 4.0 * (y - x) ** 3)
    assert loss_for(loss) is loss
    np.testing.assert_allclose(loss.weight(np.zeros(3), np.ones(3)), 12.0, rtol=1e-3)
    assert loss.weight(np.ones(1), np.ones(1))[0] > 0.0  # also where it is flat
    bent = Custom(loss.value, loss.slope, lambda x, y: 12.0 * (y - x) ** 2)
    assert bent.weight(np.zeros(1), np.array([2.0])).tolist() == [48.0]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("poisson", -1.0, "takes values from 0 on"),
        ("gamma", 0.0, "takes values above 0"),
        ("bernoulli", 2.0, "takes values from 0 to 1"),
        ("negative_binomial", -0.5, "takes values from 0 on"),
    ],
)
def test_values_outside_a_loss_are_refused_with_the_first_of_them(name, value, words):
    with pytest.raises(InputError, match=words) as error:
        check_loss_values(loss_for(name), np.array([1.0, value, 0.5]))
    assert f"1 of 3 are not, the first is {value:g}" in str(error.value)


def test_an_unknown_loss_is_named_with_those_that_exist():
    with pytest.raises(InputError, match="'squared', 'poisson'.*not 'poison'"):
        loss_for("poison")
    with pytest.raises(InputError, match="size must be larger than 0"):
        LOSSES["negative_binomial"](0.0)
    with pytest.raises(InputError, match="delta must be larger than 0"):
        LOSSES["huber"](0.0)
