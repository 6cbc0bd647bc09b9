"""A scenario: one table or figure of the paper, read from a file of plain data."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from typing import Any

from tensortide.core.steps.alpha import per_size
from tensortide.core.steps.method import Method
from tensortide.errors import InputError
from tensortide.methods.registry import METHODS


@dataclass(frozen=True)
class Contender:
    """A method with its options, and the grid from which one option is chosen."""

    method: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    choose: Mapping[str, list[float]] = field(default_factory=dict)

    def make(self, **chosen: float) -> Method:
        """Return the method."""
        options = dict(self.options) | chosen
        alpha = options.get("alpha")
        if isinstance(alpha, Mapping):
            options["alpha"] = per_size(alpha["per_size"], alpha.get("cap"))
        return METHODS[self.method](**options)


@dataclass(frozen=True)
class Source:
    """A data set of a scenario, with what the paper reports for it: fitness and seconds."""

    name: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What to run, and how it is scored.

    `setting`: "general" (a reporting triangle), "factorization", "completion", "ablation" or
    "complexity".
    """

    name: str
    title: str
    reference: str
    setting: str
    data: tuple[Source, ...]
    contenders: tuple[Contender, ...]
    rank: int = 5
    start: float = 0.1
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    def label_of(self, source: Source, *, quick: bool) -> str:
        """Return the label of a data set; of the small version, with its own size and density."""
        label = source.label
        if not quick:
            return label
        if "observed" in self.quick:
            label = re.sub(r"[\d.]+ % obs", f"{100 * self.quick['observed']:g} % obs", label)
        if "shape" in self.quick:
            label = re.sub(r"\d+ x \d+ x \d+", " x ".join(map(str, self.quick["shape"])), label)
        return f"{label}, quick version"


def names() -> list[str]:
    """Return the scenarios there are."""
    folder = files("tensortide.experiments") / "scenarios"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith("toml"))


def load_scenario(name: str) -> Scenario:
    """Read a scenario by name."""
    if name not in names():
        near = get_close_matches(name.replace("_", "-").lower(), names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}."
        raise InputError(f"there is no experiment {name!r}; {hint}")
    text = (files("tensortide.experiments") / "scenarios" / f"{name}.toml").read_text()
    facts = tomllib.loads(text)
    data = tuple(Source(**source) for source in facts.pop("data"))
    methods = tuple(Contender(**{"label": m["method"]} | m) for m in facts.pop("methods"))
    return Scenario(name=name, data=data, contenders=methods, **facts)
