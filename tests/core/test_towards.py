"""The last model as a prior of counts: its value, its bound, its slope, and what it is for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensortide as tt
from tensortide.core.objective.towards import Towards
from tensortide.core.tensor.workspace import Workspace
from tests import oracles


def two_models(seed, shape, grown, rank):
    """An old model, and one that has moved and grown."""
    rng = np.random.default_rng(seed)
    old = [rng.gamma(0.5, 1.0, (n, rank)) for n in shape]
    now = [
        np.vstack([f * rng.lognormal(0.0, 0.7, f.shape), rng.gamma(1.0, 1.0, (k, rank))])
        for f, k in zip(old, grown, strict=True)
    ]
    return old, now


def towards_of(old, now, weight=1.0, out=0):
    """The term, with the first `out` old rows of each mode outside the workspace."""
    inside = [f[out:] for f in now]
    sizes = [len(f) - out for f in old]
    work = Workspace(
        sizes, [len(f) - n for f, n in zip(inside, sizes, strict=True)], old[0].shape[1]
    )
    work.stack[:] = np.vstack(inside)
    rest = np.array([f[:out].sum(axis=0) for f in old])
    previous = work.stack.copy()
    for mode, rows in enumerate(old):
        previous[work.upper_part(mode)] = rows[out:]
    return Towards(work, previous, rest if out else None, weight), work


shapes = st.lists(st.integers(2, 4), min_size=2, max_size=4)


@given(st.integers(0, 999), shapes, st.integers(1, 3), st.floats(0.1, 3.0), st.booleans())
def test_it_is_the_divergence_of_components_and_never_below_the_papers(
    seed, shape, rank, weight, some_out
):
    grown = [seed % 2, *(1 for _ in shape[1:])]
    old, now = two_models(seed, shape, grown, rank)
    if some_out:  # rows that take no part have not moved
        now = [np.vstack([o[:1], f[1:]]) for o, f in zip(old, now, strict=True)]
    term, _ = towards_of(old, now, weight, out=int(some_out))
    found = term.total()
    assert found == pytest.approx(weight * oracles.divergence_of_components(old, now), rel=1e-9)
    inside = [f[: len(o)] for f, o in zip(now, old, strict=True)]
    papers = weight * oracles.divergence(oracles.reconstruct(old), oracles.reconstruct(inside))
    assert found >= papers - 1e-9 * (1.0 + papers)


@given(st.integers(0, 999), shapes, st.integers(1, 3))
def test_it_is_nothing_at_the_old_model_and_rises_from_there(seed, shape, rank):
    old, _ = two_models(seed, shape, [0] * len(shape), rank)
    term, work = towards_of(old, old)
    assert term.total() == pytest.approx(0.0, abs=1e-9 * (1.0 + np.abs(work.stack).sum()))
    work.stack[:] *= 1.1
    assert term.total() > 0.0


@given(st.integers(0, 999), shapes, st.integers(1, 3))
def test_its_parabola_has_the_slope_of_the_term_and_rows_know_what_they_would_add(
    seed, shape, rank
):
    old, now = two_models(seed, shape, [1] * len(shape), rank)
    term, work = towards_of(old, now, 0.7)
    for mode in range(len(shape)):
        where = work.part(mode)
        rows = work.stack[where].copy()
        gram, rhs = np.zeros((len(rows), rank, rank)), np.zeros_like(rows)
        term.add(mode, gram, rhs)
        slope = 2.0 * (np.einsum("irs,is->ir", gram, rows) - rhs)  # of a'Ga - 2 b'a
        before, alone = term.total(), term.row_values(mode, rows)
        for at in np.ndindex(*rows.shape):
            step = 1e-5 * max(rows[at], 1e-3)
            values = []
            for sign in (1.0, -1.0):
                work.stack[where] = rows
                work.stack[where.start + at[0], at[1]] += sign * step
                values.append(term.total())
                other = term.row_values(mode, work.stack[where])
                change = other[at[0]] - alone[at[0]]
                assert values[-1] - before == pytest.approx(change, abs=1e-8 * (1 + abs(before)))
            work.stack[where] = rows
            measured = (values[0] - values[1]) / (2.0 * step)
            assert measured == pytest.approx(slope[at], rel=1e-3, abs=1e-4 * (1 + abs(before)))


def test_an_economy_model_of_counts_keeps_what_it_knew():
    """Names go out of fashion: with the squared distance their past is lost with them."""
    rng = np.random.default_rng(3)
    names, years = 60, 40
    peak = rng.uniform(-10, years + 10, (names, 1))
    rates = 300.0 * np.exp(-0.5 * ((np.arange(years) - peak) / 6.0) ** 2)
    rates = rates[:, None, :] * rng.dirichlet([0.3, 0.3], names)[:, :, None]
    counts = rng.poisson(rates).astype(float)
    lost = {}
    for anchor in ("loss", "squared"):
        method = replace(tt.gocpte(), anchor=anchor)
        model = tt.OnlineCP(4, method, loss="poisson", absent="zero", prior="paper", seed=0)
        for first, last in [(0, 12), *((t, t + 1) for t in range(12, years))]:
            cells = np.argwhere(counts[:, :, first:last] > 0) + [0, 0, first]
            batch = tt.Batch(cells, counts[tuple(cells.T)], shape=(names, 2, last))
            model = model.fit(batch) if first == 0 else (model.update(batch), model)[1]
        values = np.einsum("ir,jr,kr->ijk", *model.factors_)
        lost[anchor] = oracles.divergence(counts, values + 1e-10)
    assert lost["loss"] < 0.9 * lost["squared"]
