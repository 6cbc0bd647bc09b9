"""The page in a real browser: no error, nothing fetched, every section visible, small enough."""

from __future__ import annotations

import datetime as dt
import re
import shutil

import numpy as np
import pytest

import tensortide as tt
from tensortide.report.pages.run import report_html, write_report
from tensortide.simulate.hospital import admissions

SECTIONS = ("what", "growth", "fit", "forecast", "components", "surprises", "settings")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
LAST_RESORT = 600_000.0  # ms; ends a hang, and is far from what a busy machine needs
needs_browser = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of a run with history and surprises, and one without."""
    folder = tmp_path_factory.mktemp("pages")
    for name, method in (("full", "gocpt"), ("economy", "gocpte")):
        with tt.Tracker.create(
            folder / name, 3, method, modes=["place", "age", "date", "delay"], value="count"
        ) as run:
            run.track(admissions(30, seed=1), step_by="reported", first=10)
            write_report(run, folder / f"{name}.html")
    return folder


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"], timeout=LAST_RESORT
        )
        yield started
        started.close()


def opened(browser, page, width, scheme):
    """Load a page offline; return it with everything it complained about or asked for."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    context.set_default_timeout(LAST_RESORT)
    tab = context.new_page()
    trouble: list[str] = []
    tab.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    local = ("file:", "data:", "blob:")
    tab.on("request", lambda r: None if r.url.startswith(local) else trouble.append(r.url))
    tab.goto(page.as_uri())
    tab.wait_for_selector("body[data-drawn=yes]")
    return tab, trouble


@needs_browser
@pytest.mark.parametrize("name", ["full", "economy"])
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "light"), (1280, "dark")])
def test_the_page_shows_everything_and_complains_of_nothing(
    pages, browser, tmp_path, name, width, scheme
):
    tab, trouble = opened(browser, pages / f"{name}.html", width, scheme)
    assert trouble == []
    for section in SECTIONS:
        box = tab.locator(f"#{section}").bounding_box()
        assert box["height"] > 40
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert tab.locator(".figure .main-svg").count() >= 3
    assert tab.locator(".component").count() == 3
    assert tab.locator("svg.line").count() == 6
    assert tab.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
    shot = tmp_path / "page.png"
    tab.screenshot(path=shot, full_page=True)
    assert shot.stat().st_size > 50_000
    tab.context.close()


@needs_browser
def test_colours_follow_the_reader_and_paper_is_white(pages, browser):
    tab, trouble = opened(browser, pages / "full.html", 1280, "dark")
    ink = "getComputedStyle(document.querySelector('#error-figure .xtick text')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = (tab.evaluate(ink), tab.evaluate(paper))
    tab.emulate_media(color_scheme="light")
    tab.wait_for_function(f"before => {ink} !== before", arg=dark[0])
    light = (tab.evaluate(ink), tab.evaluate(paper))
    assert dark != light
    assert light[1] == "rgb(255, 255, 255)"
    tab.emulate_media(color_scheme="dark", media="print")
    assert tab.evaluate(paper) == "rgb(255, 255, 255)"
    assert tab.pdf()[:4] == b"%PDF"
    assert trouble == []
    tab.context.close()


def test_the_page_links_to_nothing(pages):
    text = (pages / "full.html").read_text(encoding="utf-8")
    shell = re.sub(r'<script type="text/plain" id="plotly">.*?</script>', "", text, flags=re.S)
    assert "http" not in shell
    assert not re.search(r"\b(src|href)=", shell.replace('href="data:,"', ""))


def test_what_has_not_come_is_marked_as_forecast(pages, tmp_path):
    for name, kept in (("full", True), ("economy", False)):
        text = (pages / f"{name}.html").read_text(encoding="utf-8")
        assert "a forecast of labels that have not come" in " ".join(text.split())
        assert ("Dots: values as reported" in text) is kept
        assert '"text":"forecast"' in text
    options = {"modes": ["who", "day"], "value": "count"}
    with tt.Tracker.create(tmp_path / "r", 1, prior="paper", **options) as run:
        run.ingest({"who": ["a", "b"] * 2, "day": [1, 1, 2, 2], "count": [1.0, 2.0, 1.5, 3.0]})
        text = report_html(run)
    assert "This run has no forecast" in text
    assert "forecast-figure" not in text


def test_fitness_is_explained_where_it_is_shown(pages):
    for name in ("full", "economy"):
        text = " ".join((pages / f"{name}.html").read_text(encoding="utf-8").split())
        assert "fitness before learning" in text
        assert "100 % is exact, and 0 % no better than predicting zeros" in text


def test_surprises_are_there_only_where_they_are_kept(pages):
    assert '<th class="number">expected</th>' in (pages / "full.html").read_text()
    assert "--keep-surprises" in (pages / "economy.html").read_text()


def test_titles_are_made_of_top_labels_and_escaped(tmp_path):
    table = {
        "who": ["<b>&", "<b>&", "other", "other"] * 3,
        "day": [d for d in range(6) for _ in range(2)],
        "count": [float(i % 5 + 1) for i in range(12)],
    }
    with tt.Tracker.create(tmp_path / "r", 1, modes=["who", "day"], value="count") as run:
        run.ingest(table)
        text = report_html(run, "A <title>")
    assert "<b>&" not in text
    assert "&lt;b&gt;&amp;" in text
    assert "A &lt;title&gt;" in text
    assert "highest at day" in text


def test_a_run_without_data_has_a_page_too(tmp_path):
    with tt.Tracker.create(tmp_path / "r", 1, modes=["who", "day"], value="count") as run:
        assert "Nothing has come yet" in report_html(run)


def test_a_hundred_components_over_five_thousand_labels_stay_below_five_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    days = [dt.date(2010, 1, 1) + dt.timedelta(d) for d in range(5_000)]
    table = {
        "a sensor with a long name": [f"sensor number {i}" for i in rng.integers(0, 300, 60_000)],
        "kind": [f"kind {i}" for i in rng.integers(0, 20, 60_000)],
        "day": [days[i % 5_000] for i in range(60_000)],
        "value": rng.normal(5, 1, 60_000),
    }  # fmt: skip
    names = list(table)[:-1]
    model = tt.OnlineCP(100, "gocpte", modes=names).fit(table, starts=1, max_sweeps=1)
    with tt.Tracker.create(tmp_path / "r", 100, "gocpte", modes=names) as run:
        run._rewrite(model, "rank", "made for the test")
        assert write_report(run, tmp_path / "page.html") < 5_000_000
        assert run.model.shape_[2] == 5_000


@pytest.mark.parametrize(
    ("method", "keeps"),
    [("gocpt", True), (tt.gocpt(sweeps=3), True), (tt.gocpte(sweeps=2), False), ("olstec", False)],
)
def test_the_page_says_whether_the_method_keeps_history(tmp_path, method, keeps):
    with tt.Tracker.create(tmp_path / "r", 1, method, modes=["who", "day"], value="count") as run:
        for day in range(3):
            run.ingest({"who": ["a", "b"], "day": [day, day], "count": [1.0, 2.0 + day]})
        page = report_html(run)
    assert ("cannot tell one from the other" in page) is not keeps


def test_a_page_reads_the_lines_of_its_run_once(tmp_path, monkeypatch):
    with tt.Tracker.create(tmp_path / "r", 1, modes=["who", "day"], value="count") as run:
        read = []
        monkeypatch.setattr(run, "batches", lambda inner=run.batches: read.append(1) or inner())
        report_html(run)
    assert len(read) == 1


def test_a_page_that_cannot_be_written_is_said(tmp_path):
    with (
        tt.Tracker.create(tmp_path / "r", 1, modes=["who", "day"], value="count") as run,
        pytest.raises(tt.FileError, match="cannot be written"),
    ):
        write_report(run, tmp_path / "no" / "page.html")
