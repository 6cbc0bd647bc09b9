"""The store equals a dictionary after any sequence of growth, filling, revision, retirement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tensortide.core.tensor.entries import Entries
from tensortide.data.cells import distinct_cells
from tensortide.data.store import Store


def empty(order):
    """Return a store of no entries."""
    return Store(Entries.listed(np.empty((0, order), np.int32), np.empty(0), (0,) * order))


class StoreMachine(RuleBasedStateMachine):
    @initialize(order=st.integers(2, 4))
    def begin(self, order):
        self.store, self.known, self.shape = empty(order), {}, (0,) * order

    @rule(
        seed=st.integers(0, 2**32 - 1),
        size=st.integers(0, 12),
        grow=st.integers(0, 2),
        add=st.booleans(),
        decay=st.sampled_from([1.0, 0.5]),
    )
    def absorb(self, seed, size, grow, add, decay):
        rng = np.random.default_rng(seed)
        shape = tuple(max(1, s + int(rng.integers(0, grow + 1))) for s in self.shape)
        coords = np.stack([rng.integers(0, s, size) for s in shape], axis=1).astype(np.int32)
        values = rng.integers(-3, 4, size).astype(float)
        cells = distinct_cells(coords, values, np.empty(0), shape, "last")
        done = self.store.absorb(cells, add=add, decay=decay)
        batch = dict(zip(map(tuple, coords.tolist()), values.tolist(), strict=True))
        for k, cell in enumerate(map(tuple, cells.coords.tolist())):
            grown = any(i >= s for i, s in zip(cell, self.shape, strict=True))
            known = cell in self.known
            changed = known and (batch[cell] != 0 if add else batch[cell] != self.known[cell][0])
            assert done.grown[k] == grown
            assert done.revised[k] == changed
            assert done.unchanged[k] == (known and not changed)
            assert done.filled[k] == (not grown and not known)
        before = {c: (x, w * decay) for c, (x, w) in self.known.items()}
        news = {
            c: ((before[c][0] + x) if add and c in before else x, 1.0) for c, x in batch.items()
        }
        self.store, self.known, self.shape = done.store, {**before, **news}, shape

    @rule(seed=st.integers(0, 2**32 - 1))
    def retract(self, seed):
        if not self.known:
            return
        rng = np.random.default_rng(seed)
        cells = list(self.known)
        chosen = [cells[i] for i in rng.integers(0, len(cells), 3)]
        self.store = self.store.without(np.array(chosen, np.int32))
        self.known = {c: v for c, v in self.known.items() if c not in chosen}

    @rule(seed=st.integers(0, 2**32 - 1))
    def retire(self, seed):
        rng = np.random.default_rng(seed)
        mode = int(rng.integers(0, len(self.shape)))
        if self.shape[mode] < 2:
            return
        gone = int(rng.integers(0, self.shape[mode]))
        self.store = self.store.retire(mode, np.arange(self.shape[mode]) != gone)
        moved = {}
        for cell, value in self.known.items():
            if cell[mode] != gone:
                i = cell[mode] - (cell[mode] > gone)
                moved[(*cell[:mode], i, *cell[mode + 1 :])] = value
        self.known = moved
        self.shape = tuple(s - (m == mode) for m, s in enumerate(self.shape))

    @invariant()
    def equals_the_dictionary_in_every_mode(self):
        if not hasattr(self, "store"):
            return
        assert self.store.entries.shape == self.shape
        for mode, order in enumerate(self.store.entries.orders):
            rows = np.repeat(np.arange(order.n_rows), np.diff(order.pointers))
            listed = []
            for row, others in zip(rows.tolist(), order.others.tolist(), strict=True):
                others.insert(mode, row)
                listed.append(tuple(others))
            weights = order.weights if len(order.weights) else np.ones(len(listed))
            found = dict(zip(listed, zip(order.values, weights, strict=True), strict=True))
            assert found == self.known
            key = [(c[mode], *c[:mode], *c[mode + 1 :]) for c in listed]
            assert key == sorted(key)


StoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
test_store_equals_a_dictionary = StoreMachine.TestCase


def test_unknown_cells_are_found():
    cells = distinct_cells(np.array([[0, 1]], np.int32), np.ones(1), np.empty(0), (2, 2), "last")
    store = empty(2).absorb(cells).store
    assert store.unknown(np.array([[1, 1], [0, 1]], np.int32)).tolist() == [[1, 1]]


def test_entries_that_have_faded_away_are_dropped():
    def cell(day):
        coords = np.array([[0, day]], np.int32)
        return distinct_cells(coords, np.ones(1), np.empty(0), (1, day + 1), "last")

    store = empty(2)
    for day in range(100):
        store = store.absorb(cell(day), decay=0.5).store
    assert 50 < len(store) < 60  # 2^-53 is the last weight above 1e-16


def test_memory_per_entry_is_as_stated():
    rng = np.random.default_rng(0)
    coords = np.unique(rng.integers(0, 200, (60_000, 3)), axis=0).astype(np.int32)
    cells = distinct_cells(coords, np.ones(len(coords)), np.empty(0), (200, 200, 200), "last")
    store = empty(3).absorb(cells).store
    assert store.nbytes / len(store) == pytest.approx(48, rel=0.01)
