"""Compiled sorting, searching and merging of entries in row order.

An *order* of mode n lists the entries by their position in mode n, then by the positions
in the other modes in ascending mode number.  New entries are merged in; history is never
sorted again.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.kernels.compiled import compiled


@compiled("int64[::1](int32[:,::1], int64[::1])")
def lexsort(coords: Places, sizes: Positions) -> Positions:
    """Return the stable order of entries by mode 0, then mode 1, ...; a counting pass per mode."""
    n_entries, order = coords.shape
    current = np.arange(n_entries)
    target = np.empty(n_entries, np.int64)
    for back in range(order):
        mode = order - 1 - back
        count = np.zeros(sizes[mode] + 1, np.int64)
        for e in range(n_entries):
            count[coords[e, mode] + 1] += 1
        for i in range(sizes[mode]):
            count[i + 1] += count[i]
        for e in range(n_entries):
            p = current[e]
            i = coords[p, mode]
            target[count[i]] = p
            count[i] += 1
        current, target = target, current
    return current


@compiled(
    "void(int32[:,::1], int64[::1], float64[::1], float64[::1], int64[::1], int64[::1], "
    "int32[:,:,::1], float64[:,::1], float64[:,::1])"
)
def group(
    coords: Places,
    permutation: Positions,
    values: Floats,
    weights: Floats,
    firsts: Positions,
    pointers: Positions,
    others: Places,
    out_values: Floats,
    out_weights: Floats,
) -> None:
    """Write the order of every mode; `permutation` is the order of mode 0 from `lexsort`.

    A stable counting pass over mode 0's order gives (i_n, i_0, i_1, ...), as wanted.  The
    pointers of mode n begin at firsts[n], one place per row and two more, all zero on
    entry; the last place is left over.
    """
    n_entries, order = coords.shape
    weighted = out_weights.shape[1] > 0
    for mode in range(order):
        first = firsts[mode]
        for e in range(n_entries):
            pointers[first + coords[e, mode] + 2] += 1
        for i in range(first + 2, firsts[mode + 1]):
            pointers[i] += pointers[i - 1]
        for e in range(n_entries):
            p = permutation[e]
            row = first + coords[p, mode] + 1
            at = pointers[row]
            pointers[row] = at + 1
            k = 0
            for m in range(order):
                if m != mode:
                    others[mode, at, k] = coords[p, m]
                    k += 1
            out_values[mode, at] = values[p]
            if weighted:
                out_weights[mode, at] = weights[p]


@compiled("int64(int32[:,::1])")
def count_repeats(coords: Places) -> int:
    """Return how many cells of a sorted list are the same as the one before."""
    repeats = 0
    for e in range(1, coords.shape[0]):
        same = True
        for mode in range(coords.shape[1]):
            if coords[e, mode] != coords[e - 1, mode]:
                same = False
                break
        repeats += same
    return repeats


@compiled("int64(int32[:,::1], int64[::1])")
def count_outside(coords: Places, limits: Positions) -> int:
    """Return how many cells have a position at or beyond the limit of its mode."""
    outside = 0
    for e in range(coords.shape[0]):
        for mode in range(coords.shape[1]):
            if coords[e, mode] >= limits[mode]:
                outside += 1
                break
    return outside


@compiled("int64(int64[::1], int64[::1], int64[::1], int32[::1])")
def number(column: Positions, order: Positions, rows: Positions, numbers: Places) -> int:
    """Give the distinct positions of a column numbers from zero on; `order` sorts the column.

    Writes the positions in ascending order and the number of each record, and returns how
    many there are.
    """
    count = 0
    for e in range(order.shape[0]):
        position = column[order[e]]
        if count == 0 or rows[count - 1] != position:
            rows[count] = position
            count += 1
        numbers[order[e]] = count - 1
    return count


@compiled(
    "void(int64[::1], int32[:,::1], int64[::1], int64[::1], int32[:,::1], int64[::1], boolean[::1])"
)
def locate(
    pointers: Positions,
    others: Places,
    new_rows: Positions,
    new_ends: Positions,
    new_others: Places,
    where: Positions,
    found: Flags,
) -> None:
    """For each new entry write where it stands (found) or would be inserted.

    The new entries are in row order too: those of new_rows[s] end at new_ends[s].
    """
    known = pointers.shape[0] - 1
    e = 0
    for s in range(new_rows.shape[0]):
        row = new_rows[s]
        while e < new_ends[s]:
            lo = pointers[min(row, known)]
            hi = pointers[min(row + 1, known)]
            end = hi
            while lo < hi:
                mid = (lo + hi) // 2
                less = False
                for k in range(others.shape[1]):
                    if others[mid, k] != new_others[e, k]:
                        less = others[mid, k] < new_others[e, k]
                        break
                if less:
                    lo = mid + 1
                else:
                    hi = mid
            where[e] = lo
            same = lo < end
            if same:
                for k in range(others.shape[1]):
                    if others[lo, k] != new_others[e, k]:
                        same = False
                        break
            found[e] = same
            e += 1


@compiled(
    "void(int32[:,::1], float64[::1], float64[::1], int64[::1], int32[:,::1], float64[::1], "
    "float64[::1], int32[:,::1], float64[::1], float64[::1])"
)
def merge(
    others: Places,
    values: Floats,
    weights: Floats,
    where: Positions,
    new_others: Places,
    new_values: Floats,
    new_weights: Floats,
    out_others: Places,
    out_values: Floats,
    out_weights: Floats,
) -> None:
    """Copy old entries with the new ones inserted before the old entry where[e]."""
    weighted = out_weights.shape[0] > 0
    n_old = values.shape[0]
    n_others = others.shape[1]
    at = 0
    old = 0
    for e in range(where.shape[0] + 1):
        until = n_old if e == where.shape[0] else where[e]
        while old < until:
            for k in range(n_others):
                out_others[at, k] = others[old, k]
            out_values[at] = values[old]
            if weighted:
                out_weights[at] = weights[old]
            at += 1
            old += 1
        if e < where.shape[0]:
            for k in range(n_others):
                out_others[at, k] = new_others[e, k]
            out_values[at] = new_values[e]
            if weighted:
                out_weights[at] = new_weights[e]
            at += 1
