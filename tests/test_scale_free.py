"""Values in other units give the same answers in these units: nothing has to be scaled."""

from __future__ import annotations

import numpy as np
import pytest

import tensortide as tt

UNITS = pytest.mark.parametrize("unit", [1e6, 1e-6])
WAYS = pytest.mark.parametrize(
    "options",
    [
        {"method": "gocpt"},
        {"method": "gocpte"},
        {"method": "gocpte", "fibres": True},
        {"method": "gocpt", "absent": "zero"},
        {"method": "gocpte", "absent": "zero"},
        {"method": "gocpte", "rank": 21},  # above which matrices are diagonal
        {"method": tt.gocpt(strategy="imputed")},
    ],
    ids=lambda options: " ".join(map(str, options.values()))[:30].split("(")[0],
)
FIRST, LAST = 8, 14


def holey(seed=0):
    """A tensor with noise, of which a fifth is not seen."""
    truth = tt.simulate.low_rank((6, 5, LAST), 2, seed=seed, noise=0.1)
    seen = np.random.default_rng(seed).random(truth.shape) < 0.8
    return truth.dense(), seen


def batch(x, seen, days):
    coords = np.argwhere(seen)
    coords = coords[np.isin(coords[:, 2], days)]
    return tt.Batch(coords, x[tuple(coords.T)])


def followed(x, seen, *, init=None, sweeps=40, **options):
    """What a model expects of each batch and says after all of them, its noise and its drift."""
    rank = options.pop("rank", 2)
    model = tt.OnlineCP(rank, seed=3, **options)
    model.fit(batch(x, seen, range(FIRST)), init=init, max_sweeps=sweeps)
    missed = []
    for day in range(FIRST, LAST):
        # a late cell of a known day as well
        more = seen & np.isin(np.arange(LAST), [day])
        more[day % 6, 2, day - 4] = True
        coords = np.argwhere(more)
        info = model.update(tt.Batch(coords, x[tuple(coords.T)]))
        missed.append(info.missed)
    cells = np.argwhere(np.ones_like(seen))
    return np.array(missed), model.predict(cells), model._model.memory["facts"][0]


def same_in_units(one, other, unit, rtol=1e-5):
    for got, plain, power in zip(other, one, (1, 1, 2), strict=True):
        expected = np.asarray(plain) * unit**power
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@UNITS
@WAYS
def test_values_in_other_units_give_answers_in_other_units(options, unit):
    x, seen = holey()
    plain = followed(x, seen, **options)
    same_in_units(plain, followed(unit * x, seen, **options), unit)


@UNITS
@pytest.mark.parametrize("sweeps", [0, 40])
@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_a_scale_that_is_moved_from_one_mode_to_another_changes_nothing(method, sweeps, unit):
    """The same model, written in other factors; every component in another way."""
    x, seen = holey()
    start = tt.OnlineCP(2, method, seed=3).fit(x[..., :FIRST], max_sweeps=30).factors_
    moved = [start[0] * [unit, 1.0], start[1] / [unit, 7.0], start[2] * [1.0, 7.0]]
    plain = followed(x, seen, init=start, sweeps=sweeps, method=method)
    same_in_units(plain, followed(x, seen, init=moved, sweeps=sweeps, method=method), 1.0)
    scaled = [moved[0] * unit, *moved[1:]]
    found = followed(unit * x, seen, init=scaled, sweeps=sweeps, method=method)
    same_in_units(plain, found, unit)


@pytest.mark.parametrize("loss", ["poisson", "negative_binomial", "gamma"])
@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_a_scale_that_is_moved_changes_nothing_for_counts_either(method, loss):
    """By component, into a mode that gains labels as well."""
    x = np.random.default_rng(0).poisson(5.0, (6, 5, 12)) + 1.0
    start = [np.random.default_rng(m).random((n, 3)) + 0.5 for m, n in enumerate((6, 5, 8))]
    scale = np.array([1e3, 1.0, 1e-3])
    found = []
    for rows in (start, [start[0] / scale, start[1], start[2] * scale]):
        model = tt.OnlineCP(3, method, loss=loss, seed=0)
        model.fit(x[:, :, :8], init=rows, max_sweeps=30, tol=0.0)
        for day in range(8, 12):
            model.update(x[:, :, day : day + 1])
        found.append(model.reconstruct())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
