"""Every method keeps the contract of tests/checks.py."""

from __future__ import annotations

import inspect

import pytest

import tensortide as tt
from tensortide.methods.registry import by_name
from tests.checks import ALL


@pytest.mark.parametrize("check", ALL)
@pytest.mark.parametrize("name", tt.METHODS)
def test_contract(name, check, tmp_path):
    wants_folder = "folder" in inspect.signature(ALL[check]).parameters
    ALL[check](name, *([tmp_path] if wants_folder else []))


def test_every_method_of_the_paper_is_there():
    assert set(tt.METHODS) == {
        "gocpt", "gocpte", "cpc_als", "em_als", "em_als_decay", "online_cpd", "mast", "cp_stream",
        "rlst", "sdt", "online_sgd", "olstec",
    }  # fmt: skip


def test_a_string_picks_the_defaults():
    for name, make in tt.METHODS.items():
        assert make().name == name
        assert getattr(tt, name) is make


OTHER = {"strategy": "rows", "structured": False, "non_negative": True, "sweeps": 3, "growth": 1.5}


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, p) for name, make in tt.METHODS.items() for p in inspect.signature(make).parameters],
)
def test_a_method_shows_exactly_the_parameter_that_was_set(name, parameter):
    make = tt.METHODS[name]
    value = OTHER.get(parameter, 0.37)
    assert by_name(make()) == name
    assert repr(make()) == f"<method {name}>"
    for text in (
        repr(by_name(make(**{parameter: value}))),
        repr(tt.OnlineCP(2, make(**{parameter: value}), prior="paper")),
    ):
        said = tt.constant(value) if parameter == "alpha" else value
        assert f"<method {name}: {parameter}={said!r}>" in text


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (tt.olstec, {"forgetting": 1.5}, "forgetting must lie in"),
        (tt.rlst, {"forgetting": 0.0}, "forgetting must lie in"),
        (tt.em_als_decay, {"gamma": 2.0}, "gamma must lie in"),
        (tt.cp_stream, {"mu": -1.0}, "mu must"),
        (tt.online_sgd, {"step": 0.0}, "step must be larger"),
        (tt.online_sgd, {"step": "fast"}, "step must be a number"),
        (tt.mast, {"nuclear": -1.0}, "nuclear norm must"),
        (tt.mast, {"sweeps": 0}, "sweeps must be"),
        (tt.mast, {"growth": 0.5}, "growth must"),
        (tt.online_cpd, {"beta": float("nan")}, "beta must"),
    ],
)
def test_parameters_of_methods_are_judged(make, options, message):
    with pytest.raises(tt.InputError, match=message):
        make(**options)


@pytest.mark.parametrize("name", ["online_cpd", "olstec", "rlst"])
def test_methods_with_sums_refuse_another_shape(name):
    from tests.checks import stream_steps

    model = stream_steps(name, 10)
    with pytest.raises(tt.InputError, match=f"'{name}' remembers the past.*gocpte"):
        model.change_rank(3)
    with pytest.raises(tt.InputError, match=f"'{name}' remembers the past.*gocpte"):
        model.retire("place", ["place 0"])
    model.retire("day", [model.labels_["day"][0]])
    assert model.shape_ == (6, 4, 9)


@pytest.mark.parametrize("name", ["online_cpd", "mast", "gocpt"])
def test_init_is_judged(name):
    model = tt.OnlineCP(2, name)
    with pytest.raises(tt.InputError, match="shape 3 x 2, 4 x 2, not 3 x 2, 5 x 2"):
        model.fit([[1.0] * 4] * 3, init=[[[1, 1]] * 3, [[1, 1]] * 5], max_sweeps=0)
    with pytest.raises(tt.InputError, match="not finite"):
        model.fit([[1.0] * 4] * 3, init=[[[1, 1]] * 3, [[1, float("nan")]] * 4], max_sweeps=0)
    with pytest.raises(tt.InputError, match="list of factors"):
        model.fit([[1.0] * 4] * 3, init="random", max_sweeps=0)


def test_growth_of_another_mode_names_both_modes():
    from tests.checks import stream_steps

    model = stream_steps("olstec", 10)
    with pytest.raises(tt.InputError, match="so far 'day'.*mode 'place'.*gocpte"):
        model.update({"place": ["x"], "kind": ["a"], "day": model.labels_["day"][:1], "count": [1]})
    with pytest.raises(tt.InputError, match="'olstec' needs a new label"):
        model.update(
            {"place": ["place 1"], "kind": ["a"], "day": model.labels_["day"][:1], "count": [1]}
        )


def test_a_method_of_an_older_file_is_read():
    """Files of 0.4.0 call the decay of a recipe forgetting."""
    from tensortide.methods.registry import describe, from_description

    facts = describe(tt.gocpt(forgetting=0.9))
    older = {"forgetting" if name == "decay" else name: value for name, value in facts.items()}
    assert older != facts
    assert from_description(older) == from_description(facts) == tt.gocpt(forgetting=0.9)
