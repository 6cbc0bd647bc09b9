"""Methods and rivals in one table: `tensortide.compare`, and what the command shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.errors import InputError
from tensortide.experiments.compare import (
    CONTENDERS,
    Task,
    final_cells,
    judge_method,
    judge_rival,
    method_of,
    prepare,
)
from tensortide.experiments.compare_result import Result, rank_of, say_who_needs_no_model
from tensortide.experiments.compare_text import in_words
from tensortide.experiments.rivals import RIVALS
from tensortide.methods.registry import method_named
from tensortide.progress import Bar
from tensortide.sources.cut import Cut
from tensortide.sources.memory import arrow_tables
from tensortide.sources.roles import find_roles
from tensortide.sources.whole import read_source
from tensortide.validate import check_choice, check_columns_differ

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.data.tables import TableLike
    from tensortide.experiments.cut_table import Steps
    from tensortide.online.parameters import Absent, Duplicates

#: Results that are lists by step; a table has one number of each.
_BY_STEP = ("errors", "errors_after", "errors_held")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How methods and rivals did on the same steps: `rows`, the best first.

    `notes` say where a rival is as good as the best method, `guessed` what nobody had said, and
    `fibre` names the modes by which rivals look back.  Printed, it is the table.
    """

    task: Task
    steps: Steps
    rows: list[Result]
    notes: list[str]
    fibre: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Result:
        """Return the row of a method or a rival."""
        for row in self.rows:
            if row.method == name:
                return row
        raise KeyError(name)

    def to_table(self) -> pa.Table:
        """Return a table with a row for each method and rival, best first."""
        import pyarrow as pa

        rows = [{k: v for k, v in asdict(r).items() if k not in _BY_STEP} for r in self.rows]
        for row in rows:
            row["parameters"] = ", ".join(f"{k}={v}" for k, v in row["parameters"].items())
            row["notes"] = " ".join(row["notes"])
        return pa.Table.from_pylist(rows)

    def plot(self, file: str | Path, title: str = "comparison") -> None:
        """Write the picture, errors step by step; the ending of the name says what kind."""
        from tensortide.experiments.compare_figure import draw

        draw(self, Path(file), title)

    def __str__(self) -> str:
        """Return the table with what its columns mean."""
        return in_words(self)


def compare(
    records: TableLike | str | Path,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    step_by: str | None = None,
    rank: int = 5,
    start: float = 0.5,
    methods: str | Sequence[str] | None = None,
    rivals: bool = True,
    absent: Absent = "missing",
    duplicates: Duplicates = "last",
    hold_out: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Compare methods with each other, and with what needs no model, on one's own records.

    Each batch is predicted, then learned.  Records are a table or the path of files; a step is
    each value of the column `step_by`: without it the only mode of dates, else the last mode.  The
    leading share `start` of the steps is the preparation.  A tenth of the later cells (`hold_out`)
    is never learned, to judge by, unless the preparation has no hole.  `methods` is a name of
    ``tensortide.METHODS`` or some of them, one with " (paper)" is with the paper's prior and one
    with " (fibres)" with a memory of fibres; None: all.  Rivals are the last value and the mean of
    the same fibre, its value a season ago, and additive effects of the labels.

    >>> import numpy as np, tensortide as tt
    >>> days = np.datetime64("2026-01-05") + np.arange(40).repeat(6)
    >>> place = np.tile(np.arange(6), 40)
    >>> week = np.tile([5.0, 5, 5, 5, 5, 2, 1], 6)[:40].repeat(6)
    >>> records = {"place": place, "day": days, "count": week * (1 + place)}
    >>> found = tt.compare(records, rank=1, methods=["gocpt"], progress=False)
    >>> found.guessed[-1]
    'steps: one step for each day (the only column of dates)'
    >>> [row.method for row in found.rows if row.kind == "rival"][0]
    'seasonal naive'
    >>> round(found["last value"].error, 2), round(found["seasonal naive"].error, 2)
    (0.42, 0.0)
    """
    table = read_source(str(records)) if isinstance(records, str | Path) else _one_table(records)
    task, said = task_of(
        table, modes, value, step_by, rank=rank, start=start, absent=absent,
        duplicates=duplicates, seed=seed, hold_out=hold_out,
    )  # fmt: skip
    return contest(task, methods, rivals=rivals, guessed=said, progress=progress)


def task_of(
    table: pa.Table,
    modes: Sequence[str] | None,
    value: str | None,
    step_by: str | None,
    **settings: Any,
) -> tuple[Task, tuple[str, ...]]:
    """Complete what was said about the columns, as a tracked run does, and say what was guessed."""
    check_choice("absent", settings["absent"], ("missing", "zero"))
    for name, most in (("start", 1.0), ("hold_out", 0.9)):
        if settings[name] is not None and not 0.0 <= settings[name] <= most:
            raise InputError(f"{name} must lie in [0, {most:g}], not {settings[name]!r}.")
    if settings["start"] == 1.0:
        raise InputError(
            "start=1 makes all steps the preparation, and no step is left to be predicted; take a "
            "smaller share, such as start=0.5, or start=0 to prepare on the first step alone."
        )
    check_columns_differ(table.column_names)
    if not table.num_rows:
        raise InputError("there are no records.")
    counting = settings["duplicates"] == "count"
    if value is None and not counting and "value" in set(table.column_names) - set(modes or ()):
        value = "value"
    cut = None if step_by is None else Cut(column=step_by)
    roles = find_roles(table, modes, value, cut, counting=counting, several=False)
    said, column = list(roles.said), roles.cut.column
    if column is None:  # a run takes so many records a step then
        column = roles.modes[-1]
        said[-1] = f"steps: {Cut(column=column)} (the last mode; see --step-by)"
    task = Task(
        table=table, modes=roles.modes, value=roles.value or "value", step_by=column, **settings
    )
    return task, tuple(said)


def contenders(methods: str | Sequence[str] | None) -> list[str]:
    """Return the methods to run, all by default; refuse a name that there is not."""
    methods = [methods] if isinstance(methods, str) else methods
    names = list(CONTENDERS) if methods is None else list(methods)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"methods are given by their names, such as 'gocpt', not {name!r}.")
        method_named(method_of(name))
    if not names:
        raise InputError("there is no method to compare; leave methods out for all of them.")
    return names


def contest(
    task: Task,
    methods: str | Sequence[str] | None = None,
    *,
    rivals: bool = True,
    guessed: tuple[str, ...] = (),
    progress: bool | None = None,
    tell: Callable[[Result], None] = lambda _: None,
) -> Comparison:
    """Run methods and rivals one after the other; `tell` is given each result."""
    names = contenders(methods)
    steps = task.steps()
    start, final = prepare(task, steps, progress=progress), final_cells(task, steps)
    coded = task.coded(steps) if rivals else None
    n, results = len(steps.batches), []
    with Bar((len(names) + len(RIVALS) * rivals) * n, show=progress) as bar:
        for name in names if coded is None else (*names, *RIVALS):
            bar.tell(name)
            if coded is not None and name in RIVALS:
                results.append(judge_rival(name, coded, bar.advance))
            else:
                results.append(judge_method(task, name, steps, start, final, bar.advance))
            bar.tell(done=len(results) * n)
            tell(results[-1])
    if all(r.refused is not None for r in results):
        raise InputError(f"no method could run; the first said: {results[0].refused}")
    notes = say_who_needs_no_model(results)
    return Comparison(
        task=task, steps=steps, rows=sorted(results, key=rank_of), notes=notes,
        fibre=() if coded is None else coded.names, guessed=guessed,
    )  # fmt: skip


def _one_table(records: Any) -> pa.Table:
    import pyarrow as pa

    tables = list(arrow_tables(records))
    if not tables:
        raise InputError("there are no records.")
    return pa.concat_tables(tables, promote_options="permissive")
