"""Surprises: tail probabilities against scipy's distributions, calibration, lists of a step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tensortide as tt
from tensortide.core.losses.standard import (
    Bernoulli,
    Gamma,
    Huber,
    NegativeBinomial,
    Poisson,
    Squared,
)
from tensortide.online.dispersion import Dispersion, tails


@pytest.mark.parametrize("ratio", [1.0, 1.5, 6.0])
def test_tails_of_counts_are_those_of_the_negative_binomial(ratio):
    rng = np.random.default_rng(0)
    mean = rng.gamma(2.0, 5.0, 200)
    x = rng.poisson(mean).astype(float)
    chance, low, high = tails(Poisson(), x, mean, np.full(200, ratio))
    known = stats.poisson(mean)
    if ratio > 1.0:
        known = stats.nbinom(mean / (ratio - 1.0), 1.0 / ratio)
    expected = np.minimum(1.0, 2.0 * np.minimum(known.cdf(x), known.sf(x - 1.0)))
    np.testing.assert_allclose(chance, expected, rtol=1e-8)
    np.testing.assert_array_equal(low, known.ppf(0.025))
    np.testing.assert_array_equal(high, known.ppf(0.975))


def test_tails_of_other_losses_are_those_of_their_distributions():
    rng = np.random.default_rng(1)
    mean, x = rng.gamma(2.0, 5.0, 50), rng.gamma(2.0, 5.0, 50)
    chance, low, high = tails(Gamma(), x, mean, np.full(50, 0.3))
    gamma = stats.gamma(1.0 / 0.3, scale=0.3 * mean)
    np.testing.assert_allclose(chance, 2.0 * np.minimum(gamma.cdf(x), gamma.sf(x)), rtol=1e-8)
    np.testing.assert_allclose(high, gamma.ppf(0.975), rtol=1e-8)
    chance, low, high = tails(Squared(), x, mean, np.full(50, 9.0))
    student = stats.t(5, loc=mean, scale=np.sqrt(0.6 * 9.0))
    np.testing.assert_allclose(chance, 2.0 * np.minimum(student.cdf(x), student.sf(x)), rtol=1e-8)
    np.testing.assert_allclose(low, student.ppf(0.025), rtol=1e-6)
    chance, low, high = tails(Bernoulli(), np.array([1.0, 0.0]), np.array([0.01, 0.3]), np.ones(2))
    np.testing.assert_allclose(chance, [0.01, 0.7])
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [0.0, 1.0])


@pytest.mark.parametrize("loss", [Poisson(), NegativeBinomial(5.0), Squared(), Huber(), Gamma()])
def test_tail_probabilities_are_roughly_uniform_when_the_model_is_right(loss):
    rng = np.random.default_rng(2)
    mean = rng.gamma(3.0, 30.0, 4000)
    if isinstance(loss, Poisson):
        x = rng.poisson(mean).astype(float)
    elif isinstance(loss, NegativeBinomial):
        x = rng.negative_binomial(loss.size, loss.size / (loss.size + mean)).astype(float)
    elif isinstance(loss, Gamma):
        x = rng.gamma(4.0, mean / 4.0)
    else:
        x = mean + rng.standard_t(5, 4000)
    spread = Dispersion()
    for part in np.array_split(np.arange(4000), 20):
        new = np.zeros(len(part), bool)
        spread = spread.after(loss, x[part], mean[part], new)
    chance = tails(loss, x, mean, spread.of(np.zeros(4000, bool)))[0]
    for level in (0.05, 0.2, 0.5):
        assert (chance < level).mean() == pytest.approx(level, abs=0.06)


def stream(seed=0, days=40):
    rng = np.random.default_rng(seed)
    mean = np.einsum("ir,jr,kr->ijk", *(rng.gamma(3.0, 1.0, (n, 2)) for n in (8, 5, days)))
    return rng, mean, rng.poisson(mean).astype(float)


def day_of(x, day):
    cells = np.argwhere(np.ones(x.shape[:2]))
    return {
        "place": np.char.add("p", cells[:, 0].astype(str)), "kind": cells[:, 1],
        "day": np.full(len(cells), day), "n": x[cells[:, 0], cells[:, 1], day],
    }  # fmt: skip


def test_a_value_that_does_not_fit_is_listed_with_what_was_expected():
    _, _, x = stream()
    first = {k: np.concatenate([day_of(x, d)[k] for d in range(20)]) for k in day_of(x, 0)}
    model = tt.OnlineCP(2, "gocpt", loss="poisson", modes=["place", "kind", "day"], value="n")
    model.fit(first)
    quiet = [len(model.update(day_of(x, d)).surprises) for d in range(20, 39)]
    assert np.mean(quiet) < 2.0
    odd = day_of(x, 39)
    odd["n"][7] = 40.0 * x.mean()
    found = model.update(odd).surprises
    assert found[0].value == odd["n"][7]
    assert found[0].cell == {"place": odd["place"][7], "kind": int(odd["kind"][7]), "day": 39}
    assert found[0].low <= found[0].expected <= found[0].high < found[0].value
    assert found[0].probability < 1e-3
    assert found[0].fresh == ["day"]
    assert "expected" in str(found[0])
    assert ", 1 surprise" in str(model.info_)


def test_a_correction_that_does_not_fit_is_called_one():
    _, _, x = stream(1)
    first = {k: np.concatenate([day_of(x, d)[k] for d in range(20)]) for k in day_of(x, 0)}
    model = tt.OnlineCP(2, "gocpt", loss="poisson", modes=["place", "kind", "day"], value="n")
    model.fit(first)
    for day in range(20, 25):
        model.update(day_of(x, day))
    odd = {name: column[:1] for name, column in day_of(x, 10).items()}
    odd["n"] = np.array([60.0 * x.mean()])
    found = model.update(odd).surprises
    assert len(found) == 1
    assert found[0].revised
    assert found[0].fresh == []
    assert "corrected to" in str(found[0])


def test_what_was_experienced_is_saved_with_the_model(tmp_path):
    _, _, x = stream(2)
    model = tt.OnlineCP(2, "gocpte", loss="poisson", modes=["place", "kind", "day"], value="n")
    model.fit({k: np.concatenate([day_of(x, d)[k] for d in range(20)]) for k in day_of(x, 0)})
    for day in range(20, 30):
        model.update(day_of(x, day))
    model.save(tmp_path / "model")
    twin = tt.load(tmp_path / "model")
    odd = day_of(x, 30)
    odd["n"][0] = 500.0
    assert twin.update(odd).surprises == model.update(odd).surprises


def test_one_outlier_does_not_hide_the_next():
    values = np.array([1.0, 2.0, 1.5, 1000.0])
    calm = Dispersion().after(Squared(), values[:3], np.ones(3), np.zeros(3, bool))
    shaken = calm.after(Squared(), values, np.ones(4), np.zeros(4, bool))
    assert shaken.of(np.zeros(1, bool))[0] < 20.0 * calm.of(np.zeros(1, bool))[0]


def counting(method="gocpt", **options):
    _, _, x = stream(3)
    model = tt.OnlineCP(
        2, method, loss="poisson", modes=["place", "kind", "day"], value="n", **options
    )
    model.fit({k: np.concatenate([day_of(x, d)[k] for d in range(20)]) for k in day_of(x, 0)})
    for day in range(20, 26):
        model.update(day_of(x, day))
    return model, x


def test_every_value_can_be_judged_before_it_is_learned():
    model, x = counting()
    odd = day_of(x, 26)
    odd["n"][7] = 30.0 * x.mean()
    before = model.factors_
    table = model.surprise(odd)
    assert table.num_rows == len(odd["n"])
    for a, b in zip(before, model.factors_, strict=True):
        np.testing.assert_array_equal(a, b)
    rows = sorted(table.to_pylist(), key=lambda row: row["probability"])
    found = model.update(odd).surprises[0]
    assert rows[0]["probability"] == found.probability
    assert (rows[0]["value"], rows[0]["low"], rows[0]["high"]) == (
        found.value, found.low, found.high,
    )  # fmt: skip
    assert {name: rows[0][name] for name in found.cell} == found.cell
    assert sum(row["probability"] > 0.05 for row in rows) > 0.8 * len(rows)


def test_increments_are_judged_by_what_they_come_to():
    """With combine='add' one more case is no surprise in a cell that expects a hundred."""
    model, x = counting(combine="add")
    last = {name: column.copy() for name, column in day_of(x, 25).items()}
    more = last | {"n": np.ones(len(last["n"]))}
    table = model.surprise(more)
    np.testing.assert_array_equal(table["value"].to_numpy(), last["n"] + 1.0)
    info = model.update(more)
    assert info.surprises == []
    assert info.prequential_error < 0.6
    taken = {name: column[:1] for name, column in last.items()} | {"n": -np.ones(1)}
    assert model.update(taken).revised == 1  # a total that falls is a count still
    below = taken | {"n": np.array([-1e6])}
    with pytest.raises(tt.InputError, match="takes values from 0 on"):
        model.update(below)


def test_among_many_values_few_are_listed_by_chance():
    rng = np.random.default_rng(4)
    mean = np.einsum("ir,jr->ij", *(rng.gamma(3.0, 2.0, (n, 2)) for n in (150, 40)))
    listed = 0
    model = tt.OnlineCP(2, "gocpt", loss="poisson", modes=["place", "day"], value="n")
    for day in range(40):
        x = rng.poisson(mean[:, day]).astype(float)
        info = model.update({"place": np.arange(150), "day": np.full(150, day), "n": x})
        listed += len(info.surprises) if day > 10 else 0
    assert listed <= 3


def test_a_value_without_weight_neither_surprises_nor_widens():
    _, _, x = stream(5)
    odd = x[:, :, 27].copy()
    odd[3, 2] = 30.0 * x.mean()
    coords = np.column_stack([*(g.ravel() for g in np.indices(odd.shape)), np.full(odd.size, 27)])
    found = []
    for weight in (1.0, 0.0):
        model = tt.OnlineCP(2, "gocpt", loss="poisson").fit(x[:, :, :20])
        for day in range(20, 27):
            model.update(x[:, :, day : day + 1])
        weights = np.ones(odd.size)
        weights[3 * odd.shape[1] + 2] = weight
        info = model.update(tt.Batch(coords, odd.ravel(), weights=weights))
        found.append((len(info.surprises), model._model.dispersion.sums[1]))
    assert found[0][0] == 1
    assert found[1][0] == 0
    assert found[1][1] < found[0][1]


def test_cells_that_are_always_zero_do_not_hide_how_wide_the_others_are():
    """950 places without a case beside 50 whose counts vary ten times as much as Poisson's."""
    rng = np.random.default_rng(6)
    mean = np.concatenate([rng.gamma(5.0, 20.0, 50), np.zeros(950)])
    model = tt.OnlineCP(1, "gocpt", loss="poisson", modes=["place", "day"], value="n")
    listed = 0
    for day in range(25):
        x = np.zeros(1000)
        x[:50] = rng.negative_binomial(mean[:50] / 9.0, 0.1)
        info = model.update({"place": np.arange(1000), "day": np.full(1000, day), "n": x})
        listed += len(info.surprises) if day > 5 else 0
    assert listed <= 4
    assert model._model.dispersion.of(np.array([True]))[0] > 5.0


def test_the_least_likely_value_is_listed_beside_hundreds_of_first_cases():
    rng = np.random.default_rng(7)
    base = np.concatenate([np.full(300, 100.0), np.full(2000, 1e-4)])
    model = tt.OnlineCP(1, "gocpt", loss="poisson", modes=["place", "day"], value="n")
    for day in range(12):
        x = rng.poisson(base).astype(float)
        model.update({"place": np.arange(2300), "day": np.full(2300, day), "n": x})
    x = rng.poisson(base).astype(float)
    x[300:700] = 1.0
    x[0], x[1] = 400.0, 0.0
    batch = {"place": np.arange(2300), "day": np.full(2300, 12), "n": x}
    found = model.update(batch).surprises
    assert {s.cell["place"] for s in found[:2]} == {0, 1}


def test_what_comes_again_unchanged_is_no_news():
    model, x = counting()
    odd = day_of(x, 26)
    odd["n"][7] = 30.0 * x.mean()
    assert len(model.update(odd).surprises) == 1
    spread = model._model.dispersion
    again = model.update(odd)
    assert again.unchanged == len(odd["n"])
    assert again.surprises == []
    np.testing.assert_array_equal(model._model.dispersion.sums, spread.sums)


def test_a_certain_no_that_becomes_yes_is_a_surprise_on_the_first_day():
    x = np.zeros((30, 10))
    x[:15] = 1.0
    model = tt.OnlineCP(
        1, "gocpt", loss="bernoulli", modes=["place", "day"], value="n", prior="paper"
    )  # a learned prior is not that certain after ten days
    p, d = np.meshgrid(np.arange(30), np.arange(10), indexing="ij")
    model.fit({"place": p.ravel(), "day": d.ravel(), "n": x.ravel()})
    day = np.r_[np.ones(15), np.zeros(15)]
    day[20] = 1.0
    found = model.update({"place": np.arange(30), "day": np.full(30, 10), "n": day}).surprises
    assert [s.cell["place"] for s in found] == [20]


def test_modes_may_be_called_as_the_columns_of_a_judgement():
    table = {"low": ["a", "b"] * 4, "value": [1, 1, 2, 2, 3, 3, 4, 4], "n": np.arange(1.0, 9.0)}
    model = tt.OnlineCP(1, "gocpt", modes=["low", "value"], value="n").fit(table)
    rows = model.surprise({"low": ["a"], "value": [4], "n": [9.0]}).to_pylist()
    assert (rows[0]["low"], rows[0]["value"], rows[0]["value_"]) == ("a", 4, 9.0)
    assert rows[0]["low_"] < rows[0]["high"]


def test_a_typo_in_the_first_new_day_is_a_surprise():
    rng = np.random.default_rng(0)

    def day(number: int) -> dict[str, list]:
        return {"place": list("abcde"), "day": [number] * 5, "n": rng.poisson(50.0, 5).tolist()}

    first = [day(k) for k in range(30)]
    model = tt.OnlineCP(1, "gocpte", modes=["place", "day"], value="n", loss="poisson")
    model.fit({name: [v for d in first for v in d[name]] for name in first[0]})
    batch = day(30)
    batch["n"][2] = 5_000
    chance = model.surprise(batch)["probability"].to_pylist()
    assert chance[2] < 1e-6
    assert min(c for k, c in enumerate(chance) if k != 2) > 1e-2
    found = model.update(batch).surprises
    assert [s.cell["place"] for s in found] == ["c"]


def test_without_experience_there_is_no_probability():
    model = tt.OnlineCP(1, "gocpte", modes=["place", "day"], value="n", loss="poisson")
    model.fit({"place": list("ab") * 4, "day": [0, 0, 1, 1, 2, 2, 3, 3], "n": [9] * 8})
    row = model.surprise({"place": ["c"], "day": [4], "n": [70]}).to_pylist()[0]
    assert all(np.isnan(row[name]) for name in ("probability", "low", "high"))


def test_new_places_of_any_size_are_no_surprise_among_each_other():
    rng = np.random.default_rng(5)
    model = tt.OnlineCP(1, "gocpte", modes=["place", "day"], value="n")
    known = rng.normal(50.0, 3.0, (20, 10))
    place, day = (axis.ravel() for axis in np.indices(known.shape))
    model.fit({"place": place, "day": day, "n": known.ravel()})
    sizes = rng.lognormal(3.0, 1.5, 30)
    place, day = (axis.ravel() for axis in np.indices((30, 10)))
    joined = {"place": 100 + place, "day": day, "n": sizes[place] * rng.normal(1.0, 0.05, 300)}
    assert model.update(joined).surprises == []
