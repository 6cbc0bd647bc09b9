"""The memory of fibres equals a dict that writes down every residual."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.tensor.fibres import Fibres
from tests.oracles_outlook import FibreDict


@st.composite
def histories(draw):
    """Batches of cells with repeats, an order, residuals, values, labels; fibres that forget."""
    order, mode = draw(st.sampled_from([(2, 0), (2, 1), (3, 1), (4, 3)]))
    sizes = [draw(st.sampled_from([1, 3, 50])) for _ in range(order)]
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    found = []
    for _ in range(draw(st.integers(1, 5))):
        n = draw(st.sampled_from([0, 1, 7, 60]))
        cells = np.column_stack([rng.integers(0, k, n) for k in sizes]).astype(np.int32)
        numbers = rng.standard_normal((2, n))
        line = rng.integers(0, 4, n) * 10**15  # late cells of older labels, cells that come again
        some = rng.permutation(n)[: rng.integers(0, n + 1)]  # others tell nothing
        forget = None
        if rng.random() < 0.5:
            forget = np.column_stack([rng.integers(0, k, 5) for k in sizes])
        found.append((cells, some, *numbers, line, forget))
    return order, mode, sizes, found


def every_cell(sizes, mode):
    """A cell of each fibre that there may be, and of some that are beyond."""
    return np.array(
        list(np.ndindex(*(1 if m == mode else min(n + 2, 9) for m, n in enumerate(sizes))))
    )


def recalled_of(fibres, cells):
    """All that is remembered for cells of a label in the middle of the line."""
    at, old = np.full(len(cells), 2 * 10**15), np.zeros(len(cells), bool)
    return np.hstack([fibres.newest(cells)[:, None], *fibres.recall(cells, at, old)])


@settings(max_examples=80)
@given(history=histories())
def test_fibres_remember_as_a_dict_does(history):
    order, mode, sizes, batches = history
    fast, slow = Fibres.none(mode, order), FibreDict(mode)
    for cells, by, *told, forget in batches:
        change, recalled = fast.learn(cells, by, *told, forget)
        for cell in [] if forget is None else forget:
            slow.forget(cell)
        for e in by:
            assert recalled[e] == pytest.approx(slow.recall(cells[e]), rel=1e-12, abs=1e-14)
            slow.learn(cells[e], *(column[e] for column in told))
        fast.put(change)
        asked = np.vstack([every_cell(sizes, mode), cells])
        rng = np.random.default_rng(len(asked))
        line, old = rng.integers(0, 5, len(asked)) * 10**15, rng.random(len(asked)) < 0.5
        residuals, values = fast.recall(asked, line, old)
        expected = [slow.recall(cell, late) for cell, late in zip(asked, old, strict=True)]
        np.testing.assert_allclose(residuals, expected, 1e-12, 1e-14)
        expected = [slow.values(cell, at) for cell, at in zip(asked, line, strict=True)]
        np.testing.assert_allclose(values, expected, 1e-12, 1e-14)
    known = fast.numbers[:, 4] > 0.0  # cells that say nothing have a fibre, too
    assert {tuple(k) for k in fast.keys[known].tolist()} == set(slow.told)


@given(history=histories())
def test_what_is_taken_back_leaves_no_trace(history):
    order, mode, sizes, batches = history
    fast = Fibres.none(mode, order)
    for cells, by, *told in batches:
        change, _ = fast.learn(cells, by, *told)
        keys, numbers, size = fast.keys.copy(), fast.numbers.copy(), fast.size
        asked = np.vstack([every_cell(sizes, mode), cells])
        before = recalled_of(fast, asked)
        fast.take_back(change, size)  # nothing was put yet
        fast.put(change)
        fast.take_back(change, size)
        np.testing.assert_array_equal(fast.keys, keys)
        np.testing.assert_array_equal(fast.numbers, numbers)
        np.testing.assert_array_equal(recalled_of(fast, asked), before)
        fast.put(change)


@given(history=histories(), seed=st.integers(0, 99))
def test_labels_that_retire_take_their_fibres_along(history, seed):
    order, mode, sizes, batches = history
    fast = Fibres.none(mode, order)
    for cells, by, *told in batches:
        fast.put(fast.learn(cells, by, *told)[0])
    gone = [m for m in range(order) if m != mode][seed % (order - 1)]
    keep = np.random.default_rng(seed).random(sizes[gone]) < 0.6
    fewer = fast.kept(gone, keep)
    old = every_cell(sizes, mode)
    old = old[old[:, gone] < sizes[gone]]
    old = old[keep[old[:, gone]]]
    new = old.copy()
    new[:, gone] = (np.cumsum(keep) - 1)[old[:, gone]]
    np.testing.assert_array_equal(recalled_of(fewer, new), recalled_of(fast, old))
    assert fewer.size == keep[fast.keys[:, gone if gone < mode else gone - 1]].sum()


@given(history=histories(), place=st.integers(0, 3))
def test_the_newest_cell_goes_with_its_label(history, place):
    """What remains are the sums of the others; their mean stands for the newest value."""
    order, mode, sizes, batches = history
    fast, slow = Fibres.none(mode, order), FibreDict(mode)
    for cells, by, *told, forget in batches:
        fast.put(fast.learn(cells, by, *told, forget)[0])
        for cell in [] if forget is None else forget:
            slow.forget(cell)
        for e in by:
            slow.learn(cells[e], *(column[e] for column in told))
    place *= 10**15
    fewer, cells = fast.without(np.array([place])), every_cell(sizes, mode)
    late, never = np.full(len(cells), 9 * 10**15), np.zeros(len(cells), bool)
    residuals, values = fewer.recall(cells, late, never)
    for cell, memory, value in zip(cells, residuals, values, strict=True):
        told = slow.told.get(slow.key(cell), [])
        if told and slow.newest(told) == place:
            rest = [one for one in told if one[0] != place]
            mean = np.mean([x for _, _, x, _ in rest]) if rest else np.nan
            np.testing.assert_allclose(value, [mean, mean], rtol=1e-9, atol=1e-12)
            total = sum(r for _, r, *_ in rest) / (len(rest) + 1)
            assert memory[3] == pytest.approx(total, rel=1e-9, abs=1e-12)
        else:
            np.testing.assert_allclose(value, slow.values(cell, np.inf), 1e-9, 1e-12)


@pytest.mark.parametrize("wrong", [1e6, 1e38, -1e300])
def test_a_correction_leaves_nothing_of_what_was_wrong_however_large(wrong):
    fibres, cell, first = Fibres.none(1, 2), np.zeros((1, 2), np.int32), np.zeros(1, np.int64)
    for at, value in ((0, 3.0), (1, 5.0), (2, wrong), (2, 10.0)):
        told = np.array([value])
        fibres.put(fibres.learn(cell, first, told, told, np.array([at]))[0])
    residuals, values = fibres.recall(cell, np.array([3]), np.zeros(1, bool))
    np.testing.assert_allclose(values, [[10.0, 6.0]], rtol=1e-12)
    np.testing.assert_allclose(residuals[0, 3], 18.0 / 4.0, rtol=1e-12)


@given(history=histories(), seed=st.integers(0, 99))
def test_positions_that_close_up_take_what_is_newest_along(history, seed):
    """One that goes lies between those that stay."""
    order, mode, _, batches = history
    fast = Fibres.none(mode, order)
    for cells, by, residuals, values, line, forget in batches:
        at = line // 10**15  # positions 0 to 3
        fast.put(fast.learn(cells, by, residuals, values, at, forget)[0])
    keep = np.random.default_rng(seed).random(6) < 0.6
    fewer = fast.closed_up(keep)
    cells = np.insert(fast.keys, mode, 0, axis=1)
    old, new = fast.newest(cells), fewer.newest(cells)
    places = np.cumsum(keep) - 1
    for before, now in zip(old.astype(int), new, strict=True):
        assert now == places[before] if keep[before] else places[before] < now < places[before] + 1


@given(history=histories())
def test_copies_are_independent(history):
    order, mode, _, batches = history
    fast = Fibres.none(mode, order)
    for cells, by, *told in batches:
        change, _ = fast.learn(cells, by, *told)
        other, before = fast.copy(), fast.numbers.tobytes()
        other.put(change)
        assert fast.numbers.tobytes() == before
        fast.put(change)
        assert fast.numbers.tobytes() == other.numbers.tobytes()
