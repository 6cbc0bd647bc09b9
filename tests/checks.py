"""The contract that every method of `tt.METHODS` keeps, as river checks its estimators.

Each check takes the name of a method.  `ALL` is found by introspection, so a new method is
tested as soon as it is registered.
"""

from __future__ import annotations

import datetime as dt
import gc
import itertools
import re
import sys

import numpy as np
import pytest

import tensortide as tt
from tests.models import fingerprint

PLACES = [f"place {i}" for i in range(6)]
KINDS = ["a", "b", "c", "d"]
FIRST, DAYS = 8, 14
DAY0 = dt.date(2026, 1, 1)


def tensor(seed=0):
    truth = tt.simulate.low_rank((6, 4, DAYS), 2, seed=seed, noise=0.02)
    return truth.dense()


def table(x, days):
    """All cells of these days as a table with labels of three types."""
    cells = list(itertools.product(range(6), range(4), days))
    return {
        "place": [PLACES[i] for i, _, _ in cells],
        "kind": [KINDS[j] for _, j, _ in cells],
        "day": [DAY0 + dt.timedelta(k) for _, _, k in cells],
        "count": [float(x[c]) for c in cells],
    }


def fitted(name, x=None, **options):
    x = tensor() if x is None else x
    model = tt.OnlineCP(2, name, modes=["place", "kind", "day"], value="count", **options)
    return model.fit(table(x, range(FIRST)), max_sweeps=50)


def stream_steps(name, until=DAYS, x=None, **options):
    x = tensor() if x is None else x
    model = fitted(name, x, **options)
    for day in range(FIRST, until):
        model.update(table(x, [day]))
    return model


def taken_or_refused(model, batch, cannot, message):
    """Whether a batch is learned; where it has to be refused, with a way out, nothing changes."""
    if not cannot:
        model.update(batch)
        return True
    before = fingerprint(model)
    with pytest.raises(tt.InputError, match=message):
        model.update(batch)
    assert fingerprint(model) == before
    return False


def check_learns_the_stream(name):
    x = tensor()
    model = stream_steps(name, x=x)
    assert model.score(table(x, range(DAYS))) > 0.9
    assert model.shape_ == (6, 4, DAYS)


def check_reading_changes_nothing(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    before = fingerprint(model)
    model.predict(table(x, [3]))
    model.score(table(x, [3]))
    model.components()
    model.reconstruct()
    repr(model)
    model.get_params()
    assert fingerprint(model) == before


def check_clones_are_independent(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    before = fingerprint(model)
    clone = model.copy()
    clone.update(table(x, [10]))
    assert fingerprint(model) == before
    model.update(table(x, [10]))
    assert fingerprint(model) == fingerprint(clone)


def check_unseen_labels_are_survived_or_refused_with_a_way_out(name):
    """A new day is learned by everybody; a new place by those who can, else nothing changes."""
    x = tensor()
    model = stream_steps(name, 10, x)
    batch = table(x, [10])
    extra = {"place": ["new"], "kind": ["a"], "day": batch["day"][:1], "count": [0.5]}
    both = {key: batch[key] + extra[key] for key in batch}
    cannot = model._model.method.limits.one_mode
    if taken_or_refused(model, both, cannot, f"'{name}'.*'place' and 'day'.*gocpte"):
        assert model.shape_ == (7, 4, 11)
    with pytest.raises(tt.InputError, match="place.*nowhere"):
        model.predict({"place": ["nowhere"], "kind": ["a"], "day": batch["day"][:1]})


def check_old_cells_are_taken_or_refused_with_a_way_out(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    batch = table(x, [10])
    late = {key: batch[key] + table(x, [2])[key][:1] for key in batch}
    cannot = model._model.method.limits.new_cells
    if taken_or_refused(model, late, cannot, f"'{name}'.*1 of the 25.*gocpte"):
        assert model.n_steps_ == 4


def check_holes_are_taken_or_refused_with_a_way_out(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    batch = {key: column[:-3] for key, column in table(x, [10]).items()}
    cannot = model._model.method.limits.complete
    if taken_or_refused(model, batch, cannot, f"'{name}'.*21 of 24.*'olstec'"):
        assert np.isfinite(model.predict(table(x, [10]))).all()


def check_order(name):
    """Other than three modes: taken, or refused at once."""
    x = tt.simulate.low_rank((4, 3, 2, 9), 2, seed=1).dense()
    model = tt.OnlineCP(2, name)
    if tt.METHODS[name]().limits.third_order:
        with pytest.raises(tt.InputError, match=f"'{name}'.*three modes.*4.*'online_cpd'"):
            model.fit(x)
        return
    model.fit(x[..., :6], max_sweeps=20)
    model.update(x[..., 6:])
    assert model.score(x) > 0.5


def check_absent_zero(name):
    x = np.rint(20 * tensor())
    model = tt.OnlineCP(2, name, absent="zero", modes=["place", "kind", "day"], value="count")
    everything = table(x, range(DAYS))
    days = sorted(set(everything["day"]))
    listed = [i for i, v in enumerate(everything["count"]) if v != 0.0]

    def part(wanted):
        return {
            k: [c[i] for i in listed if everything["day"][i] in wanted]
            for k, c in everything.items()
        }

    if tt.METHODS[name]().limits.listed:
        with pytest.raises(tt.InputError, match=f"'{name}'.*absent='zero'.*'online_cpd'"):
            model.fit(part(days[:FIRST]))
        return
    model.fit(part(days[:FIRST]), max_sweeps=50)
    for day in days[FIRST:]:
        model.update(part([day]))
    assert model.score(everything) > 0.7


def check_repeatable(name):
    one, two = stream_steps(name), stream_steps(name, threads=1)
    assert fingerprint(one) == fingerprint(two)


def check_save_load_step(name, folder):
    x = tensor()
    for until in (FIRST, 11):  # before and after the growing mode is known
        model = stream_steps(name, until, x)
        model.save(folder / "model.tide")
        loaded = tt.load(folder / "model.tide")
        assert fingerprint(loaded) == fingerprint(model)
        model.update(table(x, [until]))
        loaded.update(table(x, [until]))
        assert fingerprint(loaded) == fingerprint(model)


def check_the_order_of_records_does_not_matter(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    other = model.copy()
    batch = table(x, [10])
    back = {key: column[::-1] for key, column in batch.items()}
    model.update(batch)
    other.update(back)
    assert fingerprint(model) == fingerprint(other)


def check_permuting_labels_permutes_rows(name):
    """The same start, the same stream, places in another order: the same rows, permuted."""
    x = tensor()
    start = fitted("gocpte", x).factors_
    order = np.random.default_rng(1).permutation(6)
    plain, permuted = (tt.OnlineCP(2, name) for _ in range(2))
    plain.fit(x[..., :FIRST], init=start, max_sweeps=0)
    permuted.fit(x[order][..., :FIRST], init=[start[0][order], *start[1:]], max_sweeps=0)
    for day in range(FIRST, DAYS):
        plain.update(x[..., day])
        permuted.update(x[order][..., day])
    np.testing.assert_allclose(permuted.factors_[0], plain.factors_[0][order], rtol=1e-6, atol=1e-8)
    for a, b in zip(permuted.factors_[1:], plain.factors_[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def check_bad_input_changes_nothing(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    before = fingerprint(model)
    good = table(x, [10])
    bad = {
        "missing .NaN. in record 23": good | {"count": [*good["count"][:-1], float("nan")]},
        "infinite in record 23": good | {"count": [*good["count"][:-1], float("inf")]},
        "no column 'kind'": {key: column for key, column in good.items() if key != "kind"},
        "mode .day. has date labels": good | {"day": list(range(24))},
    }
    for sentence, batch in bad.items():
        with pytest.raises(tt.InputError, match=sentence):
            model.update(batch)
        assert fingerprint(model) == before
    empty = model.update({key: [] for key in good})
    assert empty.entries == 0
    assert fingerprint(model) == before


def check_huge_values_are_refused_unchanged(name):
    x = tensor()
    model = stream_steps(name, 10, x)
    before = fingerprint(model)
    for factor in (1e160, 1e99, 1e75, 1e40):
        batch = table(factor * x, [10])
        try:
            model.update(batch)
        except tt.TensortideError:
            assert fingerprint(model) == before
        else:
            numbers = [*model.factors_, *model._model.memory.values()]
            assert all(np.isfinite(array).all() for array in numbers)
            assert np.isfinite(model.info_.objective)
            model = stream_steps(name, 10, x)


def check_an_interrupt_changes_nothing(name):
    """KeyboardInterrupt at every 7th line of a step."""
    x = tensor()
    model = stream_steps(name, 10, x)
    before = fingerprint(model)
    batch = table(x, [10])
    total = _lines_until(model.copy(), batch, stop_at=-1)
    assert total > 50
    for stop_at in range(3, total, 7):
        with pytest.raises(KeyboardInterrupt):
            _lines_until(model, batch, stop_at)
        if model.n_steps_ == 4:  # it came after the step was complete
            break
        assert fingerprint(model) == before


def _lines_until(model, batch, stop_at):
    """Update, interrupted at a line; return the number of lines of the package that ran."""
    lines = 0

    def count(frame, event, _):
        nonlocal lines
        if event == "line" and "tensortide" in frame.f_code.co_filename:
            lines += 1
            if lines == stop_at:
                raise KeyboardInterrupt
        return count

    gc.disable()  # its callbacks are Python too, and swallow what is raised in them
    sys.settrace(count)
    try:
        model.update(batch)
    finally:
        sys.settrace(None)
        gc.enable()
    return lines


def check_memory_without_history_is_bounded(name):
    """Apart from the new rows of the growing mode, an economy model is as large as before."""
    x = tt.simulate.low_rank((5, 4, 60), 2, seed=0).dense()
    model = tt.OnlineCP(2, name).fit(x[..., :10], max_sweeps=20)

    def size():
        memory = sum(a.nbytes for a in model._model.memory.values())
        return memory + sum(f.nbytes for f in model.factors_[:2])

    model.update(x[..., 10])
    early = size()
    for k in range(11, 60):
        model.update(x[..., k])
    assert size() == early
    assert (model._model.store is not None) == tt.METHODS[name]().keeps_history


def check_docstring(name):
    """Reference with its year, cost, limits, and an example that the doctests run."""
    make = tt.METHODS[name]
    text = make.__doc__
    if name not in ("gocpt", "gocpte", "em_als_decay"):  # those of the GOCPT paper itself
        assert re.search(r"\b(19|20)\d\d\b", text), f"{name}: no reference"
    for word in ("cost", "objective", ">>>") + ("cannot take",) * make().limits.new_cells:
        assert word in text.lower() or f"{word}s" in text, f"{name}: no {word!r}"


ALL = {name: check for name, check in globals().items() if name.startswith("check_")}
