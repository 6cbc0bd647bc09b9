"""The only judge of raw user input.  Everything behind it trusts what it gets."""

from __future__ import annotations

import operator
import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from tensortide.arrays import AnyArray, Flags, Floats, Positions, Shape
from tensortide.errors import InputError, TensortideError, TooFewError

LARGEST_VALUE = 1e100  # squares of larger numbers leave the range of a double
LARGEST_RANK = 1000
LARGEST_MODE = 2**31 - 2


def check_rank(rank: Any) -> int:
    """Return the rank as an int."""
    number = _whole(rank)
    if number is None or not 1 <= number <= LARGEST_RANK:
        raise InputError(
            f"rank must be a whole number from 1 to {LARGEST_RANK}, not {brief(rank)}."
        )
    return number


def check_rank_for(rank: int, n_entries: int) -> None:
    """Refuse to prepare more components than there are entries."""
    if rank > n_entries:
        raise TooFewError(
            f"rank {rank} is larger than sensible for {n_entries} "
            f"{'entry' if n_entries == 1 else 'entries'}; prepare with more data or a smaller rank."
        )


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise InputError(f"{name} must be one of {listed}, not {value!r}.")
    return value


def check_count(name: str, value: Any, *, least: int) -> int:
    """Return a whole number that is large enough."""
    number = _whole(value)
    if number is None or number < least:
        raise InputError(f"{name} must be a whole number from {least} on, not {value!r}.")
    return number


def check_seed(seed: Any) -> Any:
    """Return the seed if a random generator can be made from it."""
    number = _whole(seed)
    if isinstance(seed, np.random.Generator) or (number is not None and number >= 0):
        return seed
    raise InputError(f"seed must be a whole number from 0 on or a Generator, not {seed!r}.")


def check_modes(modes: Any, value: Any) -> tuple[str, ...] | None:
    """Return the names of the modes, or None where they are to be taken from the data."""
    if modes is None:
        return None
    listed = isinstance(modes, list | tuple)
    if not listed or not all(isinstance(m, str) for m in modes):
        raise InputError(f"modes must be a list of column names, not {modes!r}.")
    names = tuple(modes)
    check_order(len(names))
    if len(set(names)) < len(names):
        raise InputError(f"modes must have different names, not {list(names)!r}.")
    check_value_apart(value, names)
    return names


def check_value_apart(value: Any, modes: Sequence[str]) -> None:
    """Refuse values from a column of labels."""
    if value in modes:
        raise InputError(f"column {value!r} cannot be both a mode and the value.")


def check_columns_exist(
    names: Iterable[str], needed: Iterable[str], *, where: str = "", advice: str = ""
) -> None:
    """Refuse a table that lacks a column."""
    known = list(names)
    missing = [name for name in needed if name not in known]
    if missing:
        raise InputError(
            f"{where}there is no column {missing[0]!r}; the columns are "
            f"{', '.join(map(repr, known)) or 'none'}.{advice}"
        )


def check_columns_differ(
    names: Iterable[str], *, where: str = "", error: type[TensortideError] = InputError
) -> None:
    """Refuse a table that has two columns of one name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise error(f"{where}there are two columns {twice!r}; give every column a name of its own.")


def check_order(order: int) -> int:
    """Refuse tensors of order one or less."""
    if order < 2:
        raise InputError(f"a tensor needs at least 2 modes, not {order}.")
    return order


def check_values(values: Any, name: str = "value") -> Floats:
    """Return finite numbers of sensible size as a fresh array."""
    if getattr(values, "dtype", None) is not None and _kind(values) in "cmM":
        raise InputError(f"column {name!r} must hold real numbers, not {values.dtype}.")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"column {name!r} must hold numbers.") from None
    if numbers.ndim != 1:
        raise InputError(f"values must be a flat list of numbers, not of shape {numbers.shape}.")
    size = np.abs(numbers)
    if len(numbers) and not size.max() <= LARGEST_VALUE:
        _name_bad_number(numbers, size, name)
    return numbers


def _kind(values: Any) -> str:
    return str(getattr(values.dtype, "kind", ""))


def _name_bad_number(numbers: Floats, size: Floats, name: str) -> None:
    row = int(np.flatnonzero(~(size <= LARGEST_VALUE))[0])
    number = numbers[row]
    if np.isnan(number):
        raise InputError(
            f"{name!r} is missing (NaN) in record {row}; leave cells without a value out."
        )
    if np.isinf(number):
        raise InputError(f"{name!r} is infinite in record {row}.")
    raise InputError(
        f"{name!r} is {number:g} in record {row}; numbers beyond {LARGEST_VALUE:g} cannot be "
        "squared, scale them down."
    )


def check_weights(weights: Any, n_entries: int) -> Floats:
    """Return non-negative weights, one for each entry; empty where none are given."""
    if weights is None:
        return np.empty(0)
    numbers = check_values(weights, "weights")
    if len(numbers) != n_entries:
        raise InputError(f"there are {n_entries} values but {len(numbers)} weights.")
    if len(numbers) and numbers.min() < 0.0:
        row = int(np.flatnonzero(numbers < 0.0)[0])
        raise InputError(f"weight {numbers[row]:g} of record {row} is negative.")
    return numbers


def check_positions(coords: Any, what: str = "coords") -> Positions:
    """Return an (n, N) array of positions as fresh integers."""
    array = np.asarray(coords)
    if array.ndim != 2:
        raise InputError(f"{what} must be an array of shape (n, modes), not {array.shape}.")
    check_order(array.shape[1])
    if array.dtype.kind not in "iu":
        array = _whole_numbers(array, what)
    positions = np.array(array, dtype=np.int64, order="C")
    if len(positions) and (positions.min() < 0 or positions.max() > LARGEST_MODE):
        row, mode = (int(i[0]) for i in np.nonzero((positions < 0) | (positions > LARGEST_MODE)))
        raise InputError(
            f"{what}: position {positions[row, mode]} in record {row}, mode {mode} is not "
            f"between 0 and {LARGEST_MODE}."
        )
    return positions


def _whole_numbers(array: AnyArray, what: str) -> AnyArray:
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise InputError(f"{what} must be whole numbers, not {array.dtype}.")
    wrong = ~(np.floor(array) == array)
    if wrong.any():
        row, mode = (int(i[0]) for i in np.nonzero(wrong))
        raise InputError(
            f"{what}: {array[row, mode]} in record {row}, mode {mode} is not a whole number."
        )
    return array


def check_shape(shape: Any, positions: Positions) -> Shape:
    """Return the declared shape, which must hold all positions; by default the smallest."""
    order = positions.shape[1]
    needed = tuple(int(m) + 1 for m in positions.max(axis=0)) if len(positions) else (0,) * order
    if shape is None:
        return needed
    sizes = [_whole(s) for s in shape]
    if len(sizes) != order or any(s is None or s < 0 for s in sizes):
        raise InputError(f"shape must have {order} whole numbers, not {shape!r}.")
    declared = tuple(s for s in sizes if s is not None)
    for mode, (size, least) in enumerate(zip(declared, needed, strict=True)):
        if size < least:
            raise InputError(
                f"shape {declared} is too small in mode {mode}: there is a position {least - 1}."
            )
    return declared


def _holds_numbers(array: Any) -> bool:
    try:
        return np.asarray(array).dtype.kind in "biuf"
    except ValueError:  # lists of different lengths
        return False


def check_array(array: Any, mask: Any) -> tuple[Floats, Flags]:
    """Return a dense array and which of its cells are observed (NaN or mask 0: missing)."""
    if not _holds_numbers(array):
        raise InputError(
            "records must be a table, a dict of columns, a Batch or an array of real numbers, not "
            f"{type(array).__name__}."
        )
    dense = np.asarray(array, dtype=np.float64, order="C")
    known = ~np.isnan(dense)
    if isinstance(array, np.ma.MaskedArray):
        known &= ~np.ma.getmaskarray(array)
    if mask is not None:
        flags = np.asarray(mask)
        if flags.shape != dense.shape:
            raise InputError(f"mask has shape {flags.shape}, the array {dense.shape}.")
        if not np.isin(flags, (0, 1)).all():
            raise InputError("mask must hold 1 (observed) and 0 (missing) only.")
        hidden = flags.astype(bool)
        if (hidden & ~known).any():
            cell = tuple(int(i[0]) for i in np.nonzero(hidden & ~known))
            raise InputError(f"cell {cell} is NaN, but mask says it is observed.")
        known &= hidden
    return dense, known


def _whole(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def check_factors(given: Any, shape: Shape, rank: int) -> list[Floats]:
    """Return given factors as arrays: one of (size, rank) per mode, finite."""
    try:
        factors = [np.array(f, np.float64) for f in given]
    except (TypeError, ValueError):
        raise InputError("init must be a list of factors, one array of numbers per mode.") from None
    wanted = [(size, rank) for size in shape]
    if [f.shape for f in factors] != wanted:
        came = ", ".join(" x ".join(map(str, f.shape)) for f in factors)
        expected = ", ".join(f"{size} x {rank}" for size in shape)
        raise InputError(f"init must have factors of shape {expected}, not {came}.")
    if not all(np.isfinite(f).all() for f in factors):
        raise InputError("init has a number that is not finite.")
    return factors


def brief(value: object) -> str:
    """Return a value as a message can show it: an array by its shape, the rest cut off."""
    shape = getattr(value, "shape", None)
    if shape:
        sizes = " x ".join(map(str, shape))
        return f"an array of {sizes}; data are given to fit and update of OnlineCP"
    return reprlib.repr(value)


def check_number(name: str, value: object, *, least: float) -> float:
    """Return a finite number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, not {brief(value)}.")
    number = float(value)
    if not least <= number < float("inf"):
        raise InputError(f"{name} must be a finite number from {least:g} on, not {value!r}.")
    return number


def check_share(name: str, value: object) -> float:
    """Return a number from above 0 to 1."""
    share = check_number(name, value, least=0.0)
    if not 0.0 < share <= 1.0:
        raise InputError(f"{name} must lie in (0, 1], not {value!r}.")
    return share
