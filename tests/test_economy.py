"""An economy step costs what its batch costs and needs no history."""

from __future__ import annotations

import numpy as np
import pytest

import tensortide as tt
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.outlook import RECENT
from tensortide.core.tensor.factors import Factors
from tensortide.data.labels import PositionLabels
from tensortide.data.timeline import USUAL
from tensortide.online.ahead import begun_anew, restored
from tests.models import MODES, batches, fingerprint, fitted


def economy_model(n_rows: int, rank: int = 5) -> tt.OnlineCP:
    """A fitted economy model whose three modes have n_rows rows each."""
    rng = np.random.default_rng(0)
    model = tt.OnlineCP(rank, "gocpte").fit(rng.random((8, 8, 8)), max_sweeps=2)
    inner = model._model
    told = [np.tile(one[:1], (n_rows, 1)) for one in inner.factors.precisions()]
    rows = [rng.random((n_rows, rank)) for _ in range(3)]
    inner.factors = Factors(rows, precisions=told)
    inner.modes.labels = [PositionLabels(n_rows) for _ in range(3)]
    beliefs = begun_anew(Beliefs.of_memory(inner.memory), inner.factors)
    inner.memory = beliefs.as_memory()
    inner.ahead = restored(beliefs, inner.modes, None)
    return model


def test_rows_touched_do_not_depend_on_the_size_of_the_model():
    """The same batch on 3 thousand and on 3 million rows; also with new labels."""
    rng = np.random.default_rng(1)
    coords = rng.integers(0, 900, (1000, 3))
    values = rng.random(1000)
    touched = []
    for n_rows in (1_000, 1_000_000):
        model = economy_model(n_rows)
        info = model.update(tt.Batch(coords, values))
        grown = coords.copy()
        grown[::50, 2] = n_rows + np.arange(20)
        more = model.update(tt.Batch(grown, values))
        touched.append((info.rows_read, info.rows_written, more.rows_read, more.rows_written))
        distinct = sum(len(np.unique(c)) for c in coords.T)
        assert info.rows_read == info.rows_written == distinct
        looked_at = RECENT + 20 * len(USUAL)  # by the outlook of the new labels
        assert 0 <= more.rows_read - (more.rows_written - 20) <= looked_at
    assert touched[0] == touched[1]


def test_rows_touched_are_those_of_the_labels_in_the_batch():
    """The same with named labels, through a table."""
    first, second, *_ = batches()
    model = tt.OnlineCP(2, "gocpte", modes=MODES, value="count").fit(first, max_sweeps=2)
    info = model.update(second)
    labels = sum(len(set(np.asarray(second[m]).tolist())) for m in MODES)
    assert info.rows_written == labels
    known = labels - sum(info.new_labels.values())
    assert known <= info.rows_read <= known + RECENT + len(USUAL)
    model = tt.OnlineCP(2, "gocpte", modes=MODES, value="count", prior="paper")
    assert model.fit(first, max_sweeps=2).update(second).rows_read == known


def test_rows_outside_the_batch_are_not_written():
    model = economy_model(5_000)
    before = model.factors_
    coords = np.random.default_rng(2).integers(0, 5_000, (50, 3))
    model.update(tt.Batch(coords, np.ones(50)))
    for mode, (old, new) in enumerate(zip(before, model.factors_, strict=True)):
        changed = np.flatnonzero((old != new).any(axis=1))
        assert set(changed) <= set(coords[:, mode])
        assert len(changed) > 0


def test_economy_is_never_handed_a_store():
    model = fitted("gocpte")
    assert model._model.store is None
    for batch in batches()[1:]:
        model.update(batch)
        assert model._model.store is None


def test_economy_works_when_reading_any_store_raises(monkeypatch):
    from tensortide.data import store

    def forbidden(*args, **kwargs):
        raise AssertionError("an economy method touched the store")

    for name in ("__init__", "absorb", "append", "without", "retire", "nbytes"):
        monkeypatch.setattr(store.Store, name, forbidden)
    model = fitted("gocpte")
    for batch in batches()[1:4]:
        model.update(batch)
    model.predict({"place": ["p0"], "day": [1], "delay": [0]})
    model.retire("place", ["p5"])
    model.change_rank(3)
    model.copy().update(batches()[4])


def test_saved_economy_state_holds_no_raw_value(tmp_path):
    """No number of the stream is in the file, in whatever form; with history all are."""
    rng = np.random.default_rng(5)
    x = rng.random((7, 6, 12)) * 1e3
    for method, expected in (("gocpte", 0), ("gocpt", x.size)):
        model = tt.OnlineCP(2, method).fit(x[..., :6], max_sweeps=5)
        for t in range(6, 12):
            model.update(x[..., t])
        path = tmp_path / f"{method}.tide"
        model.save(path)
        content = path.read_bytes()
        found = sum(v.tobytes() in content or repr(float(v)).encode() in content for v in x.ravel())
        assert found == expected


def test_state_of_an_economy_model_does_not_grow_with_the_stream(tmp_path):
    model = economy_model(50)
    rng = np.random.default_rng(0)
    sizes = []
    for step in range(60):
        model.update(tt.Batch(rng.integers(0, 50, (200, 3)), rng.random(200)))
        if step in (9, 59):
            model.save(tmp_path / "state.tide")
            sizes.append((tmp_path / "state.tide").stat().st_size)
    assert sizes[1] - sizes[0] < 64  # a counter may get a digit


def test_entries_seen_are_counted_within_the_stated_error():
    model = economy_model(50)
    rng = np.random.default_rng(0)
    cells = set()
    for _ in range(30):
        coords = rng.integers(0, 50, (2_000, 3))
        cells |= set(map(tuple, coords.tolist()))
        model.update(tt.Batch(coords, rng.random(2_000)))
    first = 8 * 8 * 8
    assert model.n_entries_ == pytest.approx(len(cells) + first, rel=0.07)


def test_factors_in_buffers_survive_many_small_growths():
    model = fitted("gocpte")
    for batch in batches()[1:]:
        model.update(batch)
    twin = fitted("gocpte")
    for batch in batches()[1:]:
        twin = twin.copy()  # a copy has exact buffers, so every growth reallocates
        twin.update(batch)
    assert fingerprint(model) == fingerprint(twin)
