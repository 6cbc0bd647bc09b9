"""A stream whose first days are all zero: the first values that are not begin the model anew."""

from __future__ import annotations

import numpy as np
import pytest

import tensortide as tt
from tensortide.core.updates import exact
from tests.checks import _lines_until
from tests.models import fingerprint
from tests.test_promises import given_back

SHAPE, ZERO_DAYS, DAYS = (6, 5), 4, 16
WAYS = {
    "history": {"method": "gocpt"},
    "history with zeros": {"method": "gocpt", "absent": "zero"},
    "imputed": {"method": tt.gocpt(strategy="imputed")},
    "economy": {"method": "gocpte"},
    "economy with fibres": {"method": "gocpte", "fibres": True},
    "economy with zeros": {"method": "gocpte", "absent": "zero"},
    "outliers": {"method": "gocpte", "loss": "huber"},
    "no negative rows": {"method": "gocpt", "penalties": {0: tt.nonnegative()}},
}
EACH = pytest.mark.parametrize("way", WAYS)


def truth():
    return np.abs(tt.simulate.low_rank((*SHAPE, DAYS), 1, seed=0, noise=0.1).dense())


def batches(scale=1.0, holes=0.2, weights=None, seed=1):
    """Days of zeros together, one more, then a day at a time: values with holes."""
    x, rng = truth() * scale, np.random.default_rng(seed)
    x[..., :ZERO_DAYS] = 0.0
    cells = np.argwhere(rng.random(x.shape) >= holes)
    found = []
    for days in (range(ZERO_DAYS - 1), *([day] for day in range(ZERO_DAYS - 1, DAYS))):
        mine = cells[np.isin(cells[:, 2], days)]
        given = None if weights is None else rng.choice(weights, len(mine))
        found.append(tt.Batch(mine, x[tuple(mine.T)], weights=given))
    return found


def begun(way, steps, *, scale=1.0, holes=0.2, weights=None, **more):
    options = {"seed": 1} | WAYS[way] | more
    if options.get("loss") == "huber":
        options["loss"] = tt.losses.Huber(scale)
    model = tt.OnlineCP(1, options.pop("method"), **options)
    first, *rest = batches(scale, holes, weights)
    model.fit(first)
    for batch in rest[:steps]:
        model.update(batch)
    return model


def missed(model, scale=1.0):
    """The relative error on the days that are not zero, of all cells."""
    cells = np.argwhere(np.ones((*SHAPE, DAYS), bool))
    cells = cells[cells[:, 2] >= ZERO_DAYS]
    x = truth()[tuple(cells.T)]
    return np.linalg.norm(model.predict(cells) / scale - x) / np.linalg.norm(x)


@EACH
@pytest.mark.parametrize("weights", [None, [0.0, 0.5, 2.0]])
def test_zeros_are_modelled_as_zero_and_can_be_left_again(way, weights):
    model = begun(way, 1, weights=weights)
    assert np.abs(model.reconstruct()).max() == 0.0
    model = begun(way, None, weights=weights)
    # where what is absent means zero, a fifth of the cells says so; imputing learns slowly
    assert missed(model) < (0.65 if "zero" in way else 0.3 if way == "imputed" else 0.15)


@EACH
def test_the_unit_of_values_does_not_matter(way):
    small, plain, large = (missed(begun(way, None, scale=s), s) for s in (1e-6, 1.0, 1e6))
    assert small == pytest.approx(plain, rel=1e-6)
    assert large == pytest.approx(plain, rel=1e-6)


@EACH
def test_the_new_beginning_is_a_step_like_any_other(way, monkeypatch, tmp_path):
    """The same bits with threads and after a file; a failure leaves the zeros as they were."""
    monkeypatch.setattr(exact, "CHUNK_ENTRIES", 16)
    batch = batches()[2]
    plain = begun(way, 1)
    plain.save(tmp_path / "model.tide")
    loaded, before = tt.load(tmp_path / "model.tide"), fingerprint(plain)
    with pytest.raises(tt.TensortideError):
        plain.update(tt.Batch(batch.coords, 1e300 * batch.values))
    assert fingerprint(plain) == before
    others = [loaded, *(begun(way, 1, threads=n) for n in (2, 5))]
    for model in (plain, *others):
        model.update(batch)
    for other in others:
        assert fingerprint(other) == fingerprint(plain)


@pytest.mark.parametrize("way", ["economy with fibres", "history"])
def test_an_interrupt_leaves_the_zeros(way):
    model, batch = begun(way, 1), batches()[2]
    before = fingerprint(model)
    total = _lines_until(model.copy(), batch, stop_at=-1)
    for stop_at in range(5, total, total // 15):
        with pytest.raises(KeyboardInterrupt):
            _lines_until(model, batch, stop_at)
        if model.n_steps_ == 3:  # it came after the step was complete
            break
        assert fingerprint(model) == before


@EACH
@pytest.mark.parametrize("n_cells", [1, 3])
def test_few_values_after_zeros_are_taken_whatever_the_rank(way, n_cells):
    """They cannot tell components apart: no refusal, and a mean that is drawn to zero."""
    options = {"seed": 1} | WAYS[way] | {"fibres": False}
    model = tt.OnlineCP(4, options.pop("method"), **options)
    model.fit(tt.Batch(np.argwhere(np.ones((4, 3, 3))), np.zeros(36)))
    for day in range(3, 12):
        cells = np.array([[(day + k) % 4, k % 3, day] for k in range(n_cells)])
        model.update(tt.Batch(cells, np.full(n_cells, 5.0)))
        found = model.predict(cells)
        assert np.isfinite(found).all()
        assert (found >= -1.0).all()
        assert (found <= 7.5).all()


def test_without_history_one_value_after_zeros_is_not_kept():
    model = tt.OnlineCP(2, "gocpte", seed=1).fit(np.zeros((4, 3, 5)))
    cell, value = np.array([[1, 2, 5]]), np.array([7.25])
    model.update(tt.Batch(cell, value))
    assert not given_back(model, cell, value)


def test_equal_values_are_no_zeros():
    """A model that begins with one value everywhere goes on from it as from any other."""
    model = tt.OnlineCP(1, "gocpte", loss="huber", seed=1).fit(np.full((4, 3, 5), 5.0))
    assert not model._model.blank
    assert model.score(np.full((4, 3, 5), 5.0)) > 0.99


#: Times the largest count, by rank: five components are more than such data can tell apart.
MOST = {1: 10.0, 2: 10.0, 5: 5e3}


@pytest.mark.parametrize("rank", MOST)
@pytest.mark.parametrize("loss", ["poisson", "negative_binomial"])
def test_counts_that_begin_with_zeros_stay_in_their_range(loss, rank):
    """Rows that have seen zeros alone would have to grow from nothing, and none with measure."""
    for seed in range(1, 6):
        rng = np.random.default_rng(seed)
        rates = np.outer(rng.random(5) + 0.1, rng.random(4) + 0.1) * 8.0
        model = tt.OnlineCP(rank, "gocpte", loss=loss, seed=seed).fit(np.zeros((5, 4, 3)))
        largest = 0.0
        for day in range(3, 10):
            cells = np.argwhere(rng.random((5, 4, 1)) < 0.4)
            counts = rng.poisson(rates[tuple(cells[:, :2].T)]).astype(float)
            cells[:, 2], largest = day, max(largest, counts.max())
            model.update(tt.Batch(cells, counts))
            every = model.predict(np.argwhere(np.ones(model.shape_)))
            assert every.max() < MOST[rank] * (largest + 1.0)
