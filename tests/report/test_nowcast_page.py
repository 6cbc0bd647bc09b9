"""The page of a nowcast in a real browser: every picture drawn, nothing fetched, no error."""

from __future__ import annotations

import pytest

from tensortide.nowcast import BASELINES, Nowcaster, replay
from tensortide.report.pages.nowcast import nowcast_html, write_nowcast_page
from tests.nowcast.examples import START, simulated, without_strata
from tests.report.test_page import browser, needs_browser, opened

__all__ = ["browser"]
SECTIONS = ("today", "strata", "delays", "triangle", "past")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    triangle = simulated()
    nowcaster = Nowcaster(2)
    for day in (50, 51, 52):
        nowcast = nowcaster.update(triangle.as_of(START + day))
    models = {
        "tensortide": lambda: Nowcaster(2),
        "chain-ladder": lambda: Nowcaster((), [BASELINES["chain-ladder"]]),
    }
    past = replay(triangle, models, [START + 45, START + 50], horizons=8, warm_up=5)
    path = tmp_path_factory.mktemp("nowcast") / "page.html"
    size = write_nowcast_page(nowcast, path, "Late counts <simulated>", past)
    assert size == path.stat().st_size
    return path


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "light"), (1280, "dark")])
def test_the_page_shows_everything_and_complains_of_nothing(page, browser, width, scheme):
    tab, trouble = opened(browser, page, width, scheme)
    assert trouble == []
    assert tab.title() == "Late counts <simulated>"
    for section in SECTIONS:
        assert tab.locator(f"#{section}").bounding_box()["height"] > 40
    for figure in (
        "nowcast",
        "week",
        "delay",
        "course",
        "triangle",
        "wis",
        "coverage",
        "coverage-95",
    ):
        assert tab.locator(f"#{figure}-figure .main-svg").count() > 0, figure
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_without_strata_and_past_leaves_their_sections_out():
    triangle = without_strata(simulated())
    text = nowcast_html(Nowcaster(1).update(triangle.as_of(START + 40)), "Plain")
    assert 'id="strata"' not in text
    assert 'id="past"' not in text
    assert 'id="today"' in text


def test_a_page_of_the_first_week_has_no_holes():
    triangle = simulated()
    text = nowcast_html(Nowcaster(1).update(triangle.as_of(START + 3)), "Early")
    assert ">nan" not in text
    assert "no date is complete yet: that takes 12 days" in text
