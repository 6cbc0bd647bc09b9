"""`tensortide nowcast` as a person uses it: tables, files, pages, mistakes."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import termios

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import tensortide as tt
from tests.cli.conftest import started, wait_for


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A CSV file of simulated reports, with report dates and delays."""
    days = list(tt.simulate.admissions(days=45, seed=1, corrected=0.0))
    table = {name: np.concatenate([day[name] for day in days]) for name in days[0]}
    path = tmp_path_factory.mktemp("reports") / "reports.csv"
    pacsv.write_csv(pa.table(table), path)
    return path


WORDS = ["--strata", "place,age", "--max-delay", "7", "--warm-up", "3", "--ranks", "2"]


def test_a_table_of_today_with_its_intervals(run, reports):
    done = run("nowcast", str(reports), *WORDS, "--report", "reported")
    assert done.returncode == 0, done.stderr
    assert "guessed --reference date" in done.stderr
    assert "guessed --count count" in done.stderr
    for words in (
        "As of 2026-02-18",
        "reported so far",
        "median",
        "50 % interval",
        "95 % interval",
    ):
        assert words in " ".join(done.stdout.split())
    assert any(line.split()[:1] == ["2026-02-18"] for line in done.stdout.splitlines())


def test_delays_in_place_of_report_dates_say_the_same(run, reports):
    by_date = run("nowcast", str(reports), *WORDS, "--report", "reported")
    by_delay = run("nowcast", str(reports), *WORDS, "--delay", "delay")
    assert by_date.stdout == by_delay.stdout


def test_files_and_a_page_are_written(run, reports, tmp_path):
    out, page = tmp_path / "q.csv", tmp_path / "page.html"
    done = run(
        "nowcast", str(reports), *WORDS, "--report", "reported", "--page", str(page),
        "--as-of", "2026-02-10", "-o", str(out),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pacsv.read_csv(out)
    assert {"as_of", "place", "age", "date", "reported", "median", "q0.025"} <= set(
        table.column_names
    )
    text = page.read_text()
    assert "Nowcast of reports.csv" in text
    assert 'src="http' not in text


def test_the_hub_format_for_a_range_of_days(run, reports, tmp_path):
    out = tmp_path / "hub.parquet"
    done = run(
        "nowcast", str(reports), *WORDS, "--from", "2026-02-10", "--to", "2026-02-11",
        "-o", str(out), "--format", "hub",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table(out)
    assert table.column_names == [
        "location", "age_group", "forecast_date", "target_end_date", "quantile", "value",
    ]  # fmt: skip
    assert {str(d) for d in table["forecast_date"].to_pylist()} == {"2026-02-10", "2026-02-11"}


def test_a_replay_is_a_table_of_scores(run, reports):
    done = run(
        "nowcast", str(reports), *WORDS, "--from", "2026-02-08", "--to", "2026-02-10", "--replay",
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {r["model"] for r in rows} == {
        "tensortide", "unadjusted", "chain-ladder", "chain-ladder pooled", "chain-ladder weekday",
    }  # fmt: skip
    assert {r["level"] for r in rows} == {"all", "place", "age", "place x age"}


def test_json_is_a_line_per_unit_and_date(run, reports):
    done = run("nowcast", str(reports), *WORDS, "--json", "--sum", "7")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"date", "reported", "median"} <= set(rows[0])


def test_a_line_list_is_counted(run, tmp_path):
    rows = ["onset,seen"] + [f"2026-01-{1 + k % 20:02d},2026-01-{1 + k % 20 + k % 3:02d}"
                             for k in range(200)]  # fmt: skip
    path = tmp_path / "cases.csv"
    path.write_text("\n".join(rows))
    done = run(
        "nowcast", str(path), "--line-list", "--reference", "onset", "--report", "seen",
        "--max-delay", "4", "--ranks", "1", "--warm-up", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "As of 2026-01-22" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--reference", "day"], "there is no column 'day'"),
        (["--as-of", "2020-01-01"], "as-of dates must lie between 2026-01-06"),
        (["--as-of", "soon"], "must be a date such as"),
        (["--as-of", "2026-02-01", "--from", "2026-02-01"], "either --as-of, or --from and --to"),
        (["-o", "q.xlsx"], "must end with .csv, .parquet or .arrow"),
        (["-o", "nowhere/q.csv"], "there is no folder nowhere"),
        (["--format", "excel"], "--format must be table or hub"),
        (["--format", "hub"], "name one with -o"),
        (["--every", "hour"], "every must be one of"),
        (["--strata", "town"], "there is no column 'town'"),
    ],
)
def test_a_mistake_is_one_sentence(run, reports, words, said):
    base = [w for w in WORDS if not (words[0] == "--strata" and w in ("--strata", "place,age"))]
    done = run("nowcast", str(reports), *base, *words)
    assert done.returncode == 2, done.stdout
    assert said in " ".join(done.stderr.split())


def test_columns_that_cannot_be_guessed_are_asked_for(run, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("when,how_late,how_many\n2026-01-01,0,3\n")
    done = run("nowcast", str(path))
    assert done.returncode == 2
    assert "say which column holds the reference date" in " ".join(done.stderr.split())
    done = run("nowcast", str(path), "--reference", "when", "--delay", "how_late")
    assert "say which column holds the counts" in " ".join(done.stderr.split())


def test_columns_are_guessed_whatever_their_capitals(run, tmp_path):
    rows = ["Date,Report_Date,Cases"]
    for k in range(1, 21):
        rows += [f"2026-01-{k:02d},2026-01-{k + d:02d},{9 >> d}" for d in range(3)]
    path = tmp_path / "capitals.csv"
    path.write_text("\n".join(rows))
    done = run("nowcast", str(path), "--max-delay", "2", "--ranks", "1", "--warm-up", "2")
    assert done.returncode == 0, done.stderr
    for words in ("--reference Date", "--report Report_Date", "--count Cases"):
        assert f"guessed {words}" in done.stderr


def test_first_files_of_a_newcomer_get_a_sentence(run, tmp_path):
    head = "date,report_date,n\n"
    for name, text, words in (
        ("empty", "", "has no rows"),
        ("head", head, "has no rows"),
        ("one", head + "2024-01-01,2024-01-01,3\n", "all reports are of one day, 2024-01-01"),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
        done = run("nowcast", str(tmp_path / f"{name}.csv"))
        assert done.returncode == 2, name
        assert words in done.stderr


def test_ranks_that_are_none_are_one_sentence(run, reports):
    done = run("nowcast", str(reports), "--ranks", "a")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [
        "tensortide: --ranks takes numbers with commas, such as 3,4,6, or validate, not 'a'."
    ]


def test_what_is_not_in_the_numbers_is_said(run, reports):
    words = [*WORDS, "--report", "reported"]
    words[words.index("7")] = "3"
    done = run("nowcast", str(reports), *words, "--as-of", "2026-02-20")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stderr.split())
    assert "came later than the maximum delay of 3 days" in told
    assert "For 2 days hardly anything has been reported: taken as not published yet." in told
    assert "As of 2026-02-20" in done.stdout


def test_a_replay_is_written_with_its_truths(run, reports, tmp_path):
    out = tmp_path / "past.parquet"
    done = run(
        "nowcast", str(reports), *WORDS, "--report", "reported", "--replay",
        "--from", "2026-01-25", "--to", "2026-01-27", "-o", str(out),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table(out)
    assert {"as_of", "model", "date", "horizon", "level", "value", "truth"} <= set(
        table.column_names
    )
    assert len(set(table["as_of"].to_pylist())) == 3
    assert "chain-ladder weekday" in set(table["model"].to_pylist())


def test_ctrl_c_is_one_word_and_leaves_no_file(reports, tmp_path):
    out = tmp_path / "q.csv"
    words = ["nowcast", "-", *WORDS, "--report", "reported", "-o", str(out)]
    with started(*words, stdin=subprocess.PIPE) as process:
        pipe = process.stdin.fileno()
        written = os.write(pipe, reports.read_bytes()[:60_000])  # and never an end
        wait_for(lambda: unread(pipe) < written, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert err.decode().strip().splitlines()[-1] == "tensortide: stopped."
    assert "Traceback" not in err.decode()
    assert not out.exists()


def unread(pipe: int) -> int:
    """Return the number of bytes that nobody has read from a pipe yet."""
    found = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, found)
    return found[0]


def test_words_that_do_not_go_together_and_capitals_of_a_file(run, reports, tmp_path):
    done = run("nowcast", str(reports), "--line-list", "--count", "count", "--report", "reported")
    assert done.returncode == 2
    assert "--count does not go with --line-list" in done.stderr
    words = [*WORDS, "--report", "reported"]
    words[words.index("7")] = "60"
    done = run("nowcast", str(reports), *words, "-o", str(tmp_path / "Q.CSV"))
    assert done.returncode == 0, done.stderr
    assert "cover 45 days, less than the maximum delay of 60" in " ".join(done.stderr.split())
    assert pacsv.read_csv(tmp_path / "Q.CSV").num_rows


def test_a_replay_has_the_truth_that_came_after_its_range(run, reports, tmp_path):
    out = tmp_path / "past.csv"
    done = run(
        "nowcast", str(reports), *WORDS, "--report", "reported", "--replay", "--sum", "1",
        "--from", "2026-01-25", "--to", "2026-01-27", "-o", str(out),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "could be scored" not in done.stderr
    assert pacsv.read_csv(out)["truth"].null_count == 0
    done = run(
        "nowcast", str(reports), *WORDS, "--report", "reported", "--replay", "--sum", "1",
        "--from", "2026-02-10", "--to", "2026-02-18",
    )  # fmt: skip
    assert "nowcasts of the whole could be scored" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "2026-02-01"], "--from makes a range of as-of days"),
        (["--format", "hub", "--sum", "3", "-o", "x.csv"], "sums of 7 days, not of --sum 3"),
        (["--line-list", "--duplicates", "last"], "--duplicates does not go with --line-list"),
        (["-o", "."], "must end with .csv, .parquet or .arrow"),
        (["--page", "{folder}"], "is a folder: name a file in it"),
        (["--page", "reported"], "reported: the page must end with .html"),
        (["--sum", "500", "--json"], "there are no 500 dates to sum yet"),
    ],
)
def test_what_would_be_ignored_is_refused(run, reports, tmp_path, words, said):
    folder = tmp_path / "page.html"
    folder.mkdir()
    given = [word.format(folder=folder) for word in words]
    done = run("nowcast", str(reports), *WORDS, *given)
    assert done.returncode == 2, done.stdout
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_range_that_begins_before_there_are_sums_has_those_of_its_later_days(
    run, reports, tmp_path
):
    out = tmp_path / "[q].csv"
    done = run(
        "nowcast", str(reports), *WORDS, "--from", "2026-01-07", "--to", "2026-01-13", "--sum", "7",
        "-o", str(out),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert str(min(pacsv.read_csv(out)["as_of"].to_pylist())) == "2026-01-11"
    assert "[q].csv" in done.stderr
    done = run("nowcast", str(reports), *WORDS, "--as-of", "2026-01-08", "-o", str(out), "--format",
               "hub")  # fmt: skip
    assert done.returncode == 2
    assert "there are no 7 dates to sum yet as of 2026-01-08" in done.stderr


def test_strata_may_be_named_one_by_one(run, reports):
    rest = WORDS[2:]
    once = run("nowcast", str(reports), "--strata", "place,age", *rest, "--json")
    twice = run("nowcast", str(reports), "--strata", "place", "--strata", "age, ", *rest, "--json")
    assert once.returncode == twice.returncode == 0, twice.stderr
    assert once.stdout == twice.stdout


def test_a_page_may_have_a_title_and_one_word_among_numbers_is_named(run, reports, tmp_path):
    page = tmp_path / "page.html"
    done = run("nowcast", str(reports), *WORDS, "--page", str(page), "--title", "Flu & co")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "<h1>Flu &amp; co</h1>" in text
    assert "The intervals are a guess: there are 3 earlier nowcasts to learn from." in text
    done = run("nowcast", str(reports), *WORDS, "--title", "x")
    assert "--title is about the page" in done.stderr
    odd = tmp_path / "odd.csv"
    odd.write_text("date,reported,n\n2026-01-01,2026-01-01,3\n2026-01-02,2026-01-02,<5\n")
    done = run("nowcast", str(odd))
    assert "column 'n' must hold numbers, not string: record 1 has '<5'" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--report", "page.html"],
        ["--report", "reported", "--report", "page.html"],
        ["--report", "page.html", "--report", "reported"],
    ],
)
def test_a_page_has_an_option_of_its_own(run, reports, words):
    done = run("nowcast", str(reports), *WORDS, *words)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "tensortide: --report is the column of report dates; write the page with --page page.html."
    )


def test_report_dates_are_in_one_column(run, reports):
    done = run("nowcast", str(reports), *WORDS, "--report", "reported", "--report", "date")
    assert done.returncode == 2
    assert "--report takes one column, not 2: reported, date." in done.stderr


def test_weeks_have_no_weekday_ladder_and_begin_where_they_are_asked_to(run, tmp_path):
    rows = ["week,report_week,cases"]
    for k in range(30):
        day = np.datetime64("2025-06-02") + 7 * k
        rows += [f"{day},{day + 7 * d},{40 >> d}" for d in range(4) if k + d < 30]
    path = tmp_path / "weekly.csv"
    path.write_text("\n".join(rows))
    out = tmp_path / "q.csv"
    words = ["--every", "week", "--max-delay", "3", "--ranks", "1", "--warm-up", "9"]
    done = run("nowcast", str(path), *words, "--from", "2025-11-12", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert str(min(pacsv.read_csv(out)["as_of"].to_pylist())) == "2025-11-16"
    done = run("nowcast", str(path), *words, "--replay", "--json")
    models = {json.loads(line)["model"] for line in done.stdout.splitlines()}
    assert models == {"tensortide", "unadjusted", "chain-ladder", "chain-ladder pooled"}
