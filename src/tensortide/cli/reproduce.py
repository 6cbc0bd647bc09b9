"""`tensortide reproduce`: the paper's tables and figures."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from tensortide.atomic import write_whole
from tensortide.errors import FileError, InputError, NoDataError
from tensortide.experiments import run
from tensortide.experiments.figures import draw
from tensortide.experiments.nowcast_study import STUDIES, run_study
from tensortide.experiments.scenario import Scenario, load_scenario, names
from tensortide.experiments.tables import table
from tensortide.palette import plotting
from tensortide.progress import Bar


def reproduce(
    experiment: str, *, seeds: int, quick: bool, out: Path, document: Path | None, as_json: bool
) -> None:
    """Run one scenario or all of them; results that are there already are not made again."""
    if experiment in STUDIES:
        _study(experiment, out, document, quick=quick)
        return
    wanted = names() if experiment == "all" else [experiment]
    scenarios = [load_scenario(name) for name in wanted]
    seeds = 1 if quick else seeds
    text = None if document is None else _read(document)
    for name in wanted if text is not None else ():
        _insert(text, name, "")  # refuses a page without marks before anything runs
    _make_folder(out)
    plotting()  # refuses before anything runs
    todo = {s.name: run.keys(s, seeds, quick=quick) for s in scenarios}
    errors = Console(stderr=True)
    total = sum(map(len, todo.values()))
    with Bar(total, "starting", counted=True, screen=errors) as bar:
        for scenario in scenarios:
            stem = out / (scenario.name + ("-quick" if quick else ""))
            file = stem.with_suffix(".jsonl")
            tell = _teller(bar, scenario.name)
            try:
                run.run_scenario(scenario, seeds, file, quick=quick, tell=tell)
            except NoDataError as error:
                if experiment != "all":
                    raise
                errors.print(f"{scenario.name} is left out: {error}", soft_wrap=True)
                continue
            except KeyboardInterrupt:
                kept = len(_select(run.read_rows(file), todo[scenario.name]))
                errors.print(_interruption(file, kept, len(todo[scenario.name])), soft_wrap=True)
                raise SystemExit(130) from None
            rows = _select(run.read_rows(file), todo[scenario.name])
            markdown = table(scenario, rows)
            write_whole(stem.with_suffix(".md"), f"# {scenario.title}\n\n{markdown}\n".encode())
            files = draw(scenario, rows, out, stem.name)
            _show(scenario, markdown, files, rows, as_json=as_json)
            if text is not None:
                text = _insert(text, scenario.name, markdown)
    if document is not None and text is not None:
        write_whole(document, text.encode())


def _study(name: str, out: Path, document: Path | None, *, quick: bool) -> None:
    """Run a study of nowcasts: tables to the screen and into the document, pictures to files."""
    text = None if document is None else _read(document)
    if document is not None:
        _insert(text, name, "")
    _make_folder(out)
    plotting()
    markdown, files = run_study(STUDIES[name], out, quick=quick)
    kept = out / f"{name}.md"
    write_whole(kept, f"# {STUDIES[name].title}\n\n{markdown}\n".encode())
    print(f"\n{STUDIES[name].title}\n\n{markdown}")
    print("\ntable and figures: " + ", ".join(map(str, [kept, *files])), flush=True)
    if document is not None:
        write_whole(document, _insert(text, name, markdown).encode())


def _teller(bar: Bar, name: str) -> run.Tell:
    """Return what a finished run calls: it moves the bar, or writes a line."""

    def tell(what: str) -> None:
        bar.advance(f"{name}: {what}"[:60])
        if not bar.shown:
            print(f"{bar.done}/{bar.total} {name}: {what}", file=sys.stderr)

    return tell


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{out}: no results can be written there: {error.strerror}.") from None


def _interruption(file: Path, kept: int, total: int) -> str:
    if not kept:
        return "interrupted before the first result; the same command begins again."
    kept_where = f"{kept} of {total} runs are in {file}"
    return f"interrupted: {kept_where}; the same command goes on from there."


def _select(rows: list[dict[str, Any]], keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if any(key.items() <= row.items() for key in keys)]


def _show(
    scenario: Scenario, markdown: str, files: list[Path], rows: list[dict[str, Any]], *,
    as_json: bool,
) -> None:  # fmt: skip
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    print(f"\n{scenario.title}\nin the paper: {scenario.reference}\n\n{markdown}")
    print("\nfigure: " + ", ".join(map(str, files)), flush=True)


def _read(document: Path) -> str:
    if not document.is_file():
        raise FileError(f"{document}: there is no such file.")
    return document.read_text(encoding="utf-8")


def _insert(text: str | None, name: str, markdown: str) -> str:
    """Put the tables between the marks of a scenario."""
    begin, end = f"<!-- results: {name} -->", "<!-- end of results -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if text is None or not pattern.search(text):
        raise InputError(f"the document has no marks {begin} ... {end}.")
    return pattern.sub(lambda _: f"{begin}\n\n{markdown}\n\n{end}", text)
