"""`tensortide demo`: the whole story on simulated reports, killed and resumed on the way."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tensortide.cli.inspect import print_components
from tensortide.errors import FileError
from tensortide.nowcast.nowcaster import Nowcaster
from tensortide.nowcast.triangle import Triangle
from tensortide.report.pages.nowcast import write_nowcast_page
from tensortide.report.pages.run import write_report
from tensortide.simulate.hospital import N_DELAYS, admissions, expected
from tensortide.tracker.ledger import FILE
from tensortide.tracker.tracker import Tracker

DAYS, FIRST, KILLED_AFTER, WARM_UP, AHEAD = 120, 14, 40, 20, 7
FIRST_REPORTS = "first-reports.csv"
_MARK = "made-by-tensortide-demo"


def run_demo(*, seed: int, rank: int, out: Path) -> None:
    """Simulate, track, kill, resume, ask, nowcast, report."""
    console = Console(highlight=False)
    folder = _make_folder(out)
    console.print(
        f"1. {DAYS} days of hospital reports are simulated: admissions by place, age, date and "
        "delay, with waves, weekdays, late reports, corrections, and places that join on the "
        "way. One CSV file a day, as a health office would get them."
    )
    n_records = write_reports(folder / "reports", seed)
    size = sum(f.stat().st_size for f in (folder / "reports").iterdir()) / 1e6
    console.print(f"   {folder / 'reports'}: {n_records:,} records, {size:.1f} MB\n")
    words = ["track", str(folder / "reports"), "--into", str(folder / "run"),
             "--modes", "place,age,date,delay", "--value", "count", "--rank", str(rank),
             "--first", str(FIRST), "--step-files"]  # fmt: skip
    console.print(
        "2. They are tracked, and the process is killed on purpose (kill -9). On a new machine "
        "this compiles for some seconds first."
    )
    console.print(f"   $ tensortide {' '.join(words)}", soft_wrap=True)
    step = _track_and_kill(words, folder / "run")
    console.print(f"   killed after step {step}.\n")
    console.print("3. The same command again. It goes on where the ledger ends; nothing is lost "
                  "and nothing is learned twice.")  # fmt: skip
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-m", "tensortide", *words], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    with Tracker.open(folder / "run", read_only=True) as tracker:
        console.print("\n4. Who is in each component, strongest first:")
        print_components(tracker.model.components(top=2), console)
        console.print(
            "5. What is not reported yet: the last days, all places and ages together, with the "
            "range in which the final count will lie. (It was simulated, so its mean is known.)"
        )
        console.print(_nowcast(folder, seed))
        console.print(
            f"6. What comes next: the first reports of the next {AHEAD} days, all places and ages "
            "together."
        )
        console.print(_forecast(tracker, folder, seed))
        write_report(tracker, folder / "report.html", "Admissions (simulated)")
    console.print(
        "7. Is a model worth having? The same method beside what anybody would try first; each day "
        "is predicted, then learned. (tensortide compare has all methods.)"
    )
    console.print(_beside_rivals(folder / "reports", rank))
    page = (folder / "report.html").resolve()
    console.print(f"8. The reports for people: open {page}", soft_wrap=True)
    console.print(f"   and {page.with_name('nowcast.html')}", soft_wrap=True)
    name = "tensortide" if shutil.which("tensortide") else sys.argv[0]
    console.print(
        "\nNow with your own file, one row a value (the columns are guessed and said):\n"
        f"   {name} track your.csv --into run   "
        "(--step-by COLUMN: a step for each of its values; --first N: begin with N steps)\n"
        f"   {name} info run\n"
        f"   {name} report run -o page.html\n"
        f"   {name} nowcast your.csv --reference date --report report_date --count n",
        soft_wrap=True,
    )


def _make_folder(out: Path) -> Path:
    """Make the folder; one of an earlier demo is made anew, any other is left alone."""
    if out.exists() and not (out / _MARK).is_file():
        raise FileError(f"{out}: is there already and not from a demo; choose another with -o.")
    try:
        for name in ("reports", "run"):
            shutil.rmtree(out / name, ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / _MARK).write_text("This folder may be deleted.\n")
    except OSError as error:
        raise FileError(
            f"{out}: cannot be made: {error.strerror}; choose another with -o."
        ) from None
    return out


def write_reports(folder: Path, seed: int) -> int:
    """Write one file a day and return the number of records.

    Beside the folder, one file has what was new on each day, without the corrections, whose
    records repeat a count: that is what a nowcast starts from.
    """
    from pyarrow import csv

    folder.mkdir()
    total, first = 0, []
    for day in admissions(DAYS, seed=seed):
        table = pa.table(day)
        total += table.num_rows
        csv.write_csv(table, folder / f"{day['reported'][0]}.csv")
        late = (day["reported"] - day["date"]).astype(int)
        first.append(table.filter(pa.array(late == day["delay"])).drop_columns("delay"))
    csv.write_csv(pa.concat_tables(first), folder.parent / FIRST_REPORTS)
    return total


def _track_and_kill(words: list[str], run: Path) -> int:
    """Track in a process of its own and kill it when some steps are in the ledger."""
    process = subprocess.Popen([sys.executable, "-m", "tensortide", *words])
    while process.poll() is None and _steps(run) < KILLED_AFTER:
        time.sleep(0.01)
    process.kill()
    process.wait()
    if sys.stderr.isatty():
        print("\x1b[?25h\x1b[2K\r", end="", file=sys.stderr)  # the bar had hidden the cursor
    return _steps(run)


def _steps(run: Path) -> int:
    if not (run / FILE).is_file():
        return 0
    with Tracker.open(run, read_only=True) as tracker:
        return tracker.model.n_steps_ if tracker.fitted else 0


def _nowcast(folder: Path, seed: int) -> Table:
    """Nowcast the last day from the reports as they were first published; write the page."""
    from tensortide.sources.whole import read_source

    triangle = Triangle.from_table(
        read_source(str(folder / FIRST_REPORTS)), reference="date", report="reported",
        count="count", strata=["place", "age"], max_delay=N_DELAYS - 1,
    )  # fmt: skip
    nowcaster = Nowcaster()
    for back in range(WARM_UP, -1, -1):
        nowcast = nowcaster.update(triangle.as_of(triangle.as_of_date - back))
    write_nowcast_page(nowcast, folder / "nowcast.html", "Admissions (simulated), nowcast")
    table = _table("date", "reported so far", "nowcast", "95 % interval", "simulated mean")
    truth = expected(DAYS, seed=seed).sum(axis=(0, 1, 3))
    found = nowcast.quantiles((0.025, 0.5, 0.975))
    for age in (3, 2, 1, 0):
        reported, low, middle, high = found.texts(0, age)
        cells = (reported, middle, f"{low} to {high}")
        table.add_row(str(found.dates[age]), *cells, f"{truth[-1 - age]:,.0f}")
    return table


def _forecast(tracker: Tracker, folder: Path, seed: int) -> Table:
    """Forecast what will be reported on the day itself, for the days to come."""
    from tensortide.sources.whole import read_source

    ahead = tracker.model.forecast(AHEAD, mode="date", where={"delay": [0]})
    sums, before = _sums(ahead, "value"), read_source(str(folder / FIRST_REPORTS))
    same_day = pc.equal(before["date"], before["reported"])
    reported = _sums(before.filter(same_day), "count")
    table = _table("date", "reported a week before", "forecast", "simulated mean")
    truth = expected(DAYS + AHEAD, seed=seed)[:, :, DAYS:, 0].sum(axis=(0, 1))
    for date, mean in zip(sorted(sums), truth, strict=True):
        numbers = (reported[date - dt.timedelta(days=7)], sums[date], mean)
        table.add_row(str(date), *(f"{number:,.0f}" for number in numbers))
    return table


def _sums(table: pa.Table, column: str) -> dict[dt.date, float]:
    """Add a column up by date."""
    found = table.group_by("date").aggregate([(column, "sum")])
    return dict(zip(found["date"].to_pylist(), found[f"{column}_sum"].to_pylist(), strict=True))


def _beside_rivals(reports: Path, rank: int) -> Table:
    """Compare the method of the run with rivals that need no model."""
    from tensortide.experiments.comparison import compare
    from tensortide.sources.whole import read_source

    found = compare(
        read_source(str(reports)), modes=["place", "age", "date", "delay"], value="count",
        step_by="reported", rank=rank, methods=["gocpte"], progress=False,
    )  # fmt: skip
    table = _table("", "error of new cells", "error of cells held out")
    for one in found.rows:
        table.add_row(one.method, *(f"{e:.3f}" for e in (one.error, one.error_held) if e))
    return table


def _table(*headers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, justify="right" if header else "left")
    return table
