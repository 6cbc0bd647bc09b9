"""What rows with learned priors promise: same bits, all or nothing, no raw values, flat work."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tensortide as tt
from tensortide.core.steps.beliefs import FEWEST, Beliefs
from tensortide.core.tensor.packed import FULL_RANK, diagonal_places, unpack
from tensortide.core.updates import exact
from tests.checks import _lines_until
from tests.models import fingerprint
from tests.oracles import loss_value

FIRST, DAYS = 9, 15
WAYS = {
    "history": {"method": "gocpt"},
    "history without fibres": {"method": "gocpt", "fibres": False},
    "imputed": {"method": tt.gocpt(strategy="imputed")},
    "economy": {"method": "gocpte"},
    "economy with fibres": {"method": "gocpte", "fibres": True},
    "zeros": {"method": "gocpt", "absent": "zero"},
    "economy with zeros": {"method": "gocpte", "absent": "zero"},
    "diagonal": {"method": "gocpte", "fibres": True, "rank": FULL_RANK + 1},
    "counts": {"method": "gocpt", "loss": "poisson"},
    "economy with counts": {"method": "gocpte", "loss": "poisson"},
    "counts with zeros": {"method": "gocpte", "loss": "negative_binomial", "absent": "zero"},
    "odds": {"method": "gocpte", "loss": "bernoulli"},
    "outliers": {"method": "gocpt", "loss": "huber"},
    "no negative rows": {"method": "gocpte", "penalties": {0: tt.nonnegative()}},
}
EACH = pytest.mark.parametrize("way", WAYS)


def stream(way="history", seed=0):
    """Batches with holes and weights: a new day, late cells, and twice a new place as well."""
    truth = tt.simulate.low_rank((9, 5, DAYS), 2, seed=seed, noise=0.1)
    rng = np.random.default_rng(seed)
    coords = np.argwhere(rng.random(truth.shape) < 0.7)
    late = rng.random(len(coords)) < 0.1
    comes = np.where(coords[:, 0] < 6, 0, 4 * (coords[:, 0] - 5))  # places 6, 7, 8 come later
    comes = np.maximum(comes, np.maximum(coords[:, 2] - FIRST + 1, 0) + late)
    values, weights = truth.values(coords), rng.choice([0.5, 1.0, 2.0], len(coords))
    suited = {"bernoulli": lambda x: 1.0 * (x > 0.0), "huber": lambda x: x}
    if "loss" in WAYS[way]:
        values = suited.get(WAYS[way]["loss"], lambda x: np.round(3.0 * np.abs(x)))(values)
    return [
        tt.Batch(coords[comes == k], values[comes == k], weights=weights[comes == k])
        for k in range(DAYS - FIRST + 1)
    ]


def model_for(way, **more):
    options = {"rank": 2, "seed": 1} | WAYS[way] | more
    return tt.OnlineCP(options.pop("rank"), options.pop("method"), **options)


def followed(way, steps=None, sweeps=25, **more):
    first, *rest = stream(way)
    model = model_for(way, **more).fit(first, max_sweeps=sweeps)
    for batch in rest[:steps]:
        model.update(batch)
    return model


@EACH
def test_any_number_of_threads_gives_the_same_bits(way, monkeypatch):
    """Blocks are cut into many parts, as those of large steps are."""
    monkeypatch.setattr(exact, "CHUNK_ENTRIES", 16)
    one, *others = (followed(way, 3, 10, threads=n) for n in (1, 2, 5))
    for other in others:
        assert fingerprint(other) == fingerprint(one)


@EACH
def test_a_saved_model_goes_on_as_if_it_had_never_been_away(way, tmp_path):
    first, *rest = stream(way)
    model = model_for(way).fit(first, max_sweeps=25)
    for batch in rest:
        model.save(tmp_path / "model.tide")
        loaded = tt.load(tmp_path / "model.tide")
        assert fingerprint(loaded) == fingerprint(model)
        model.update(batch)
        loaded.update(batch)
        assert fingerprint(loaded) == fingerprint(model)
    cells = stream(way)[0].coords
    np.testing.assert_array_equal(loaded.predict(cells), model.predict(cells))


@EACH
def test_a_step_that_fails_changes_nothing(way):
    model = followed(way, 3)
    before, batch = fingerprint(model), stream(way)[4]
    failed = 0
    for size in (1e300, 1e160, 1e120, 1e90):
        try:
            model.copy().update(tt.Batch(batch.coords, size * batch.values))
        except tt.TensortideError:
            failed += 1
            with pytest.raises(tt.TensortideError):
                model.update(tt.Batch(batch.coords, size * batch.values))
        assert fingerprint(model) == before
    assert failed


@pytest.mark.parametrize("way", ["economy with fibres", "history"])
def test_an_interrupt_leaves_fibres_and_timeline_as_they_were(way):
    model, batch = followed(way, 3), stream(way)[4]
    before = fingerprint(model)
    total = _lines_until(model.copy(), batch, stop_at=-1)
    for stop_at in range(5, total, 23):
        with pytest.raises(KeyboardInterrupt):
            _lines_until(model, batch, stop_at)
        if model.n_steps_ == 5:  # it came after the step was complete
            break
        assert fingerprint(model) == before


# ------------------------------------------------------------------ raw values


def numbers_of(model):
    """All numbers that an economy model keeps."""
    inner = model._model
    parts = [*inner.rows(), *inner.factors.precisions(), *inner.memory.values()]
    if inner.ahead.fibres is not None:
        parts.append(inner.ahead.fibres.numbers)
    return np.concatenate([np.ravel(p) for p in parts])


def given_back(model, coords, values):
    """How many values the state holds: as they are, or as residual of a row product."""
    held = numbers_of(model)
    products = np.prod([f[coords[:, m]] for m, f in enumerate(model._model.rows())], axis=0)
    found = 0
    for x, y in zip(values, products.sum(axis=1), strict=True):
        for secret in (x, x * x, x - y, y - x, (x - y) ** 2):
            found += int(np.isclose(held, secret, rtol=1e-12, atol=0.0).any())
    return found


@pytest.mark.parametrize("fibres", [False, True])
def test_batches_of_one_record_leave_no_raw_value(fibres):
    """Without fibres; with them the last residual and the rows give back the last value."""
    rng = np.random.default_rng(4)
    model = tt.OnlineCP(2, "gocpte", fibres=fibres, seed=1)
    model.fit(100.0 * rng.random((4, 3, 6)), max_sweeps=10)
    found = 0
    for day in range(6, 30):
        coords = np.array([[day % 4, day % 3, day]])
        value = 100.0 * rng.random(1)
        model.update(tt.Batch(coords, value))
        found += given_back(model, coords, value)
    assert (found > 0) == fibres


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_first_data_of_one_record_leave_no_raw_value(loss):
    cell, value = np.array([[0, 0, 0]]), np.array([51.1875])
    model = tt.OnlineCP(1, "gocpte", loss=loss, seed=1).fit(tt.Batch(cell, value))
    assert not given_back(model, cell, value)


def test_a_single_value_among_zeros_is_not_given_back_by_what_is_kept_of_sizes():
    """Cells that are not listed count for the mean square, and hide nothing."""
    cells, values = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]]), np.array([123.456, 0.0, 0.0])
    model = tt.OnlineCP(1, "gocpte", absent="zero", seed=1).fit(tt.Batch(cells, values))
    facts = model._model.memory["facts"]
    for mean_square in facts[[0, 2]] * np.array([[1.0], [1e8]]):
        assert not np.isclose(np.sqrt(mean_square * 27), 123.456, rtol=1e-6).any()


@pytest.mark.parametrize("n_cells", [1, FEWEST - 1, FEWEST])
def test_sums_of_errors_begin_with_several_cells(n_cells):
    """Those of one cell would, with the rows, give its value back; later rows judge for them."""
    rng = np.random.default_rng(3)
    x = rng.random((5, 4, 4))
    seen = np.zeros_like(x, bool)
    seen[..., :2] = True
    seen.reshape(-1, 4)[:n_cells, 2] = True
    cells = np.argwhere(seen)
    model = tt.OnlineCP(2, "gocpte", seed=1).fit(tt.Batch(cells, x[tuple(cells.T)]), max_sweeps=5)
    begun = Beliefs.of_memory(model._model.memory).ahead.any()
    assert begun == (n_cells >= FEWEST)
    few = np.argwhere(np.ones((5, 4), bool))[:n_cells]
    later = np.column_stack([few, np.full(len(few), 3)])
    fresh = tt.OnlineCP(2, "gocpte", seed=1).fit(x[..., :1], max_sweeps=5)
    assert not Beliefs.of_memory(fresh._model.memory).ahead.any()
    fresh.update(tt.Batch(later, x[tuple(later.T)]))
    assert Beliefs.of_memory(fresh._model.memory).ahead.any()
    assert not given_back(fresh, later, x[tuple(later.T)])


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_few_series_have_an_outlook_too(method):
    """Three sensors, hour by hour, from the first hour on: a day's course is found."""
    hours = np.arange(200)
    day = 8.0 * np.sin(2.0 * np.pi * hours / 24.0)
    x = np.array([[1.0], [1.5], [0.7]]) * day + 0.1 * np.random.default_rng(0).normal(size=(3, 200))
    model = tt.OnlineCP(2, method, seed=0).fit(x[:, :1])
    late = [model.update(x[:, hour : hour + 1]) for hour in hours[1:]][-24:]
    missed = np.sqrt(sum(i.missed**2 for i in late) / sum(i.norm**2 for i in late))
    assert missed < 0.4  # as large as the values, if the outlook were the mean


# ------------------------------------------------------------------ work


def test_work_of_a_step_is_flat_while_modes_grow():
    """Rows read, and the memory that a step needs for a while, over two hundred new labels."""
    rng = np.random.default_rng(0)
    model = tt.OnlineCP(3, "gocpte", seed=1).fit(rng.random((20, 20, 20)), max_sweeps=3)
    read, peaks = [], []
    tracemalloc.start()
    try:
        for step in range(200):
            n = 20 + step
            coords = rng.integers(0, n, (60, 3))
            coords[:20, 0] = coords[20:40, 1] = coords[40:, 2] = n  # each mode gains a label
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            info = model.update(tt.Batch(coords, rng.random(60)))
            read.append(info.rows_read - sum(len(np.unique(c[c < n])) for c in coords.T))
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert 0 <= min(read) <= max(read) <= 8 + 4  # what the outlook looks at
    assert np.median(peaks[-50:]) < 1.5 * np.median(peaks[20:70])


# ------------------------------------------------------------------ given factors


@pytest.mark.parametrize("way", [way for way, options in WAYS.items() if "loss" not in options])
def test_given_factors_without_sweeps_stay_and_their_priors_are_learned(way):
    x, rank = tt.simulate.low_rank((6, 5, 10), 2, seed=2, noise=0.2).dense(), 2
    rows = tt.simulate.low_rank((6, 5, 10), 2, seed=2).factors
    if way == "diagonal":
        rank = FULL_RANK + 1
        more = np.random.default_rng(0)
        rows = [np.hstack([f, 0.01 * more.standard_normal((len(f), rank - 2))]) for f in rows]
    cells = np.argwhere(np.ones_like(x))[1:]
    model = model_for(way).fit(tt.Batch(cells, x[tuple(cells.T)]), init=rows, max_sweeps=0)
    for given, kept in zip(rows, model.factors_, strict=True):
        np.testing.assert_array_equal(given, kept)
    beliefs = Beliefs.of_memory(model._model.memory)
    missed = float(((x - model.reconstruct()) ** 2).mean())
    assert 1.01 * missed < beliefs.noise < 2.0 * missed  # with the model's own variance
    for mode, told in enumerate(model._model.factors.precisions()):
        worth = told[:, diagonal_places(rank, told.shape[1])]
        assert (worth > 0.0).all()
        thin = model_for(way).fit(
            tt.Batch(*_half(x, mode)), init=[f[:3] if m == mode else f for m, f in enumerate(rows)],
            max_sweeps=0,
        )  # fmt: skip
        fewer = thin._model.factors.precisions()[(mode + 1) % 3]
        many = model._model.factors.precisions()[(mode + 1) % 3]
        assert _sure(fewer, rank) < _sure(many, rank)  # half the cells, half as sure


@pytest.mark.parametrize("way", [way for way, options in WAYS.items() if "loss" in options])
def test_given_factors_of_other_losses_stay_and_their_priors_are_learned(way):
    """The noise is the mean loss of a cell; of counts, and of yes or no, half a unit at least."""
    first, rng = stream(way)[0], np.random.default_rng(5)
    rows = [rng.random((n, 2)) + 0.2 for n in first.coords.max(axis=0) + 1]
    model = model_for(way).fit(first, init=rows, max_sweeps=0)
    for given, kept in zip(rows, model.factors_, strict=True):
        np.testing.assert_array_equal(given, kept)
    beliefs, name = Beliefs.of_memory(model._model.memory), WAYS[way]["loss"]
    values, weights = dict(zip(map(tuple, first.coords), first.values, strict=True)), first.weights
    every = dict(zip(map(tuple, first.coords), weights, strict=True))
    if "absent" in WAYS[way]:
        every = {c: every.get(c, 1.0) for c in np.ndindex(*model.shape_)}
    y = np.einsum("ir,jr,kr->ijk", *rows)
    losses = [w * loss_value(name, values.get(c, 0.0), y[c]) for c, w in every.items()]
    least = 0.0 if name == "huber" else 0.5
    missed = max(sum(losses) / len(losses), least)
    assert beliefs.noise == pytest.approx(
        missed, rel=0.3 if name in ("huber", "bernoulli") else 1e-6
    )
    for told in model._model.factors.precisions():
        assert (told[:, diagonal_places(2, told.shape[1])] > 0.0).all()


def _half(x, mode):
    some = np.take(x, range(3), axis=mode)
    cells = np.argwhere(np.ones_like(some))
    return cells, some[tuple(cells.T)], some.shape


def _sure(told, rank):
    """What the rows know about the first two components."""
    return float(np.median(told[:, diagonal_places(rank, told.shape[1])[:2]]))


# ------------------------------------------------------------------ zeros, weights, rank


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
@pytest.mark.parametrize("named", [True, False], ids=["names", "numbers"])
def test_listing_the_zeros_changes_nothing_where_absent_cells_are_zero(method, named):
    """From the same factors; zeros judge an outlook as well, whether they are listed or not."""
    rng = np.random.default_rng(6)
    x = np.where(rng.random((6, 5, 12)) < 0.3, rng.random((6, 5, 12)), 0.0)
    x[0, 0] = x[0, :, 0] = x[:, 0, 0] = 0.5  # so that labels come in their order
    x[np.arange(6), np.arange(6) % 5] = 0.7  # and take part every day
    start = [rng.random((n, 2)) for n in (6, 5, 8)]

    def run(cells):
        model = tt.OnlineCP(2, method, absent="zero", modes=["a", "b", "c"], value="x")
        for days in ([*range(8)], [8], [9, 10], [11]):
            some = cells[np.isin(cells[:, 2], days)]
            table = {
                m: [f"{m}{i:02}" for i in some[:, k]] if named else some[:, k]
                for k, m in enumerate("abc")
            }
            table["x"] = x[tuple(some.T)]
            if days[0]:
                model.update(table)
            else:
                model.fit(table, init=start, max_sweeps=0)
        return model

    plain, listed = run(np.argwhere(x)), run(np.argwhere(np.ones_like(x)))
    for a, b in zip(plain.factors_, listed.factors_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    noise = [Beliefs.of_memory(m._model.memory).noise for m in (plain, listed)]
    assert noise[0] == pytest.approx(noise[1], rel=1e-6)


@EACH
def test_weights_of_one_are_no_weights(way):
    models = []
    for weighted in (False, True):
        batches = [
            tt.Batch(b.coords, b.values, weights=np.ones(len(b.values)) if weighted else None)
            for b in stream(way)
        ]
        model = model_for(way).fit(batches[0], max_sweeps=15)
        for batch in batches[1:]:
            model.update(batch)
        models.append(model)
    for a, b in zip(models[0].factors_, models[1].factors_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_another_rank_passes_from_whole_matrices_to_diagonals_and_back():
    """Values stay when components are added, whatever is kept of matrices; steps go on."""
    model = followed("economy", 2, rank=3)
    cells = np.argwhere(np.ones(model.shape_))
    before = model.predict(cells)
    for rank in (FULL_RANK, FULL_RANK + 1):
        model.change_rank(rank)
        width = rank * (rank + 1) // 2 if rank == FULL_RANK else rank
        assert model._model.factors.width == width
        np.testing.assert_allclose(model.predict(cells), before, rtol=1e-9, atol=1e-12)
    model.update(stream()[3])
    model.change_rank(3)
    model.update(stream()[4])
    x = tt.simulate.low_rank((9, 5, DAYS), 2, seed=0).dense()
    cells = np.argwhere(np.ones(model.shape_))
    fit = x[tuple(cells.T)] - model.predict(cells)
    assert np.linalg.norm(fit) < 0.5 * np.linalg.norm(x[tuple(cells.T)])


# ------------------------------------------------------------------ what rows know


@EACH
def test_the_running_sum_of_covariances_is_that_of_all_rows(way):
    """What a step takes away is what an earlier one has added; the rank is such that V is full."""
    model = followed(way)
    inner = model._model
    spread = Beliefs.of_memory(inner.memory).spread
    for mode, told in enumerate(inner.factors.precisions()):
        inverses = [packed_inverse(one, model.rank) for one in told]
        expected = np.sum(inverses, axis=0)
        np.testing.assert_allclose(spread[mode], expected, rtol=1e-6, atol=1e-9 * expected.max())


def packed_inverse(told, rank):
    full = unpack(told, rank)
    inverse = np.linalg.inv(full)
    return np.diag(inverse) if len(told) == rank > 1 else inverse[np.tril_indices(rank)]


@pytest.mark.parametrize("loss", ["squared", "poisson", "negative_binomial", "huber"])
def test_old_days_that_no_cell_tells_of_stay_as_sure_as_they_were(loss):
    """With zeros that have to be looked at all rows take part in a step."""
    rng = np.random.default_rng(2)
    x = rng.poisson(2.0, (6, 5, 30)).astype(float)
    model = tt.OnlineCP(2, "gocpte", loss=loss, absent="zero", seed=0)
    model.fit(x[:, :, :10], max_sweeps=20)
    before = model._model.factors.precisions()[2][:10].copy()
    for day in range(10, 30):
        model.update(tt.Batch(*listed(x, day)))
    np.testing.assert_array_equal(model._model.factors.precisions()[2][:10], before)


def listed(x, day):
    cells = np.argwhere(x[:, :, day : day + 1]) + (0, 0, day)  # noqa: RUF005
    return cells, x[tuple(cells.T)]


def test_cells_without_weight_say_nothing_about_the_noise():
    rng = np.random.default_rng(1)
    x = tt.simulate.low_rank((8, 7, 12), 2, seed=1, noise=0.2).dense()
    seen = rng.random(x.shape) < 0.3
    some, every = np.argwhere(seen), np.argwhere(np.ones_like(x))
    weights = seen[tuple(every.T)].astype(float)
    for method in ("gocpt", "gocpte"):
        for loss in ("squared", "huber"):
            models = [tt.OnlineCP(2, method, loss=loss, seed=0, fibres=False) for _ in range(2)]
            models[0].fit(tt.Batch(some, x[seen], x.shape))
            models[1].fit(tt.Batch(every, x.ravel(), x.shape, weights=weights))
            noise = [Beliefs.of_memory(m._model.memory).noise for m in models]
            assert noise[1] == pytest.approx(noise[0], rel=0.2)  # it was a tenth
