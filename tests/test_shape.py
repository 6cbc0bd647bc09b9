"""The shape of the house: small files, a listed hall, seven layers, fields with names."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tensortide"
FILES = sorted(SOURCE.rglob("*.py"))

LONGEST = 400  # lines of a file
MOST_LAYERS = 7
MOST_FIELDS = 4  # of a dataclass that may be made by position

#: Modules at the root: what every layer may use, and what stands for the whole.
HALL = {
    "__init__", "__main__", "arrays", "atomic", "datasets", "drawing", "errors", "legacy",
    "markup", "palette", "progress", "validate", "wording",
}  # fmt: skip
#: Names that say nothing about what is in a file.
EMPTY_NAMES = {"utils", "util", "helpers", "common", "base", "misc", "manager"}


def test_files_are_short_enough_to_be_read():
    long = {f.name: n for f in FILES if (n := len(f.read_text().splitlines())) > LONGEST}
    assert not long


def test_the_hall_is_listed():
    assert {f.stem for f in SOURCE.glob("*.py")} <= HALL


def test_names_of_files_say_what_is_in_them():
    assert not {f.stem for f in FILES} & EMPTY_NAMES


def _contracts():
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["importlinter"]


def test_there_are_seven_layers_and_no_exemption():
    settings = _contracts()
    assert all("ignore_imports" not in contract for contract in settings["contracts"])
    for contract in settings["contracts"]:
        if contract["type"] == "layers":
            assert len(contract["layers"]) <= MOST_LAYERS
    layers = " | ".join(settings["contracts"][0]["layers"]).split(" | ")
    packages = {f"tensortide.{f.parent.name}" for f in SOURCE.glob("*/__init__.py")}
    assert packages | {"tensortide.datasets"} == set(layers)


def test_every_folder_of_the_core_has_its_layer():
    (inner,) = [c for c in _contracts()["contracts"] if c.get("containers")]
    layers = set(" | ".join(inner["layers"]).split(" | "))
    assert layers == {f.parent.name for f in (SOURCE / "core").glob("*/__init__.py")}
    assert {f.name for f in (SOURCE / "core").glob("*.py")} == {"__init__.py"}


def test_leaves_are_all_in_their_contract():
    (leaves,) = [c for c in _contracts()["contracts"] if c["type"] == "forbidden"]
    expected = {f"tensortide.{name}" for name in HALL if not name.startswith("__")}
    there = {f"tensortide.{f.stem}" for f in SOURCE.glob("*.py")}
    assert set(leaves["source_modules"]) == (expected & there) - {"tensortide.datasets"}


def _dataclasses(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for decorator in node.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                name = call.func if call else decorator
                if isinstance(name, ast.Name) and name.id == "dataclass":
                    words = {k.arg: k.value for k in call.keywords} if call else {}
                    yield node, words


def _by_position(node):
    """The fields that a record can be given without their names."""
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or "ClassVar" in ast.dump(field):
            continue
        if isinstance(field.annotation, ast.Name) and field.annotation.id == "KW_ONLY":
            return
        if "init=False" not in ast.unparse(field):
            yield field


def test_records_of_many_fields_are_made_by_name():
    by_position = []
    for file in FILES:
        for node, words in _dataclasses(ast.parse(file.read_text())):
            own = any(isinstance(f, ast.FunctionDef) and f.name == "__init__" for f in node.body)
            named = own or ("kw_only" in words and words["kw_only"].value)
            if not named and len(list(_by_position(node))) > MOST_FIELDS:
                by_position.append(f"{file.relative_to(SOURCE)}: {node.name}")
    assert not by_position


def test_layers_stand_whole_where_people_look():
    layers = [layer.replace("tensortide.", "") for layer in _contracts()["contracts"][0]["layers"]]
    for page in ("CONTRIBUTING.md", "docs/architecture.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert all(layer in text for layer in layers), page
