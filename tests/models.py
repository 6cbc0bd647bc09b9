"""Small models and what counts as their state, for tests of the estimator."""

from __future__ import annotations

import itertools

import numpy as np

import tensortide as tt

MODES = ["place", "day", "delay"]


def stream(seed=0, shape=(6, 20, 3), **options):
    truth = tt.simulate.low_rank(shape, 2, seed=seed, noise=0.01)
    return tt.simulate.growth(truth, modes=1, start=0.5, observed=0.8, seed=seed, **options)


def batches(seed=0, **options):
    names = {"place": [f"p{i}" for i in range(6)]}
    return list(stream(seed, **options).tables(MODES, "count", names))


def unreported_cell():
    """A cell of the first batch's box that no record of it is for."""
    taken = set(zip(*(np.asarray(batches()[0][m]).tolist() for m in MODES), strict=True))
    box = itertools.product((f"p{p}" for p in range(6)), range(10), range(3))
    return next(cell for cell in box if cell not in taken)


def fitted(method="gocpt", **options):
    model = tt.OnlineCP(2, method, modes=MODES, value="count", **options)
    first, *_ = batches()
    return model.fit(first, max_sweeps=20)


def fingerprint(model) -> tuple:
    """Everything that a step may change, bit by bit."""
    inner = model._model
    parts = [rows.tobytes() for rows in inner.rows()]
    parts += [
        a.tobytes()
        for a in (
            inner.factors.grams.total,
            inner.factors.grams.error,
            inner.factors.grams.sums,
            inner.seen.registers,
        )
    ]
    parts += [tuple(labels.array().tolist()) for labels in inner.modes.labels]
    parts += [(key, array.tobytes()) for key, array in sorted(inner.memory.items())]
    parts += [inner.n_steps, inner.grown_last, inner.seen.count(), inner.factors.shape]
    parts += [told.tobytes() for told in inner.factors.precisions()]
    ahead = inner.ahead
    if ahead.line is not None:
        parts += [ahead.line.numbers.tobytes(), ahead.line.places.tobytes(), ahead.line.periods]
    if ahead.fibres is not None:
        parts += [ahead.fibres.keys.tobytes(), ahead.fibres.numbers.tobytes()]
    if inner.store is not None:
        for order in inner.store.entries.orders:
            parts += [
                order.pointers.tobytes(),
                order.others.tobytes(),
                order.values.tobytes(),
                order.weights.tobytes(),
            ]
    return tuple(parts)


def same_factors(a, b):
    for x, y in zip(a.factors_, b.factors_, strict=True):
        np.testing.assert_array_equal(x, y)
