"""Duplicates within a batch, compact numbering, and the sketch of distinct cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.data.cells import compact, distinct_cells
from tensortide.data.sketch import STANDARD_ERROR, DistinctCells
from tensortide.errors import InputError

records = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 3), st.integers(-5, 5), st.sampled_from([0.0, 0.5, 2.0])
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.parametrize("rule", ["last", "sum", "mean", "count"])
@pytest.mark.parametrize("weighted", [False, True])
@given(rows=records)
def test_duplicates_are_combined_as_the_rule_says(rule, weighted, rows):
    coords = np.array([r[:2] for r in rows], np.int32)
    values = np.array([float(r[2]) for r in rows])
    weights = np.array([r[3] for r in rows]) if weighted else np.empty(0)
    cells = distinct_cells(coords, values, weights, (4, 4), rule)
    groups: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for i, j, x, w in rows:
        groups.setdefault((i, j), []).append((float(x), w if weighted else 1.0))
    assert [tuple(c) for c in cells.coords.tolist()] == sorted(groups)
    assert cells.n_duplicates == len(rows) - len(groups)
    for cell, got in zip(sorted(groups), cells.values, strict=True):
        xs, ws = np.array(groups[cell]).T
        mean = np.average(xs, weights=ws) if ws.sum() > 0 else xs.mean()
        expected = {"last": xs[-1], "sum": xs.sum(), "mean": mean, "count": len(xs)}[rule]
        assert got == pytest.approx(expected)
    if weighted and rule != "last":
        assert cells.weights == pytest.approx(
            [np.mean([w for _, w in groups[c]]) for c in sorted(groups)]
        )


def test_rule_error_names_both_records():
    coords = np.array([[1, 1], [0, 0], [1, 1]], np.int32)
    with pytest.raises(InputError, match="records 0 and 2"):
        distinct_cells(coords, np.ones(3), np.empty(0), (2, 2), "error")


@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    grow=st.integers(0, 3),
)
def test_compact_numbers_touched_and_new_rows(rows, grow):
    coords = np.array(rows, np.int64).reshape(-1, 2)
    old, new = (10 - grow, 10), (10, 10)
    positions, local = compact(coords, old, new)
    for mode in range(2):
        wanted = set(coords[:, mode].tolist()) | set(range(old[mode], new[mode]))
        assert positions[mode].tolist() == sorted(wanted)
        assert positions[mode][local[:, mode]].tolist() == coords[:, mode].tolist()


def test_count_is_exact_under_pure_growth():
    seen = DistinctCells()
    for t in range(50):
        coords = np.column_stack([np.arange(100), np.full(100, t)])
        seen = seen.after(coords, n_grown=100, n_cells=100)
    assert seen.count() == 5000


@pytest.mark.parametrize("distinct", [50, 3_000, 40_000, 1_000_000])
def test_estimate_is_within_its_stated_error(distinct):
    """Every cell reported three times; four standard errors are allowed."""
    cells = np.column_stack([np.arange(distinct) % 997, np.arange(distinct) // 997])
    seen = DistinctCells()
    for _ in range(3):
        seen = seen.after(cells, n_grown=0, n_cells=distinct)
    assert seen.count() == pytest.approx(distinct, rel=4 * STANDARD_ERROR)


def test_a_complete_box_is_counted_without_hashing_and_its_cells_never_twice():
    seen = DistinctCells()
    assert seen.covers((0, 0))
    seen = seen.filled((20, 5)).filled((20, 9))
    assert seen.count() == 180
    assert not seen.registers.any()
    # slices 9 ... 11 with holes; corrections inside the box and a cell reported twice outside
    new = np.array([[i, t] for t in (9, 10, 11) for i in range(0, 20, 2)])
    seen = seen.after(new, n_grown=30, n_cells=30)
    assert seen.count() == 210
    assert not seen.covers((20, 12))
    old = np.array([[i, t] for i in range(20) for t in range(9)])
    seen = seen.after(old, n_grown=0, n_cells=180)
    assert seen.count() == 210
    seen = seen.after(new[:5], n_grown=0, n_cells=5)
    assert seen.count() == pytest.approx(210, rel=4 * STANDARD_ERROR)
    assert seen.shrunk(0.5).count() == pytest.approx(105, rel=4 * STANDARD_ERROR)
