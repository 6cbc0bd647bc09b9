"""What is read from a model: labelled arrays, one scale, views of a run that stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import tensortide as tt
from tests.models import MODES, batches, fingerprint


def labelled(days=(1, 2, 3)):
    values = np.add.outer([1.0, 2.0], np.asarray(days, float)) ** 2
    coords = {"place": ["Kiel", "Ulm"], "day": list(days)}
    return xr.DataArray(values, dims=("place", "day"), coords=coords)


def test_a_labelled_array_keeps_its_dimensions_and_labels():
    array = labelled()
    model = tt.OnlineCP(2).fit(array)
    assert list(model.labels_) == ["place", "day"]
    assert model.labels_["place"].tolist() == ["Kiel", "Ulm"]
    assert model.predict({"place": ["Ulm"], "day": [3]}) == pytest.approx([25.0], rel=1e-3)
    info = model.update(labelled((3, 4)))
    assert (info.new_labels, info.entries) == ({"place": 0, "day": 1}, 4)
    assert model.score(array) > 0.99
    turned = tt.OnlineCP(2, modes=["place", "day"]).fit(array.transpose("day", "place"))
    assert turned.labels_["day"].tolist() == [1, 2, 3]


def test_the_same_cells_as_a_table_give_the_same_bits():
    array = labelled()
    table = {
        "place": np.repeat(["Kiel", "Ulm"], 3), "day": [1, 2, 3] * 2,
        "value": array.to_numpy().ravel(),
    }  # fmt: skip
    assert fingerprint(tt.OnlineCP(1).fit(array)) == fingerprint(tt.OnlineCP(1).fit(table))


def test_holes_of_a_labelled_array_are_missing():
    array = labelled()
    array[0, 1] = np.nan
    model = tt.OnlineCP(1).fit(array)
    assert model.n_entries_ == 5
    mask = np.ones(array.shape)
    mask[0, 1] = mask[1, 2] = 0
    assert tt.OnlineCP(1).fit(array, mask=mask).n_entries_ == 4


def test_dimensions_without_labels_have_positions():
    model = tt.OnlineCP(1).fit(xr.DataArray(np.ones((2, 3)), dims=("a", "b")))
    assert model.labels_["b"].tolist() == [0, 1, 2]


def test_odd_labels_of_an_array_are_refused():
    mixed = xr.DataArray(np.ones((2, 2)), dims=("a", "b"), coords={"a": np.array(["x", 1], object)})
    with pytest.raises(tt.InputError, match="'a'"):
        tt.OnlineCP(1).fit(mixed)
    with pytest.raises(tt.InputError, match="the dimensions a, b, but the modes are a, c"):
        tt.OnlineCP(1, modes=["a", "c"]).fit(xr.DataArray(np.ones((2, 2)), dims=("a", "b")))


def test_labels_of_an_array_stay_in_their_order():
    """Also where the first cells are missing: a box of the model is laid over the array."""
    array = labelled((1, 2, 3, 4, 5))
    array[:, 0] = np.nan
    array[0, 1] = np.nan
    array = array.assign_coords(day=np.datetime64("2026-03-01") + np.arange(5))
    model = tt.OnlineCP(2, prior="paper").fit(array)  # which fits seven cells exactly
    assert np.array_equal(np.array(model.labels_["day"], "M8[D]"), array.day.to_numpy())
    known = ~np.isnan(array.to_numpy())
    box = model.reconstruct()
    assert box.shape == array.shape
    np.testing.assert_allclose(box[known], array.to_numpy()[known], rtol=1e-2)


def test_predictions_and_boxes_are_on_one_scale():
    rng = np.random.default_rng(0)
    yes = (rng.random((6, 5)) < 0.4).astype(float)
    model = tt.OnlineCP(1, loss="bernoulli").fit(yes)
    cells = np.argwhere(np.ones(yes.shape))
    for scale in ("mean", "model"):
        box = model.reconstruct(scale=scale)
        np.testing.assert_allclose(box.ravel(), model.predict(cells, scale=scale), rtol=1e-12)
    share = model.reconstruct()
    assert ((share >= 0) & (share <= 1)).all()
    odds = model.reconstruct(scale="model")
    assert (odds < 0).any()
    np.testing.assert_allclose(share, 1 / (1 + np.exp(-odds)), atol=1e-9)
    with pytest.raises(tt.InputError, match="scale must be"):
        model.predict(cells, scale="log")


def test_partial_fit_is_update():
    one, two = (tt.OnlineCP(2, "gocpte", modes=MODES, value="count") for _ in range(2))
    for table in batches()[:3]:
        one.update(table)
        two.partial_fit(table)
    assert fingerprint(one) == fingerprint(two)


@pytest.mark.parametrize("method", ["gocpte", "gocpt"])
def test_the_model_of_a_run_stays_as_it_was_handed_out(tmp_path, method):
    first, second, third, *_ = batches()
    with tt.Tracker.create(tmp_path / "run", 2, method, modes=MODES, value="count") as run:
        run.ingest(first)
        early, twin = run.model, run.model
        before = fingerprint(early)
        run.ingest(second)
        later = run.model
        run.ingest(third)
        assert fingerprint(early) == fingerprint(twin) == before
        assert (early.n_steps_, later.n_steps_, run.model.n_steps_) == (1, 2, 3)
        run.change_rank(3)
        assert later.factors_[0].shape[1] == 2
        copy = early.copy()
        copy.update(second)
        assert fingerprint(copy) == fingerprint(later)


def test_a_model_that_nobody_holds_costs_no_copy(tmp_path, monkeypatch):
    from tensortide.online.model import Model

    first, second, third, *_ = batches()
    copies = []
    real = Model.copy
    monkeypatch.setattr(Model, "copy", lambda self: copies.append(1) or real(self))
    with tt.Tracker.create(tmp_path / "run", 2, modes=MODES, value="count") as run:
        run.ingest(first)
        run.model.predict({name: first[name] for name in MODES})
        run.ingest(second)
        assert not copies
        held = run.model
        run.ingest(third)
        assert len(copies) == 1
        assert held.n_steps_ == 2


def test_public_types_can_be_written_down():
    def learn(records: tt.TableLike, method: str | tt.Method, loss: tt.Loss, tied: tt.Penalty):
        return tt.OnlineCP(1, method, loss=loss, penalties={"a": tied}).fit(records)

    table = {"a": [1, 2, 1, 2], "b": [1, 1, 2, 2], "value": [1.0, 2.0, 3.0, 4.0]}
    assert learn(table, tt.gocpt(), tt.losses.Poisson(), tt.ridge(0.1)).shape_ == (2, 2)
