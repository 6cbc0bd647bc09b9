"""What anybody would try first is not better: last values, means, effects of labels.

Streams are simulated, every choice is the default one, and each rival is named.
"""

from __future__ import annotations

import numpy as np
import pytest

import tensortide as tt

FIRST, DAYS = 30, 80


def loadings(rng, days):
    """A tensor of places x kinds x days, with noise."""
    x = np.einsum("ir,jr,tr->ijt", rng.random((8, 3)), rng.random((5, 3)), days)
    return x + 0.07 * x.std() * rng.standard_normal(x.shape)


def weekly(rng):
    t = np.arange(DAYS)
    walk = 1.0 + 0.03 * np.cumsum(rng.standard_normal(DAYS))
    week = 2.0 * np.pi * t / 7.0
    return loadings(rng, np.column_stack([walk, 1.0 + np.sin(week), 1.0 + 0.5 * np.cos(week)]))


def wandering(rng):
    return loadings(rng, 2.0 + np.cumsum(0.15 * rng.standard_normal((DAYS, 3)), axis=0))


def trendless(rng):
    return loadings(rng, rng.random((DAYS, 3)))


def relative(found, x):
    return float(np.linalg.norm(found - x) / np.linalg.norm(x))


def rivals(x):
    """Errors on the days to come: last value, a week ago, mean of eight, mean of all."""
    ahead, days = x[..., FIRST:], range(FIRST, DAYS)
    return {
        "last": relative(x[..., FIRST - 1 : -1], ahead),
        "week": relative(x[..., FIRST - 7 : -7], ahead),
        "eight": relative(np.stack([x[..., t - 8 : t].mean(-1) for t in days], -1), ahead),
        "mean": relative(np.stack([x[..., :t].mean(-1) for t in days], -1), ahead),
    }


def error_ahead(x, method, **options):
    model = tt.OnlineCP(3, method, seed=0, **options).fit(x[..., :FIRST], max_sweeps=60)
    steps = [model.update(x[..., t]) for t in range(FIRST, DAYS)]
    return float(np.sqrt(sum(s.missed**2 for s in steps) / sum(s.norm**2 for s in steps)))


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
@pytest.mark.parametrize(
    ("make", "worse", "share"),
    [(weekly, ("last", "eight", "mean"), 0.5), (wandering, ("week", "mean"), 0.7),
     (trendless, ("last", "week"), 0.9)],
)  # fmt: skip
def test_a_new_label_is_not_predicted_by_the_mean_row(make, worse, share, method):
    """At most 3 % above the best of four in hindsight, and far below those that do not fit."""
    x = make(np.random.default_rng(5))
    simple, found = rivals(x), error_ahead(x, method)
    assert found < 1.03 * min(simple.values())
    for rival in worse:
        assert found < share * simple[rival]
    mean_row = error_ahead(x, "gocpte", prior="paper")
    assert mean_row == pytest.approx(simple["mean"], rel=0.05)


def additive(coords, values, asked, shape):
    """Mean and effects of all labels, drawn to zero as if each had two cells more."""
    mean, effects = values.mean(), [np.zeros(n) for n in shape]
    for _ in range(10):
        for mode, own in enumerate(effects):
            at = coords[:, mode]
            other = sum(e[coords[:, m]] for m, e in enumerate(effects) if m != mode)
            sums = np.bincount(at, values - mean - other, len(own))
            own[:] = sums / (np.bincount(at, minlength=len(own)) + 2.0)
    return mean + sum(e[asked[:, m]] for m, e in enumerate(effects))


def test_sparse_ratings_are_not_overfitted():
    """Of 120 people x 60 things one cell in 70 is seen; rank 5; held-out cells."""
    rng, shape = np.random.default_rng(1), (120, 60, 8)
    effects = [
        size * rng.standard_normal(n) for size, n in zip((0.5, 0.5, 0.05), shape, strict=True)
    ]
    x = 3.5 + np.add.outer(np.add.outer(*effects[:2]), effects[2])
    x += 0.4 * rng.standard_normal(shape)
    drawn = rng.random(shape)
    cells, held = np.argwhere(drawn < 0.015), np.argwhere(drawn > 0.985)
    truth = x[tuple(held.T)]
    error = {"effects": relative(additive(cells, x[tuple(cells.T)], held, shape), truth)}
    for method in ("gocpt", "gocpte"):
        for prior in ("learned", "paper"):
            model = tt.OnlineCP(5, method, prior=prior, seed=0)
            for step in ([0, 1, 2, 3], [4], [5], [6], [7]):
                some = cells[np.isin(cells[:, 2], step)]
                batch = tt.Batch(some, x[tuple(some.T)], (*shape[:2], step[-1] + 1))
                (model.update if step[0] else model.fit)(batch)
            error[method, prior] = relative(model.predict(held), truth)
    for method in ("gocpt", "gocpte"):
        assert error[method, "learned"] < 1.02 * error["effects"]
        assert error[method, "paper"] > 2.0 * error["effects"]  # what the ridge alone makes of it


def test_economy_with_counts_comes_near_the_whole_history():
    """Final divergence of Poisson counts with zeros: within a twentieth of full history's."""
    truth = tt.simulate.low_rank((20, 12, 30), 3, seed=2, kind="nonnegative").dense(clean=True)
    x = np.random.default_rng(1).poisson(20.0 * truth / truth.mean()).astype(float)
    found = {}
    for method in ("gocpt", "gocpte"):
        model = tt.OnlineCP(3, method, loss="poisson", absent="zero", seed=0)
        model.fit(x[..., :15], max_sweeps=60)
        for t in range(15, 30):
            model.update(x[..., t])
        y = np.maximum(model.reconstruct(), 1e-9)
        found[method] = (y - x + np.where(x > 0.0, x * np.log(np.maximum(x, 1.0) / y), 0.0)).sum()
    assert found["gocpte"] < 1.05 * found["gocpt"]


def poisson_counts(seed, rate, shape):
    """Counts of a model of two components: their means, and a draw."""
    rng = np.random.default_rng(seed)
    mean = rate * np.einsum("ir,jr,kr->ijk", *(rng.gamma(1.0, 1.0, (n, 2)) for n in shape))
    return mean, rng.poisson(mean).astype(float)


def error_of_means(mean, x, first, **options):
    """Learn counts day by day; the relative error of the means of all cells in the end."""
    zero = options.get("absent") == "zero"
    model = tt.OnlineCP(2, loss="poisson", seed=0, **options)
    for begin, end in [(0, first), *((t, t + 1) for t in range(first, x.shape[2]))]:
        part = x[:, :, begin:end]
        cells = np.argwhere(part > 0.0 if zero else np.ones_like(part))
        days = np.add(cells, (0, 0, begin))
        batch = tt.Batch(days, part[tuple(cells.T)], (*x.shape[:2], end))
        (model.update if begin else model.fit)(batch)
    return relative(model.predict(np.argwhere(np.ones_like(mean))).reshape(mean.shape), mean)


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
@pytest.mark.parametrize("absent", ["missing", "zero"])
@pytest.mark.parametrize("rate", [0.3, 2.0])
def test_counts_with_learned_priors_are_as_near_their_means_as_with_the_paper_prior(
    method, absent, rate
):
    """Defaults, over three seeds; a memory of listed counts alone would be too large by far."""
    found = {"learned": 0.0, "paper": 0.0}
    for seed in (2, 3, 5):
        mean, x = poisson_counts(seed, rate, (20, 15, 30))
        for prior in found:
            found[prior] += error_of_means(mean, x, 18, method=method, absent=absent, prior=prior)
    assert found["learned"] < 1.05 * found["paper"]


def test_rare_counts_keep_their_components():
    """Of 200 x 50 x 20 cells one in 200 is one: what is small is not taken for nothing."""
    rng = np.random.default_rng(1)
    shape, mean = (200, 50, 20), np.zeros((200, 50, 20))
    mean[:100, :25] = mean[100:, 25:] = 0.01
    x = rng.poisson(mean).astype(float)
    assert 0.003 < (x > 0.0).mean() < 0.007
    cells = np.argwhere(x)
    batch = tt.Batch(cells, x[tuple(cells.T)], shape)
    model = tt.OnlineCP(2, "gocpt", loss="poisson", absent="zero", seed=0).fit(batch)
    assert relative(model.reconstruct(), mean) < 0.5


def test_beta_may_change_over_time():
    """A schedule gives each step its own ridge, as if that number had been given."""
    x = tt.simulate.low_rank((6, 5, 9), 2, seed=0, noise=0.1).dense()

    def rule(now: tt.Circumstances) -> float:
        return 1e-5 if now.step < 1 else 0.01 * now.step

    model = tt.OnlineCP(2, tt.gocpte(beta=rule), prior="paper").fit(x[..., :6], max_sweeps=10)
    plain = tt.OnlineCP(2, tt.gocpte(beta=1e-5), prior="paper").fit(x[..., :6], max_sweeps=10)
    np.testing.assert_array_equal(model.factors_[0], plain.factors_[0])
    for step in (1, 2):
        method = tt.gocpte(beta=0.01 * step)
        known = x[..., : 5 + step]
        other = tt.OnlineCP(2, method, prior="paper")
        other.fit(known, init=model.factors_, max_sweeps=0)
        other.update(x[..., 5 + step])
        model.update(x[..., 5 + step])
        for a, b in zip(model.factors_, other.factors_, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_components_that_cancel_do_not_grow_in_long_streams():
    """Hourly values of 5 sensors x 3 quantities, of very different sizes: rank 5 is too much."""
    rng, hours = np.random.default_rng(1), np.arange(420)
    day = np.sin(2.0 * np.pi * (hours - 8) / 24.0)
    x = np.empty((5, 3, len(hours)))
    for j, (level, swing) in enumerate([(21.0, 4.0), (48.0, -9.0), (1013.0, 1.5)]):
        for i in range(5):
            noise = 0.1 * abs(swing) * rng.standard_normal(len(hours))
            x[i, j] = level + swing * ((0.7 + 0.15 * i) * day + 0.2 * i) + noise
    model = tt.OnlineCP(5, "gocpt", seed=0).fit(x[..., :24])
    for hour in hours[24:]:
        model.update(x[..., hour])
    sizes = np.prod([np.sqrt((rows**2).mean(axis=0)) for rows in model.factors_], axis=0)
    assert sizes.max() < 3.0 * np.sqrt((x**2).mean())
