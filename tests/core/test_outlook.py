"""The outlook equals its equations: candidates, weights, what is expected, what is remembered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.steps.beliefs import BLENDED, FEWEST, MEMORIES, Beliefs
from tensortide.core.steps.change import Coming, News
from tensortide.core.steps.look_back import Past, find_period, look_back
from tensortide.core.steps.outlook import PLAIN, RECENT, Neighbours, mix, mix_jointly, stable
from tests import oracles_believed as slow
from tests import oracles_outlook as ahead
from tests.believers import assert_same, beliefs_of, factors_of, run_believed, some_rows, storing
from tests.engines import change_of
from tests.strategies import growing_tensors

KINDS = pytest.mark.parametrize("kind", ["whole", "diagonal"])
ECONOMY = pytest.mark.parametrize("economy", [False, True], ids=["history", "economy"])
SEASONS = (2, 3)
N = PLAIN + len(SEASONS)


def neighbours(numbers, which):
    """What comes before some labels, as the package has it."""
    recent = np.full((len(which), RECENT), -1)
    ago = np.full((len(which), len(SEASONS)), -1)
    for k, i in enumerate(which):
        near, seasons = ahead.before(numbers, i, SEASONS)
        recent[k, : len(near)] = near
        ago[k] = [-1 if at is None else at for at in seasons]
    return Neighbours(recent, ago)


@given(n=st.integers(1, 14), seed=st.integers(0, 999))
def test_candidates_are_rows_before_in_the_order_of_labels(n, seed):
    rng = np.random.default_rng(seed)
    numbers, rows = rng.permutation(n + 3)[:n], rng.standard_normal((n, 2))
    mean = rng.standard_normal(2)
    found = neighbours(numbers, range(n))
    every = found.candidates(rows, mean)
    for i in range(n):
        expected = ahead.candidates(numbers, i, SEASONS, rows.__getitem__, mean)
        np.testing.assert_allclose(every[i], expected, rtol=1e-12)
        assert found.only(i).candidates(rows, mean).tobytes() == every[i].tobytes()


def errors(rng, cells, n, near=0.0):
    """Errors of candidates, of which all but one are near to another where `near` is large."""
    common = rng.standard_normal((cells, 1))
    return near * common + rng.standard_normal((cells, n)) * 10.0 ** rng.uniform(-1, 1, n)


@given(
    n=st.integers(1, 7), cells=st.integers(1, 30), seed=st.integers(0, 999),
    near=st.sampled_from([0.0, 1.0, 10.0]), size=st.sampled_from([1e-12, 1.0, 1e12]),
)  # fmt: skip
def test_weights_are_the_best_on_the_simplex(n, cells, seed, near, size):
    rng = np.random.default_rng(seed)
    e = errors(rng, cells, n, near)
    gram, allowed = size * (e.T @ e), rng.random(n) < 0.7
    allowed[-1] = True
    for which in (None, allowed):
        weights = mix(gram, which)
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0.0).all()
        assert which is None or not weights[~which].any()
        least = ahead.best_on_simplex(gram, which)
        usual = float(gram.diagonal().mean())
        assert weights @ gram @ weights <= least * (1 + 1e-9) + 2e-6 * usual


def test_candidates_that_may_not_be_used_get_no_weight():
    """Even where they were the best."""
    assert mix(np.diag([4.0, 1.0]), np.array([True, False])).tolist() == [1.0, 0.0]
    found = mix(np.diag([1.0, 4.0, 4.0]), np.array([False, True, True]))
    np.testing.assert_allclose(found, [0.0, 0.5, 0.5])
    np.testing.assert_allclose(mix(np.full((3, 3), 2.0)), np.full(3, 1 / 3))


def test_without_experience_the_mean_has_all_weight():
    assert mix(np.zeros((3, 3))).tolist() == [1.0, 0.0, 0.0]
    assert mix(np.full((2, 2), np.nan)).tolist() == [1.0, 0.0]
    rows = [np.ones((4, 2)), np.ones((3, 2))]
    beliefs = beliefs_of(some_rows(rows), factors_of(some_rows(rows)))
    begun = replace(beliefs, known=np.zeros((2 + MEMORIES,) * 2))
    shares, recalling = begun.weights_known()
    assert shares.tolist() == [1.0, 0.0]
    assert recalling.tolist() == [1.0, 0.0, 0.0, 0.0]


@given(n=st.integers(1, 6), cells=st.integers(1, 30), seed=st.integers(0, 999))
def test_memories_never_make_the_past_worse(n, cells, seed):
    """Errors of weights that are best together: at most those of the best ones alone."""
    rng = np.random.default_rng(seed)
    missed, kept = errors(rng, cells, n), errors(rng, cells, MEMORIES)
    kept[:, 0] = 0.0
    both = np.hstack([missed, kept])
    weights, recalling = mix_jointly(both.T @ both, n)
    assert weights.sum() == pytest.approx(1.0)
    assert recalling.sum() == pytest.approx(1.0)
    found = ((missed @ weights - kept @ recalling) ** 2).sum()
    alone = ahead.best_on_simplex(missed.T @ missed)
    assert found <= alone * (1 + 1e-5) + 1e-7 * (both**2).sum()
    left = (missed @ weights)[:, None] - kept  # the memories are the best for these weights
    assert found <= ahead.best_on_simplex(left.T @ left) * (1 + 1e-5) + 1e-7 * (both**2).sum()


@KINDS
@settings(max_examples=40)
@given(seed=st.integers(0, 999), memories=st.booleans(), n=st.integers(1, 12))
def test_looking_back_judges_the_outlook_label_by_label(kind, seed, memories, n):
    rng = np.random.default_rng(seed)
    shape, mode = (3, n, 2), 1
    numbers = rng.permutation(n + 2)[:n]
    cells = np.argwhere(rng.random(shape) < 0.7)
    values = rng.standard_normal(len(cells))
    recalled = rng.standard_normal((len(cells), MEMORIES if memories else 0))
    with storing(kind) as keep:
        rows = some_rows([rng.standard_normal((k, 2)) for k in shape], seed, keep=keep)
        factors = factors_of(rows)
        order = np.argsort(numbers)
        past = Past(mode=mode, positions=order, before=neighbours(numbers, order))
        found = look_back(beliefs_of(rows, factors), factors, past, cells, values, recalled)
    first, means = max(2, min(8, n // 2)), rows.means
    gram, seen = np.zeros((N + recalled.shape[1],) * 2), []
    for k in range(first, n):
        mean = means[mode][order[:k]].mean(axis=0)
        row = ahead.candidates(numbers, order[k], SEASONS, means[mode].__getitem__, mean)
        mine = np.flatnonzero(cells[:, mode] == order[k])
        missed = [
            [*(values[e] - ahead.value(means, cells[e], mode, c) for c in row), *recalled[e]]
            for e in mine
        ]
        gram = ahead.faded(gram, missed, 0.98)
        seen.append((order[k], row))
    if np.isin(cells[:, mode], order[first:]).sum() < FEWEST:  # one alone would give itself away
        gram[:] = 0.0
    weights = mix(gram[:N, :N], stable(N))
    moments = []
    for i, row in seen:
        gap = means[mode][i] - weights @ row
        moments.append(np.outer(gap, gap) + rows.covariance(mode, i))
    drift = sum(moments) / max(len(moments), 1)
    np.testing.assert_allclose(found.ahead, gram, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.drift, drift + np.zeros((2, 2)), rtol=1e-5, atol=1e-6)
    assert found.n_drift == len(moments)
    assert found.known.shape == ((2 + MEMORIES,) * 2 if memories else (0, 0))


@given(lag=st.integers(2, 9), repeats=st.integers(3, 6), seed=st.integers(0, 99))
def test_a_season_is_found_where_rows_return(lag, repeats, seed):
    rng = np.random.default_rng(seed)
    one = rng.standard_normal((lag, 3))
    one[0] += 5.0  # of no shorter period
    rows = np.tile(one, (repeats, 1)) + 1e-3 * rng.standard_normal((lag * repeats, 3))
    assert find_period(rows, np.eye(3)) % lag == 0
    drifting = np.cumsum(1.0 + rng.random((lag * repeats, 3)), axis=0)
    assert find_period(drifting, np.eye(3)) is None


class Expected:
    """A batch with an outlook: the change for the package, and what the oracle makes of it."""

    def __init__(self, case, rows, seed, *, economy, memories):
        rng = np.random.default_rng(seed)
        self.case, self.rows, self.economy = case, rows, economy
        self.mode = mode = seed % len(case.new_shape)
        old, new = case.old_shape[mode], case.new_shape[mode]
        self.numbers = rng.permutation(new + 2)[:new]
        self.fresh = sorted(range(old, new), key=self.numbers.__getitem__)
        self.known = sorted({int(c[mode]) for c in case.data if c[mode] < old}) if memories else []
        lined = [i for i in range(new) if len(ahead.before(self.numbers, i, SEASONS)[0]) > 1]
        lined = [] if economy else lined
        change = change_of(case, economy=economy, weighted=True)
        touched = change.positions[mode]
        here = np.arange(new) if touched is None else touched
        self.cells = np.array(
            [[p[i] if p is not None else i for p, i in zip(change.positions, c, strict=True)]
             for c in change.arrived]
        )  # fmt: skip
        self.values, self.weights = np.array([case.data[tuple(c)] for c in self.cells.tolist()]).T
        n_memories = MEMORIES if memories else 0
        self.recalled = rng.standard_normal((len(self.values), n_memories))
        self.recalled[:, :1] = 0.0
        self.plain = rng.standard_normal((len(self.values), 2 if memories else 0))
        self.plain[rng.random(len(self.values)) < 0.3] = np.nan  # fibres that have no value yet
        self.live = rng.random(len(self.values)) < 0.8
        news = News(
            values=self.values, weights=self.weights, live=self.live, recalled=self.recalled,
            plain=self.plain,
        )  # fmt: skip
        coming = Coming(
            mode=mode, fresh=here.searchsorted(self.fresh),
            neighbours=neighbours(self.numbers, self.fresh),
            known=here.searchsorted(self.known), beside=neighbours(self.numbers, self.known),
            line=np.array(lined, np.int64), along=neighbours(self.numbers, lined),
        )  # fmt: skip
        self.change = replace(change, coming=coming, news=news)
        self.beliefs = self._beliefs(rng, n_memories)
        self.mean = rows.means[mode].mean(axis=0)

    def _beliefs(self, rng, n_memories):
        """Some experience; at times none, as in the beginning."""
        rank = self.rows.means[0].shape[1]
        begun = beliefs_of(self.rows, factors_of(self.rows))
        missed = errors(rng, 20, N + n_memories)
        known = errors(rng, 20, 2 + n_memories) if n_memories else np.zeros((0, 0))
        answers = [errors(rng, 20, BLENDED) for _ in range(2 if n_memories else 0)]
        blend = np.array([e.T @ e for e in answers]).reshape(-1, BLENDED, BLENDED)
        experience = rng.random() < 0.7
        drift = rng.standard_normal((rank, rank + 2))
        return replace(
            begun, timeline=self.mode, periods=SEASONS, ahead=experience * (missed.T @ missed),
            known=experience * (known.T @ known), drift=experience * (drift @ drift.T),
            n_drift=49.0 * experience, blend=experience * blend,
        )  # fmt: skip

    def predicted(self):
        """What is expected of each cell."""
        mode, means = self.mode, self._with_new(self.rows.means)
        weights, recalling = self.beliefs.weights_ahead()
        new, found = ahead.look(self.numbers, self.fresh, SEASONS, means[mode], self.mean, weights)
        self.found, self.looked = found, new
        for i, row in new.items():
            means[mode][i] = row
        self.missed_ahead = [
            [*(x - ahead.value(means, c, mode, one) for one in found[c[mode]]), *r]
            for c, x, r, live in zip(self.cells, self.values, self.recalled, self.live, strict=True)
            if live and c[mode] in new
        ]
        expected = np.array([ahead.value(means, c) for c in self.cells])
        self.blended_ahead = []
        if not self.recalled.shape[1]:
            return expected
        shares, beside = self.beliefs.weights_known()
        seen = self._seen(means[mode])
        for e, cell in enumerate(self.cells):
            if cell[mode] in new:
                expected[e] += self.recalled[e] @ recalling
                if self.live[e] and not np.isnan(self.plain[e, 0]):
                    said = ahead.answered(expected[e], self.plain[e])
                    self.blended_ahead.append(self.values[e] - np.array(said))
            else:
                outlook = ahead.value(means, cell, mode, seen[cell[mode]])
                expected[e] = shares[0] * expected[e] + shares[1] * outlook
                expected[e] += self.recalled[e] @ beside
            said = ahead.answered(expected[e], self.plain[e])
            expected[e] = self._weights_of_answers(int(cell[mode] not in new)) @ said
        return expected

    def _weights_of_answers(self, known):
        """By past errors; those of what needs no model count a little more."""
        gram = self.beliefs.blend[known]
        return mix(gram + 0.02 * np.diag([0.0, gram[1, 1], gram[2, 2]]))

    def _with_new(self, means):
        """New rows are the mean of their mode."""
        return [
            np.vstack([m, *[m.mean(axis=0)[None]] * (n - len(m))])
            for m, n in zip(means, self.case.new_shape, strict=True)
        ]

    def _seen(self, rows):
        """Known labels of the batch as the outlook without trends sees them."""
        weights = self.beliefs.weights_of_prior()
        return {
            i: weights @ ahead.candidates(self.numbers, i, SEASONS, rows.__getitem__, self.mean)
            for i in self.known
        }

    def after(self, keep):
        """Rows after the step, and what is remembered of the errors."""
        self.keep, mode, rows, noise = keep, self.mode, self.rows, self.rows.noise
        told = slow.prior_precision(rows, mode, keep)
        if self.beliefs.n_drift:
            told = keep(noise * slow.inverted(self.beliefs.drift))
        self.told = told
        weights = self.beliefs.weights_of_prior()

        def see(means):
            self.centres, _ = ahead.look(
                self.numbers, self.fresh, SEASONS, means[mode], self.mean, weights
            )
            self.table = means[mode].copy()
            for i, row in self.centres.items():
                self.table[i] = row
            return self.centres

        self.missed_known, self.blended_known = [], []
        drift = self.beliefs.drift if self.beliefs.n_drift else None
        self.along = None if self.economy else ahead.Along(
            mode, self.numbers, SEASONS, weights, drift, lambda one: keep(slow.inverted(one)),
            self.looked,
        )  # fmt: skip
        late = self.economy or bool(self.known)
        return slow.step(
            rows, self.case.data, self.case.new_shape, economy=self.economy, keep=keep,
            ahead=(mode, late, see, told, self.along), begun=self._judge_known,
        )  # fmt: skip

    def drift(self, after):
        """How far from the outlook new rows came to lie; the first time beside the mode's rows."""
        mode, moments = self.mode, []
        if self.along is not None and self.along.rows:
            return self.along.drift, min(len(self.along.rows), 50)
        for i in self.fresh:
            gap = after.means[mode][i] - self.centres[i]
            moments.append(np.outer(gap, gap) + after.covariance(mode, i))
        if moments and not self.beliefs.n_drift:
            known = self.rows if self.economy else replace(after, noise=self.rows.noise)
            prior = slow.prior_precision(known, mode, self.keep)
            moments.insert(0, after.noise * np.linalg.inv(prior))
        return ahead.drifted(self.beliefs.drift, self.beliefs.n_drift, moments)

    def judged_ahead(self, after):
        """The errors of candidates; where few cells would give values away, those of rows."""
        mode, discount = self.mode, 0.98 ** len(self.fresh)
        few = 0 < len(self.missed_ahead) < FEWEST
        if not few or not self.economy or self.recalled.shape[1]:
            return ahead.faded(self.beliefs.ahead, self.missed_ahead, discount)
        gained = [after.told[mode][i] - self.told for i in self.fresh]
        rows = [after.means[mode][i] for i in self.fresh]
        found = [self.found[i] for i in self.fresh]
        return discount * self.beliefs.ahead + ahead.missed_by_rows(found, rows, gained)

    def _roughly_alone(self, y, shares, x):
        """A cell left out where only the diagonal of what its row knows is kept."""
        s = (shares / (1.0 - shares)).sum()
        h = min(s / (1.0 + s), 0.999)
        return (y - h * x) / (1.0 - h)

    def _judge_known(self, now, centres):
        """What model and outlook miss where each cell is left out of its own row."""
        mode = self.mode
        if not self.recalled.shape[1]:
            return
        table = self.table if self.fresh else self._with_new(self.rows.means)[mode]
        seen = self._seen(table) | {i: centres[mode][i] for i in self.fresh}
        for e in np.flatnonzero(self.live):
            cell, x = self.cells[e], self.values[e]
            i, z = cell[mode], slow.z_row(now.means, cell, mode)
            if any(cell[m] >= n for m, n in enumerate(self.case.old_shape) if m != mode):
                continue  # of a fibre that is new
            row, told = now.means[mode][i], now.told[mode][i]
            own = self.weights[e] * np.outer(z, z)
            alone = z @ np.linalg.solve(told - own, told @ row - self.weights[e] * x * z)
            if self.keep is slow.diagonal and len(z) > 1:
                alone = self._roughly_alone(z @ row, np.diag(own) / np.diag(told), x)
            missed = [x - alone, x - z @ seen[i], *self.recalled[e]]
            self.missed_known.append(missed)
            if not self.plain.shape[1] or np.isnan(self.plain[e, 0]):
                continue  # nothing answers beside the model
            shares, beside = self.beliefs.weights_known()
            both = shares @ [alone, z @ seen[i]] + self.recalled[e] @ beside
            self.blended_known.append(x - np.array(ahead.answered(both, self.plain[e])))


@KINDS
@ECONOMY
@settings(max_examples=40)
@given(
    case=growing_tensors(max_order=3, weighted=True),
    seed=st.integers(0, 9999),
    memories=st.booleans(),
)
def test_a_step_with_an_outlook_equals_its_equations(economy, kind, case, seed, memories):
    """Several new labels at once, in any order; late cells; with memories of fibres or without."""
    with storing(kind) as keep:
        rows = some_rows(case.previous, seed, keep=keep)
        expected = Expected(case, rows, seed, economy=economy, memories=memories)
        before = expected.beliefs
        assert not before.weights_of_prior()[[5, 6]].any()  # no trend runs ahead
        outcome, fast = run_believed(
            rows, expected.change, economy=economy, strategy="rows", beliefs=before
        )
        assert outcome.predicted == pytest.approx(expected.predicted(), rel=1e-8, abs=1e-9)
        after = expected.after(keep)
        assert_same(fast, after)
        found = Beliefs.of_memory(outcome.memory)
        faded = expected.judged_ahead(after)
        np.testing.assert_allclose(
            found.ahead, faded, rtol=1e-6, atol=1e-7 * np.abs(faded).max(initial=0.0) + 1e-8
        )
        known = ahead.faded(before.known, expected.missed_known, 0.98)
        np.testing.assert_allclose(
            found.known, known, rtol=1e-5, atol=1e-6 * np.abs(known).max(initial=0.0)
        )
        for got, then, missed, fade in (
            (
                found.blend[:1],
                before.blend[:1],
                expected.blended_ahead,
                0.98 ** len(expected.fresh),
            ),
            (found.blend[1:], before.blend[1:], expected.blended_known, 0.98),
        ):
            if memories:
                said = ahead.faded(then[0], missed, fade)
                np.testing.assert_allclose(
                    got[0], said, rtol=1e-5, atol=1e-6 * np.abs(said).max(initial=0.0)
                )
        drift, count = expected.drift(after)
        np.testing.assert_allclose(found.drift, drift, rtol=1e-5, atol=1e-8)
        assert (found.n_drift, found.grown) == (count, len(expected.fresh))
