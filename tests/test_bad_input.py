"""Every kind of bad input gets a sentence, and the model is bit by bit what it was."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tensortide as tt
from tests.models import MODES, batches, fingerprint, fitted, unreported_cell

GOOD = {"place": ["p0", "p1"], "day": [3, 4], "delay": [0, 1], "count": [1.0, 2.0]}


def refused(model, sentence, error=tt.InputError, **call):
    before = fingerprint(model)
    with pytest.raises(error, match=sentence):
        model.update(call.pop("records"), **call)
    assert fingerprint(model) == before


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (GOOD | {"count": [1.0, float("nan")]}, "missing .NaN. in record 1"),
        (GOOD | {"count": [float("inf"), 1.0]}, "infinite in record 0"),
        (GOOD | {"count": [1.0, 1e200]}, "scale them down"),
        (GOOD | {"count": ["1", "2"]}, "must hold numbers"),
        ({k: v for k, v in GOOD.items() if k != "delay"}, "no column 'delay'"),
        ({("cuont" if k == "count" else k): v for k, v in GOOD.items()}, "no column 'count'"),
        (GOOD | {"place": [1, 2]}, "mode 'place' has text labels"),
        (GOOD | {"day": ["3", "4"]}, "mode 'day' has integer labels"),
        (GOOD | {"day": [3.5, 4.0]}, "cannot be labels"),
        (GOOD | {"place": ["p0", None]}, "missing in record 1"),
        (GOOD | {"place": ["p0"]}, "different lengths"),
        (7, "must have shape"),
        ("data.csv", "must be a table.*not str"),
        (GOOD | {"place": "p0"}, "must be a list or an array"),
        (GOOD | {"day": 3}, "must be a list or an array"),
    ],
)
def test_bad_records_are_refused_and_change_nothing(method, records, sentence):
    refused(fitted(method), sentence, records=records)


@pytest.mark.parametrize(
    ("coords", "values", "sentence"),
    [
        ([[0, -1]], [1.0], "position -1 in record 0, mode 1"),
        ([[0.5, 1]], [1.0], "0.5 in record 0, mode 0 is not a whole number"),
        ([[0, 2**40]], [1.0], "not between 0 and"),
        ([[float("nan"), 1]], [1.0], "not a whole number"),
        ([["a", "b"]], [1.0], "whole numbers"),
        ([0, 1], [1.0], "shape .n, modes."),
        ([[0]], [1.0], "at least 2 modes"),
        ([[0, 1]], [1.0, 2.0], "1 coords but 2 values"),
        ([[0, 1]], [float("nan")], "NaN"),
    ],
)
def test_bad_batches_are_refused(coords, values, sentence):
    with pytest.raises(tt.InputError, match=sentence):
        tt.Batch(coords, values)


def test_bad_shapes_and_weights_are_refused():
    with pytest.raises(tt.InputError, match="too small in mode 1"):
        tt.Batch([[0, 5]], [1.0], shape=(3, 3))
    with pytest.raises(tt.InputError, match="2 whole numbers"):
        tt.Batch([[0, 5]], [1.0], shape=(3, 3, 3))
    with pytest.raises(tt.InputError, match="negative"):
        tt.Batch([[0, 5]], [1.0], weights=[-1.0])
    with pytest.raises(tt.InputError, match="1 values but 2 weights"):
        tt.Batch([[0, 5]], [1.0], weights=[1.0, 1.0])


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_bad_arrays_are_refused_and_change_nothing(method):
    x = tt.simulate.low_rank((4, 5, 6), 2, seed=0).dense()
    model = tt.OnlineCP(2, method).fit(x[..., :4])
    refused(model, "mask has shape", records=x[..., 4], mask=np.ones((3, 3)))
    refused(model, "1 .observed. and 0", records=x[..., 4], mask=np.full((4, 5), 2))
    refused(model, "must have shape", records=x[:3, :, 4:5])
    refused(model, "must have shape", records=np.ones((2, 2)))
    refused(model, "infinite", records=np.where(x[..., 4:5] > 0, np.inf, 0.0))
    refused(model, "no mode 3", records=x[..., 4], mode=3)
    refused(model, "fitted with positions", records=GOOD)
    nan = np.full((4, 5), np.nan)
    nan[0, 0] = 1.0
    refused(model, "mask says it is observed", records=nan, mask=np.ones((4, 5)))
    refused(model, "the batch has 2 modes", records=tt.Batch([[0, 0]], [1.0]))


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_an_empty_batch_changes_nothing_and_is_no_step(method):
    model = fitted(method)
    before = fingerprint(model)
    info = model.update({"place": [], "day": [], "delay": [], "count": []})
    assert info.entries == 0
    assert fingerprint(model) == before


@pytest.mark.parametrize("rank", [0, -1, 1.5, "3", None, True, 100_000])
def test_bad_ranks_are_refused(rank):
    with pytest.raises(tt.InputError, match="rank must be a whole number from 1 to 1000"):
        tt.OnlineCP(rank)


def test_a_rank_beyond_the_entries_is_refused():
    with pytest.raises(tt.InputError, match="rank 9 is larger than sensible for 4 entries"):
        tt.OnlineCP(9).fit(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "gocptt"}, "no method 'gocptt'; did you mean 'gocpt'"),
        ({"method": "kmeans"}, "no method 'kmeans'; method must be one of"),
        ({"method": 3}, "method must be one of"),
        ({"modes": ["a"]}, "at least 2 modes"),
        ({"modes": "ab"}, "list of column names"),
        ({"modes": ["a", "a"]}, "different names"),
        ({"modes": ["a", "value"]}, "both a mode and the value"),
        ({"absent": "unknown"}, "absent must be one of"),
        ({"duplicates": "first"}, "duplicates must be one of"),
        ({"combine": "multiply"}, "combine must be one of"),
        ({"combine": "add", "method": "gocpte"}, "does not keep; use method='gocpt'"),
        ({"seed": "lucky"}, "seed must be"),
        ({"threads": 0}, "threads must be"),
        ({"absent": "zero", "method": tt.gocpt(forgetting=0.9)}, "fade the zeros"),
    ],
)
def test_bad_parameters_are_refused(options, sentence):
    with pytest.raises(tt.InputError, match=sentence):
        tt.OnlineCP(2, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": -1.0}, "alpha must be a finite number from 0 on"),
        ({"alpha": "density"}, "alpha must be a number"),
        ({"beta": float("nan")}, "beta must be a finite number"),
        ({"sweeps": 0}, "sweeps must be a whole number from 1 on"),
        ({"strategy": "dense"}, "strategy must be"),
        ({"forgetting": 0.0}, "forgetting must lie in"),
        ({"forgetting": 1.5}, "forgetting must lie in"),
    ],
)
def test_bad_method_options_are_refused(options, sentence):
    with pytest.raises(tt.InputError, match=sentence):
        tt.gocpte(**options)


@pytest.mark.parametrize("alpha", [lambda now: -1.0, lambda now: float("nan"), lambda now: "much"])
def test_a_schedule_that_gives_no_weight_is_refused_and_changes_nothing(alpha):
    model = fitted(tt.gocpte(alpha=alpha), prior="paper")
    refused(model, "alpha must be a", records=GOOD)


def test_order_one_is_refused():
    with pytest.raises(tt.InputError, match="at least 2 modes, not 1"):
        tt.OnlineCP(1).fit(np.ones(5))
    with pytest.raises(tt.InputError, match="at least 2 modes, not 1"):
        tt.OnlineCP(1).fit({"a": ["x"], "value": [1.0]})


def test_use_before_data_is_an_error_of_its_own():
    model = tt.OnlineCP(2)
    for use in (
        lambda: model.predict([[0, 0]]),
        lambda: model.factors_,
        lambda: model.save("x"),
        lambda: model.change_rank(3),
        lambda: model.update(retract=[[0, 0]]),
    ):
        with pytest.raises(tt.NotFittedError):
            use()


def test_fit_without_records_says_so():
    with pytest.raises(tt.InputError, match="no records to prepare from"):
        tt.OnlineCP(1).fit({"a": [], "b": [], "value": []})
    with pytest.raises(tt.InputError, match="no records to prepare from"):
        tt.OnlineCP(1).fit(np.full((2, 2), np.nan))


def test_a_failed_fit_keeps_the_old_model():
    model = fitted()
    before = fingerprint(model)
    with pytest.raises(tt.InputError):
        model.fit({"a": [], "b": [], "count": []})
    assert fingerprint(model) == before


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_all_zeros_are_modelled_as_zero_and_can_be_left_again(method):
    x = tt.simulate.low_rank((5, 4, 20), 1, seed=0).dense()
    model = tt.OnlineCP(1, method).fit(np.zeros((5, 4, 3)))
    assert np.abs(model.reconstruct()).max() == 0.0
    model.update(np.zeros((5, 4, 2)))
    assert np.abs(model.reconstruct()).max() == 0.0
    for t in range(20):
        model.update(x[..., t])
    assert model.score(np.concatenate([np.zeros((5, 4, 5)), x], axis=2)) > 0.85


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_huge_and_tiny_values_are_modelled_alike(method):
    x = tt.simulate.low_rank((6, 5, 8), 2, seed=1).dense()
    for scale in (1e60, 1e-3):
        model = tt.OnlineCP(2, method).fit(scale * x[..., :6])
        model.update(scale * x[..., 6:])
        assert model.score(scale * x) > 0.95


def test_a_singular_system_names_mode_and_label_and_changes_nothing():
    first = batches()[0]
    model = tt.OnlineCP(
        2, tt.gocpte(beta=0.0, alpha=0.0), modes=MODES, value="count", prior="paper"
    )
    model.fit(first, max_sweeps=3)
    refused(
        model,
        "mode 'place', label 'lonely': .*singular.*beta > 0",
        error=tt.SolveError,
        records={"place": ["lonely"], "day": [1], "delay": [0], "count": [1.0]},
    )


def test_duplicate_cells_are_counted_or_refused():
    twice = {k: [*v, v[0]] for k, v in GOOD.items()}
    assert fitted().update(twice).duplicates == 1
    refused(fitted(duplicates="error"), "records 0 and 2 are for the same cell", records=twice)


def test_retracting_needs_history_and_known_cells():
    cells = {m: GOOD[m] for m in MODES}
    refused(fitted("gocpte"), "keeps no history", records=None, retract=cells)
    hole = unreported_cell()
    refused(
        fitted("gocpt"),
        f"place '{hole[0]}', day {hole[1]}, delay {hole[2]} cannot be retracted",
        records=None,
        retract={m: [v] for m, v in zip(MODES, hole, strict=True)},
    )
    refused(
        fitted("gocpt"),
        "has no label 'nowhere'",
        records=None,
        retract=cells | {"place": ["nowhere", "p0"]},
    )


def test_parts_of_a_schedule_are_judged_when_made():
    for make in (
        lambda: tt.density(-1),
        lambda: tt.density("q"),
        lambda: tt.per_size(float("nan")),
        lambda: tt.per_size(1, cap=-1),
    ):
        with pytest.raises(tt.InputError):
            make()


def test_a_checked_batch_cannot_be_changed_any_more():
    batch = tt.Batch([[0, 0, 0]], [1.0], weights=[1.0])
    for array in (batch.coords, batch.values, batch.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 99


def test_one_mistyped_position_does_not_make_a_million_rows():
    model = tt.OnlineCP(2, "gocpte").fit(np.random.default_rng(0).random((4, 5, 6)))
    refused(model, "pass shape= to Batch", records=tt.Batch([[0, 0, 2_000_000_000]], [1.0]))


def test_values_that_the_ridge_outweighs_are_refused():
    x = tt.simulate.low_rank((6, 5, 8), 2, seed=1).dense()
    with pytest.raises(tt.InputError, match="ridge beta=1e-05 outweighs"):
        tt.OnlineCP(2, prior="paper").fit(1e-8 * x)
    for model in (tt.OnlineCP(2, tt.gocpt(beta=1e-20), prior="paper"), tt.OnlineCP(2)):
        assert model.fit(1e-8 * x).score(1e-8 * x) > 0.99
    with pytest.warns(tt.TensortideWarning, match="ridge beta=1e-05 weighs .* scale the values up"):
        tt.OnlineCP(1, prior="paper").fit(1e-6 * np.outer([1.0, 2, 3], [1.0, 2, 3]))


@pytest.mark.parametrize(
    "records", ["sales.csv", [{"a": 1}], [("a", 1), ("b", 2)], 5j, [[1], [1, 2]]]
)
def test_input_of_a_wrong_kind_is_named(records):
    with pytest.raises(tt.InputError, match="records must be a table"):
        tt.OnlineCP(1).fit(records)


def test_a_forgotten_value_column_is_named():
    with pytest.raises(tt.InputError, match="no column 'value'.*Pass value="):
        tt.OnlineCP(1).fit({"place": ["a"], "week": [1], "sales": [2.5]})


def test_the_line_of_a_step_tells_everything():
    model = fitted()
    second = batches()[1]
    model.update(second)
    cells = {m: np.asarray(second[m])[:2] for m in MODES}
    assert "2 retracted" in str(model.update(retract=cells))
    twice = {k: [*v, v[0]] for k, v in GOOD.items()}
    assert "1 duplicates combined" in str(model.update(twice))
    assert "not converged" in str(fitted().fit(batches()[0], max_sweeps=1, tol=0.0).info_)


def test_labels_that_are_too_large_or_no_labels_at_all_are_refused():
    refused(fitted(), "beyond 2.63", records=GOOD | {"day": np.array([2**63 + 5, 1], np.uint64)})
    with pytest.raises(tt.InputError, match="list of column names"):
        tt.OnlineCP(2, modes=(m for m in ("a", "b")))
    refused(fitted(), "given by name or number", records=GOOD, mode=1.5)


def test_retiring_everything_or_the_unknown_is_refused():
    model = fitted()
    before = fingerprint(model)
    with pytest.raises(tt.InputError, match="cannot lose all"):
        model.retire("place", list(model.labels_["place"]))
    with pytest.raises(tt.InputError, match="no label 'p77'"):
        model.retire("place", ["p77"])
    with pytest.raises(tt.InputError, match="labels must be a list"):
        model.retire("place", "p0")
    positions = tt.OnlineCP(1).fit(np.ones((3, 3)))
    for wrong in ([1.9], ["a"], [7], [-1]):
        with pytest.raises(tt.InputError):
            positions.retire(0, wrong)
    with pytest.raises(tt.InputError, match="no mode 'town'"):
        model.retire("town", ["p0"])
    assert fingerprint(model) == before


PACKAGE = f"{Path(tt.__file__).parent}{os.sep}"


class Interruptions:
    """Raises KeyboardInterrupt at the n-th line that the package executes."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.lines: Counter[str] = Counter()

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self.lines[frame.f_code.co_name] += 1
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def _steps(method):
    _, second, third, *_ = batches()
    yield lambda model: model.update(third)
    yield lambda model: model.change_rank(3)
    yield lambda model: model.change_rank(1)
    yield lambda model: model.retire("place", ["p1"])
    if method == "gocpt":
        cells = {m: np.asarray(second[m])[:2] for m in MODES}
        yield lambda model: model.update(third, retract=cells)


@pytest.mark.parametrize(
    ("method", "every"),
    [("gocpte", 1), ("gocpt", 3), pytest.param("gocpt", 1, marks=pytest.mark.soak)],
)
def test_an_interrupt_at_any_line_leaves_the_model_as_it_was(method, every):
    """Ctrl-C at every single line of a step that grows, fills and revises, and of the others."""
    first, second, *_ = batches()
    model = tt.OnlineCP(2, method, modes=MODES, value="count").fit(first, max_sweeps=5)
    model.update(second)  # all imports and compilations are done
    before, info = fingerprint(model), model.info_
    for step in _steps(method):
        n_interrupts = 0
        for at in range(1, 100_000, every):
            trial = model.copy()
            if not _interrupted(lambda: step(trial), at):  # noqa: B023 - called at once
                break
            assert fingerprint(trial) == before, f"something changed at line {at}"
            assert trial.info_ == info, f"another report at line {at}"
            n_interrupts += 1
        assert n_interrupts > 10


def _interrupted(step, at: int) -> bool:
    """Run a step with an interrupt at its n-th line; tell whether it came."""
    tracer = sys.gettrace()
    gc.disable()  # its callbacks are Python too, and swallow what is raised in them
    sys.settrace(Interruptions(at))
    try:
        step()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(tracer)
        gc.enable()
    return False
