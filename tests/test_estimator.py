"""The public face: fit, update, predict, score, components, rank, retirement, params."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import sklearn.base
import tensorly

import tensortide as tt
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.factors import Factors
from tensortide.data.store import Store
from tensortide.online.components import normalised
from tests.models import MODES, batches, fingerprint, fitted, same_factors, stream, unreported_cell

METHODS = ["gocpt", "gocpte"]


@pytest.mark.parametrize("method", METHODS)
def test_a_noiseless_low_rank_stream_is_recovered(method):
    truth = tt.simulate.low_rank((15, 14, 40), 3, seed=2)
    run = tt.simulate.growth(truth, start=0.3, observed=0.5, seed=2)
    model = tt.OnlineCP(3, method)
    for batch in run:
        model.update(batch)
    dense = truth.dense()
    assert 1 - np.linalg.norm(model.reconstruct() - dense) / np.linalg.norm(dense) > 0.999
    assert model.shape_ == (15, 14, 40)
    assert model.n_steps_ == len(run)
    assert model.n_entries_ == len(run.coords)


@pytest.mark.parametrize(("kind", "sign"), [("uniform", 1), ("uniform", -1), ("normal", 1)])
def test_preparation_recovers_sparse_tensors_of_either_sign(kind, sign):
    for seed in range(4):
        truth = tt.simulate.low_rank((40, 40, 40), 3, kind=kind, noise=0.1, seed=seed)
        batch = next(iter(tt.simulate.growth(truth, start=1.0, observed=0.1, seed=seed)))
        model = tt.OnlineCP(3, seed=seed).fit(tt.Batch(batch.coords, sign * batch.values))
        assert model.score(sign * truth.dense(clean=True)) > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_several_modes_grow_in_one_batch(method):
    truth = tt.simulate.low_rank((20, 18, 16), 2, seed=4)
    run = list(tt.simulate.growth(truth, modes=[0, 1, 2], start=0.5, observed=0.7, seed=4))
    for prior, fitness in (("paper", 0.99), ("learned", 0.98)):
        model = tt.OnlineCP(2, method, prior=prior).fit(run[0])
        for batch in run[1:]:
            info = model.update(batch)
        assert model.shape_ == truth.shape
        assert model.score(truth.dense()) > fitness
    assert info.grown == len(run[-1])


def test_absent_zero_learns_a_sparse_count_tensor():
    rng = np.random.default_rng(0)
    factors = [rng.gamma(0.3, 1.0, (n, 2)) for n in (12, 10, 14)]
    dense = np.rint(20 * np.einsum("ar,br,cr->abc", *factors))
    assert 0.5 < (dense == 0).mean() < 0.95
    for method in METHODS:
        model = tt.OnlineCP(4, method, absent="zero")
        for t in range(7, 15):
            part = dense[:, :, :t] if t == 7 else dense[:, :, t - 1 : t]
            coords = np.argwhere(part)
            coords[:, 2] += 0 if t == 7 else t - 1
            shape = (12, 10, t)
            model.update(tt.Batch(coords, part[part != 0], shape=shape))
        assert model.score(dense) > 0.9
        assert model.info_.strategy == "zero-filled"


@pytest.mark.parametrize("method", METHODS)
def test_order_two_to_five_and_modes_of_size_one(method):
    rng = np.random.default_rng(0)
    for shape in [(5, 6), (5, 1, 6), (3, 4, 2, 5), (2, 3, 2, 3, 4)]:
        factors = [rng.random((n, 1)) for n in shape]
        letters = "abcde"[: len(shape)]
        x = np.einsum(",".join(f"{c}r" for c in letters) + "->" + letters, *factors)
        model = tt.OnlineCP(1, method).fit(x[..., :-1])
        model.update(x[..., -1])  # one slice, without its mode
        assert model.score(x) > 0.999


def test_array_slices_may_be_appended_along_any_mode():
    x = tt.simulate.low_rank((8, 9, 7), 2, seed=1).dense()
    model = tt.OnlineCP(2, "gocpt").fit(x[:5])
    model.update(x[5:], mode=0)
    assert model.shape_ == (8, 9, 7)
    assert model.score(x) > 0.99


def test_nan_and_mask_mark_the_same_cells_as_missing():
    x = tt.simulate.low_rank((8, 9, 7), 2, seed=1).dense()
    mask = tt.simulate.random_mask(x.shape, 0.6, seed=3)
    one = tt.OnlineCP(2).fit(np.where(mask, x, np.nan))
    two = tt.OnlineCP(2).fit(x, mask=mask)
    same_factors(one, two)
    assert one.n_entries_ == mask.sum()
    assert one.score(np.where(mask, x, np.nan)) == two.score(x, mask=mask)


def test_info_tells_growth_filling_and_revision():
    model = fitted("gocpt")
    known = {k: np.asarray(v)[:4] for k, v in batches()[0].items()}
    hole = unreported_cell()
    records = {
        "place": [*known["place"], hole[0], "new"],
        "day": [*known["day"], hole[1], 0],
        "delay": [*known["delay"], hole[2], 0],
        "count": [*(known["count"][:3] + 1.0), known["count"][3], 2.0, 1.0],
    }
    info = model.update(records)
    assert (info.grown, info.filled, info.revised, info.unchanged) == (1, 1, 3, 1)
    assert info.new_labels == {"place": 1, "day": 0, "delay": 0}
    assert info.entries == 6
    assert info.prequential_error > 0
    assert "revised" in str(info)
    economy = fitted("gocpte").update(records)
    assert (economy.grown, economy.in_old_box, economy.filled) == (1, 5, None)


def test_combine_add_adds_to_known_values():
    kwargs = {"modes": ["a", "b"], "value": "n"}
    first = {"a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2], "n": [1.0, 2.0, 3.0, 4.0]}
    more = {"a": ["x"], "b": [1], "n": [5.0]}
    added = tt.OnlineCP(1, combine="add", **kwargs).fit(first)
    added.update(more)
    replaced = tt.OnlineCP(1, **kwargs).fit(first)
    replaced.update(more | {"n": [6.0]})
    same_factors(added, replaced)


def test_duplicates_count_needs_no_values():
    events = {"a": ["x", "x", "y", "x"], "b": [1, 1, 1, 2]}
    model = tt.OnlineCP(1, duplicates="count", modes=["a", "b"]).fit(events)
    store = model._model.store.entries
    assert store.orders[0].values.tolist() == [2.0, 1.0, 1.0]
    assert model.info_.duplicates == 1


def stored(model) -> dict:
    """What the store holds, by label."""
    entries, modes = model._model.store.entries, model._model.modes
    cells = entries.coords().tolist()
    labels = [tuple(m.label(i) for m, i in zip(modes.labels, c, strict=True)) for c in cells]
    return dict(zip(labels, entries.orders[0].values.tolist(), strict=True))


def test_retracting_equals_never_having_seen():
    _, second, *_ = batches()
    cells = {m: np.asarray(second[m])[:3] for m in MODES}
    one = fitted("gocpt")
    one.update(second)
    info = one.update(retract={m: [*v, v[0]] for m, v in cells.items()})
    assert info.retracted == 3
    two = fitted("gocpt")
    two.update({k: np.asarray(v)[3:] for k, v in second.items()})
    assert stored(one) == stored(two)


def test_prequential_error_is_of_predictions_made_before_learning():
    model = fitted("gocpte")
    known = {"place": ["p0", "p3"], "day": [2, 5], "delay": [1, 0]}
    expected = model.predict(known)
    info = model.copy().update(known | {"count": [2.0, 3.0]})
    gap = np.array([2.0, 3.0]) - expected
    assert info.prequential_error == pytest.approx(np.linalg.norm(gap) / np.sqrt(13.0))
    # a new label is predicted with the mean row of its mode
    rows = [
        f[list(model.labels_[m]).index(v)]
        for m, v, f in zip(MODES[1:], (2, 1), model.factors_[1:], strict=True)
    ]
    unseen = (model.factors_[0].mean(axis=0) * rows[0] * rows[1]).sum()
    info = model.update({"place": ["new"], "day": [2], "delay": [1], "count": [4.0]})
    assert info.prequential_error == pytest.approx(abs(4.0 - unseen) / 4.0)


def test_score_combines_duplicates_as_the_model_does():
    events = {"a": ["x", "x", "y", "y", "y"], "b": [1, 2, 1, 2, 2], "value": [1.0, 2, 3, 4, 5]}
    for rule in ("sum", "mean", "last", "count"):
        model = tt.OnlineCP(2, modes=["a", "b"], duplicates=rule).fit(events)
        assert model.score(events) > 0.99


def test_an_hourly_stream_passes_midnight():
    for hours in ([22, 23, 24, 25], [0, 1, 2, 3], [24, 25, 26]):
        times = [dt.datetime(2026, 1, 1) + dt.timedelta(hours=h) for h in hours]
        model = tt.OnlineCP(1, "gocpte", modes=["a", "t"])
        for time in times:
            model.update({"a": ["x", "y"], "t": [time, time], "value": [1.0, 2.0]})
        assert model.labels_["t"].tolist() == times


def test_times_with_a_zone_are_kept_apart_and_survive_a_file(tmp_path):
    zone = dt.timezone(dt.timedelta(hours=2))
    times = [dt.datetime(2026, 1, 1, h, tzinfo=zone) for h in (5, 6)]
    records = {"a": ["x", "x"], "t": times, "value": [1.0, 2.0]}
    model = tt.OnlineCP(1, modes=["a", "t"]).fit(records)
    model.save(tmp_path / "m")
    loaded = tt.load(tmp_path / "m")
    same = [t.astimezone(dt.UTC) for t in times]
    assert loaded.update(records | {"t": same}).new_labels == {"a": 0, "t": 0}
    with pytest.raises(tt.InputError, match="datetime UTC labels"):
        loaded.update(records | {"t": [t.replace(tzinfo=None) for t in times]})


def test_labels_handed_out_are_taken_back():
    days = [dt.date(2026, 1, d) for d in (1, 2, 3)]
    records = {"a": ["x", "y", "x"], "day": days, "value": [1.0, 2.0, 3.0]}
    model = tt.OnlineCP(1).fit(records)
    assert model.reconstruct({"day": model.labels_["day"][:2]}).shape == (2, 2)
    model.retire("day", model.labels_["day"][:1])
    assert model.labels_["day"].tolist() == days[1:]


def test_repeated_values_of_a_dictionary_column_are_one_label():
    column = pa.DictionaryArray.from_arrays([0, 1, 2], ["x", "x", "y"])
    model = tt.OnlineCP(1).fit({"a": column, "b": [1, 2, 3], "value": [1.0, 2.0, 3.0]})
    assert model.labels_["a"].tolist() == ["x", "y"]
    model.copy()


def test_masked_arrays_are_missing_where_they_are_masked():
    x = np.ma.masked_array(np.ones((3, 3)), mask=np.eye(3))
    assert tt.OnlineCP(1).fit(x).n_entries_ == 6


def test_parameters_set_later_wait_for_the_next_fit(tmp_path):
    model = fitted("gocpte")
    twin = fitted("gocpte")
    model.set_params(method="gocpt", absent="zero", duplicates="count", value="other")
    assert model.update(batches()[1]).strategy == twin.update(batches()[1]).strategy
    assert fingerprint(model) == fingerprint(twin)
    model.save(tmp_path / "m")
    loaded = tt.load(tmp_path / "m")
    assert loaded.method.name == "gocpte"
    loaded.update(batches()[2])
    twin.update(batches()[2])
    assert fingerprint(loaded) == fingerprint(twin)


def test_weights_with_absent_zeros_do_not_spoil_new_rows():
    x = tt.simulate.low_rank((8, 7, 12), 2, seed=1).dense()
    for method in METHODS:
        model = tt.OnlineCP(2, method, absent="zero").fit(x[..., :8])
        for t in range(8, 12):
            coords = np.argwhere(np.ones((8, 7, 1))) + np.array([0, 0, t])
            values = x[..., t].ravel()
            model.update(tt.Batch(coords, values, weights=np.full(56, 100.0)))
        assert model.score(x) > 0.99


def test_rank_raised_twice_gets_two_different_components():
    model = fitted()
    model.change_rank(3)
    model.change_rank(4)
    for factor in model.factors_[:2]:  # in the mode that is taken for time they are zero
        a, b = factor[:, 2], factor[:, 3]
        assert abs(a @ b) < 0.95 * np.linalg.norm(a) * np.linalg.norm(b)


def test_signs_of_components_are_fixed():
    rows = [np.array([[-3.0], [1.0]]), np.array([[2.0], [-4.0]]), np.array([[1.0], [2.0]])]
    weights, factors = normalised(rows)
    assert weights[0] > 0
    for factor in factors[:-1]:
        assert factor[np.abs(factor[:, 0]).argmax(), 0] > 0
    np.testing.assert_allclose(
        weights[0] * np.einsum("ar,br,cr->abc", *factors), np.einsum("ar,br,cr->abc", *rows)
    )


def test_prepared_components_have_the_same_norm_in_every_mode():
    norms = np.array([np.linalg.norm(f, axis=0) for f in fitted().factors_])
    np.testing.assert_allclose(norms, np.broadcast_to(norms[0], norms.shape), rtol=1e-10)


def test_the_size_of_the_mode_that_grew_last_stays_in_force():
    first, second, *_ = list(stream())
    seen = []
    method = tt.gocpte(alpha=lambda now: seen.append(now.growing) or 0.1)
    model = tt.OnlineCP(2, method, prior="paper").fit(first, max_sweeps=3)
    model.update(tt.Batch([[6, 0, 0]], [1.0]))  # mode 0 grows to 7
    model.update(tt.Batch([[0, 0, 0]], [1.0]))  # nothing grows
    model.update(second)  # mode 1 grows to 11
    assert seen == [7, 7, 11]


def test_rows_without_entries_are_prepared_at_the_mean_of_the_others():
    x = tt.simulate.low_rank((5, 6, 4), 2, seed=0).dense()
    batch = tt.Batch.from_array(x)
    for prior, close in (("paper", 1e-10), ("learned", 1e-3)):  # the mean of the sweep before
        model = tt.OnlineCP(2, prior=prior)
        model.fit(tt.Batch(batch.coords, batch.values, shape=(7, 6, 4)))
        factor = model.factors_[0]
        np.testing.assert_allclose(factor[5], factor[:5].mean(axis=0), rtol=close)
        np.testing.assert_array_equal(factor[5], factor[6])


def test_retired_labels_are_gone_and_may_come_back_as_new():
    for method in METHODS:
        model = fitted(method)
        before = model.predict({"place": ["p1"], "day": [2], "delay": [0]})
        n_before = model.n_entries_
        model.retire("place", ["p0"])
        assert "p0" not in model.labels_["place"]
        assert model.shape_[0] == 5
        np.testing.assert_array_equal(
            model.predict({"place": ["p1"], "day": [2], "delay": [0]}), before
        )
        assert model.n_entries_ == pytest.approx(n_before * 5 / 6, rel=0.1)
        info = model.update(batches()[1])
        assert info.new_labels["place"] == 1


def test_predict_keeps_the_order_and_answers_unknown_labels():
    model = fitted()
    cells = {"place": ["p3", "p0", "p3"], "day": [1, 5, 1], "delay": [0, 2, 0]}
    values = model.predict(cells)
    assert values[0] == values[2]
    assert values[1] == model.predict({k: v[1:2] for k, v in cells.items()})[0]
    with pytest.raises(tt.InputError, match="mode 'place' has no label 'nowhere'"):
        model.predict(cells | {"place": ["p3", "nowhere", "p3"]})
    some = model.predict(cells | {"place": ["p3", "nowhere", "p3"]}, unknown="nan")
    assert np.isnan(some).tolist() == [False, True, False]
    positions = np.array([[3, 1, 0]])
    dates = model.labels_
    cell = {m: [dates[m][p]] for m, p in zip(MODES, positions[0], strict=True)}
    assert model.predict(positions)[0] == model.predict(cell)[0]


def test_dates_given_as_timestamps_or_dates_are_the_same_labels():
    days = [dt.date(2026, 1, d) for d in (1, 2, 3)]
    first = {
        "a": ["x", "y", "x", "y", "x", "y"],
        "day": [days[0]] * 2 + [days[1]] * 2 + [days[2]] * 2,
        "value": [1.0, 2.0, 2.0, 4.0, 3.0, 6.0],
    }
    model = tt.OnlineCP(1, modes=["a", "day"]).fit(first)
    stamp = {"a": ["y"], "day": [dt.datetime(2026, 1, 2)]}
    assert model.predict(stamp) == model.predict({"a": ["y"], "day": [days[1]]})


def test_components_are_sorted_normalised_and_rebuild_the_model():
    model = fitted()
    table = model.components(top=100)
    assert table.column_names == ["component", "weight", "mode", "label", "loading"]
    weights = [w for _, w in sorted({(r["component"], r["weight"]) for r in table.to_pylist()})]
    assert weights == sorted(weights, reverse=True)
    rebuild = np.zeros(model.shape_)
    for component, weight in enumerate(weights):
        vectors = []
        for mode, name in enumerate(MODES):
            mine = {
                r["label"]: r["loading"]
                for r in table.to_pylist()
                if r["component"] == component and r["mode"] == name
            }
            vectors.append(np.array([mine[str(x)] for x in model.labels_[name]]))
            assert np.linalg.norm(vectors[mode]) == pytest.approx(1.0)
        rebuild += weight * np.einsum("a,b,c->abc", *vectors)
    np.testing.assert_allclose(rebuild, model.reconstruct(), rtol=1e-9, atol=1e-9)
    assert model.components(top=1).num_rows == 2 * 3


def test_reconstruct_takes_labels_and_refuses_huge_boxes():
    model = fitted()
    part = model.reconstruct({"place": ["p2", "p0"]})
    np.testing.assert_array_equal(part, model.reconstruct()[[2, 0]])
    with pytest.raises(tt.InputError, match=r"6 x 10 x 3 has 180 cells"):
        model.reconstruct(max_cells=100)
    with pytest.raises(tt.InputError, match="no label 'p99'"):
        model.reconstruct({"place": ["p99"]})


def test_rank_goes_up_without_a_jump_and_then_learns():
    truth = tt.simulate.low_rank((12, 11, 30), 4, seed=3)
    run = list(tt.simulate.growth(truth, start=0.5, observed=0.9, seed=3))
    for method, prior in product(METHODS, ("paper", "learned")):
        model = tt.OnlineCP(2, method, prior=prior).fit(run[0])
        before, fit = model.reconstruct(), model.score(run[0])
        assert model.change_rank(4) == 0.0
        np.testing.assert_allclose(model.reconstruct(), before, rtol=1e-10, atol=1e-10)
        assert model.rank == 4
        for batch in run[1:]:
            model.update(batch)
        # of old days an economy model with learned priors knows that they had nothing of it
        assert model.score(truth.dense()) > fit + (0.01 if prior == "paper" else 0.0)


def test_rank_goes_down_and_says_what_was_lost():
    model = fitted()
    before = model.reconstruct()
    lost = model.change_rank(1)
    after = model.reconstruct()
    assert lost == pytest.approx(np.linalg.norm(before - after) / np.linalg.norm(before), rel=1e-6)
    assert 0 < lost < 1
    model.update(batches()[1])


def test_copies_are_independent():
    for method in METHODS:
        model = fitted(method)
        twin = model.copy()
        state = fingerprint(model)
        assert fingerprint(twin) == state
        twin.update(batches()[1])
        assert fingerprint(model) == state
        model.update(batches()[1])
        assert fingerprint(model) == fingerprint(twin)


def test_reading_changes_nothing():
    model = fitted("gocpte")
    state = fingerprint(model)
    first = batches()[0]
    model.predict({m: first[m] for m in MODES})
    model.score(first)
    model.components()
    model.reconstruct()
    model.to_xarray()
    repr(model)
    model.factors_[0][:] = 0.0
    assert fingerprint(model) == state


def test_scikit_learn_clone_and_params():
    model = tt.OnlineCP(3, tt.gocpte(sweeps=2), modes=["a", "b"], seed=7)
    twin = sklearn.base.clone(model)
    assert twin.get_params() == model.get_params()
    twin.set_params(rank=4, absent="zero")
    assert (twin.rank, model.rank) == (4, 3)
    with pytest.raises(tt.InputError, match="no parameter 'ranks'"):
        twin.set_params(ranks=1)
    with pytest.raises(tt.InputError, match="rank must be"):
        twin.set_params(rank=0)
    assert twin.rank == 4


def test_factors_are_what_tensorly_takes():
    model = fitted()
    dense = tensorly.cp_to_tensor(tensorly.cp_tensor.CPTensor(model.to_cp_tensor()))
    np.testing.assert_allclose(dense, model.reconstruct(), rtol=1e-10, atol=1e-10)


def test_xarray_is_indexed_by_labels():
    model = fitted()
    data = model.to_xarray()
    row = data["place_factor"].sel(place="p4").to_numpy()
    np.testing.assert_array_equal(row, model.factors_[0][list(model.labels_["place"]).index("p4")])


@pytest.mark.parametrize("method", METHODS)
def test_same_records_and_seed_give_the_same_bits(method):
    runs = []
    for _ in range(2):
        model = fitted(method, seed=5)
        for batch in batches()[1:]:
            model.update(batch)
        runs.append(fingerprint(model))
    assert runs[0] == runs[1]


def test_several_starts_keep_the_best():
    """With as many sweeps as a trial has, the result is the lowest of the single starts."""
    first = batches()[0]
    options = {"modes": MODES, "value": "count"}
    rng = np.random.default_rng(3)
    single = [
        tt.OnlineCP(4, **options, seed=rng).fit(first, starts=1, max_sweeps=2, tol=0.0)
        for _ in range(6)
    ]
    several = tt.OnlineCP(4, **options, seed=np.random.default_rng(3))
    several.fit(first, starts=6, max_sweeps=2, tol=0.0)
    objectives = [model.info_.objective for model in single]
    assert several.info_.objective == min(objectives)
    assert objectives[-1] != min(objectives) != objectives[0]


def test_forgetting_follows_a_drifting_stream_better():
    truth = tt.simulate.low_rank((15, 12, 80), 2, drift=4.0, seed=1)
    run = list(tt.simulate.growth(truth, start=0.2, observed=0.6, seed=1))
    last = truth.dense()[:, :, -5:]
    scores = {}
    for forgetting in (1.0, 0.8):
        model = tt.OnlineCP(2, tt.gocpt(forgetting=forgetting)).fit(run[0])
        for batch in run[1:]:
            model.update(batch)
        scores[forgetting] = 1 - (
            np.linalg.norm(model.reconstruct()[:, :, -5:] - last) / np.linalg.norm(last)
        )
    assert scores[0.8] > scores[1.0]


def test_alpha_may_be_a_number_a_rule_a_schedule_or_any_function():
    first, second, *_ = list(stream())
    seen = []

    def mine(now: tt.Circumstances) -> float:
        seen.append(now)
        return 0.125

    for alpha, expected in [
        (0.5, 0.5),
        (tt.density(2), None),
        (tt.per_size(22), 22 / 11),
        (tt.per_size(200, cap=1), 1.0),
        (mine, 0.125),
    ]:
        model = tt.OnlineCP(2, tt.gocpte(alpha=alpha), prior="paper").fit(first, max_sweeps=3)
        info = model.update(second)
        density = len(first) / (6 * 10 * 3)
        assert info.alpha == pytest.approx(2 * density if expected is None else expected)
    assert seen[0].growing == 11
    assert seen[0].old_shape == (6, 10, 3)
    method = tt.gocpte(alpha=0.5, forgetting=0.9)
    faded = tt.OnlineCP(2, method, prior="paper").fit(first, max_sweeps=3)
    assert faded.update(second).alpha == pytest.approx(0.45)


def test_auto_chooses_by_density_and_says_so():
    x = tt.simulate.low_rank((6, 5, 8), 2, seed=0).dense()
    full = tt.OnlineCP(2, "gocpt").fit(x[..., :6])
    assert full.info_.strategy == "imputed"
    assert full.update(x[..., 6]).strategy == "imputed"
    economy = tt.OnlineCP(2, "gocpte").fit(x[..., :6])
    assert economy.update(x[..., 6]).strategy == "slices"  # complete, so no imputation at all
    assert fitted("gocpt").update(batches()[1]).strategy == "rows"


def test_new_labels_that_only_meet_each_other_do_not_start_at_zero():
    model = fitted("gocpte")
    info = model.update({"place": ["a new place"], "day": [999], "delay": [0], "count": [3.0]})
    assert info.new_labels == {"place": 1, "day": 1, "delay": 0}
    cell = {"place": ["a new place"], "day": [999], "delay": [0]}
    assert model.predict(cell)[0] == pytest.approx(3.0, abs=0.2)
    assert all(np.abs(f[-1]).max() > 0 for f in model.factors_[:2])


def test_a_declared_shape_makes_rows_without_entries():
    x = tt.simulate.low_rank((5, 6, 4), 2, seed=0)
    batch = next(iter(tt.simulate.growth(x, start=1.0)))
    for method in METHODS:
        model = tt.OnlineCP(2, method).fit(tt.Batch(batch.coords, batch.values, shape=(7, 6, 4)))
        assert model.shape_ == (7, 6, 4)
        info = model.update(tt.Batch(np.empty((0, 3), int), [], shape=(7, 8, 4)))
        assert info.new_labels["mode_1"] == 2
        assert np.isfinite(model.reconstruct()).all()
        assert (np.abs(model.factors_[1][-1]) > 0).any()


@pytest.mark.parametrize("method", METHODS)
def test_new_labels_with_few_entries_are_solved_alike_at_any_scale(method):
    """Fewer entries than components: huge values must not turn rounding into information."""
    truth = tt.simulate.low_rank((30, 30, 40), 5, seed=3)
    run = list(tt.simulate.growth(truth, start=0.75, seed=3))
    predictions = []
    for scale in (1.0, 1e9):
        model = tt.OnlineCP(5, method, prior="paper")
        model.fit(tt.Batch(run[0].coords, run[0].values), max_sweeps=200)
        inner = model._model
        inner.factors = Factors([np.cbrt(scale) * rows for rows in inner.rows()])
        if inner.store is not None:
            orders = tuple(replace(o, values=scale * o.values) for o in inner.store.entries.orders)
            inner.store = Store(Entries(orders, inner.store.entries.shape))
        for batch in run[1:]:
            few = np.arange(3) * 200
            model.update(tt.Batch(batch.coords[few], scale * batch.values[few], shape=batch.shape))
        predictions.append(model.reconstruct()[..., 30:] / scale)
    np.testing.assert_allclose(predictions[1], predictions[0], rtol=0.02, atol=0.02)


def test_update_before_fit_prepares():
    model = tt.OnlineCP(2, modes=MODES, value="count")
    info = model.update(batches()[0])
    assert info.step == 1
    assert info.converged is not None
