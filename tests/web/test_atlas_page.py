"""The atlas in Chromium: the table, the pages of findings, and the explorer on made-up studies."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from visitors import BASE, ROOT, Handler, Visit, violations

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")
pytest.importorskip("statsmodels", reason="statsmodels is not installed (the extra `atlas`)")

sys.path.insert(0, str(ROOT / "tests"))
from made_atlas import make_atlas

from paperkiln.atlas.analyze import Estimate, effects

PAGES = ("atlas/", "atlas/method/", "atlas/findings/F-batch/", "atlas/findings/F-window-turns/",
         "atlas/explorer/?study=screen", "atlas/explorer/?study=factorial",
         "atlas/explorer/?study=window")  # fmt: skip
# What moved after it was drawn, in shares of the window (web.dev/cls); 0.1 is still called good.
SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const e of list.getEntries()) sum += e.value; })
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 300);
})"""


@pytest.fixture(scope="session")
def docs(once: Callable[..., Path], build_docs: Callable[..., Path]) -> Path:
    """The whole site with a made-up atlas."""
    return build_docs("docs-atlas", PAPERKILN_ATLAS=str(once("made-atlas", make_atlas)))


@pytest.fixture
def go(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> Iterator[Callable[..., Any]]:
    """Return what opens a page of the docs as a new visitor."""
    host.root = str(docs)

    def open_page(page: str, **options: Any) -> Any:
        tab = visit(**options).context.new_page()
        tab.goto(f"{host.origin}{BASE}{page}")
        if "explorer" in page and options.get("java_script_enabled", True):
            tab.wait_for_selector("paperkiln-atlas[data-ready]")
        return tab

    return open_page


def rows_of(docs: Path, study: str) -> list[dict[str, Any]]:
    path = docs / "atlas" / "data" / "studies" / study / "rows.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def wanted(docs: Path, study: str, metric: str) -> dict[str, Estimate]:
    """What Python computes, with the order of levels that the sweep has."""
    studies = json.loads((docs / "atlas" / "data" / "studies.json").read_text(encoding="utf-8"))
    (levels,) = [each["factors"] for each in studies if each["name"] == study]
    return {e.term: e for e in effects(rows_of(docs, study), metric, levels=levels)}


def shown(tab: Any, title: str) -> list[list[str]]:
    """The cells of a table of the explorer, by its caption."""
    return tab.locator("paperkiln-atlas").evaluate(
        """(element, title) => [...element.shadowRoot.querySelectorAll("table")]
          .filter((table) => table.caption.textContent === title)
          .flatMap((table) => [...table.tBodies[0].rows])
          .map((row) => [...row.cells].map((cell) => cell.textContent))""",
        title,
    )


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_pages_fit_stay_where_they_are_and_are_accessible(
    go: Callable[..., Any], width: int, scheme: str
) -> None:
    for page in PAGES:
        tab = go(page, viewport={"width": width, "height": 860}, color_scheme=scheme)
        assert tab.evaluate(SHIFTS) < 0.05, page
        assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page
        assert violations(tab) == [], page


def test_the_table_is_searched_filtered_and_sorted(go: Callable[..., Any]) -> None:
    tab = go("atlas/")
    names = lambda: tab.locator("tbody tr:visible th a").all_inner_texts()[:7]  # noqa: E731
    everything = names()
    assert len(everything) == 7
    tab.get_by_label("Search", exact=True).and_(tab.locator("[type=search]")).fill("muon lr")
    assert names() == ["F-lr-with-muon", "F-lr"]  # what stands comes first
    assert tab.locator("output").inner_text() == "2 of 7 findings"
    tab.get_by_label("superseded").uncheck()
    assert names() == ["F-lr-with-muon"]
    tab.get_by_label("superseded").check()
    tab.locator(".filters [type=search]").fill("")
    sort = tab.get_by_role("button", name="Effect")
    sort.press("Enter")
    assert names()[0] == "F-muon-again"
    assert names()[-1] == "F-window-turns"
    sort.click()
    assert names()[0] == "F-window-turns"
    head = tab.get_by_role("columnheader", name="Effect")
    assert head.get_attribute("aria-sort") == "descending"


def test_the_table_is_there_without_javascript(go: Callable[..., Any]) -> None:
    tab = go("atlas/", java_script_enabled=False)
    assert tab.locator("table.findings tbody tr").count() == 7
    assert not tab.locator(".filters").is_visible()


@pytest.mark.parametrize("study", ["screen", "factorial", "window"])
def test_the_explorer_shows_the_effects_that_python_computes(
    go: Callable[..., Any], docs: Path, study: str
) -> None:
    tab = go(f"atlas/explorer/?study={study}")
    for metric in ("best_val", "tokens_per_second", "val@300"):
        tab.get_by_label("Metric").select_option(metric)
        estimates = wanted(docs, study, metric)
        found = [*shown(tab, "Effects"), *shown(tab, "Interactions in numbers")]
        assert {row[0] for row in found} == estimates.keys()
        for term, _, effect, ci, se, t, df, *_ in found:
            want = estimates[term]
            assert number(effect) == pytest.approx(want.effect, rel=1e-3)
            assert [number(end) for end in ci.split(" to ")] == pytest.approx(want.ci, rel=1e-3)
            assert number(se) == pytest.approx(want.se, rel=1e-3)
            assert number(t) == pytest.approx(want.t, rel=1e-2)
            assert number(df) == want.df


def test_the_means_of_a_pair_are_shown_by_keyboard(go: Callable[..., Any], docs: Path) -> None:
    tab = go("atlas/explorer/?study=factorial")
    assert tab.locator(".heat [aria-pressed=true]").get_attribute("value") == "lr:optimizer"
    tab.locator(".heat button[value='norm:optimizer']").press("Enter")
    assert tab.get_by_role("heading", name="norm by optimizer").is_visible()
    rows = rows_of(docs, "factorial")
    labels, means = ("pre", "post"), shown(tab, "Mean of best_val")
    for optimizer, *values in means:
        for norm, value in zip(labels, values, strict=True):
            inside = [
                row["best_val"] for row in rows
                if (row["factor.optimizer"], row["factor.norm"]) == (optimizer, norm)
            ]  # fmt: skip
            assert number(value) == pytest.approx(sum(inside) / len(inside), abs=6e-5)


def test_a_screen_says_why_it_has_no_interactions(go: Callable[..., Any]) -> None:
    tab = go("atlas/explorer/?study=screen")
    assert "partially aliased" in tab.get_by_text("so no interactions").inner_text()
    assert tab.locator(".heat").count() == 0


def test_the_curve_over_budgets_is_that_of_the_chosen_factor(
    go: Callable[..., Any], docs: Path
) -> None:
    tab = go("atlas/explorer/?study=factorial")
    tab.get_by_label("Factor over budgets").select_option("optimizer")
    curve = shown(tab, "Over budgets")
    assert [row[0] for row in curve] == ["100", "200", "300", "400"]
    for step, effect, *_ in curve:
        want = wanted(docs, "factorial", f"val@{step}")["optimizer"]
        assert number(effect) == pytest.approx(want.effect, rel=1e-3)


def test_rows_of_ones_own_are_read_and_wrong_ones_refused(
    go: Callable[..., Any], docs: Path, tmp_path: Path
) -> None:
    tab = go("atlas/explorer/?study=factorial")
    choose = tab.locator("paperkiln-atlas input[type=file]")
    own = tmp_path / "mine.jsonl"
    shutil.copy(docs / "atlas" / "data" / "studies" / "window" / "rows.jsonl", own)
    choose.set_input_files(own)
    tab.get_by_text("20 runs: 2 cells, 10 seeds").wait_for()
    own.write_text('{"seed": 1}\nno json\n')
    choose.set_input_files(own)
    tab.get_by_text("Line 2 is not JSON; drop the rows.jsonl of a study.").wait_for()
    assert tab.locator("paperkiln-atlas figure").count() == 0
    tab.locator("paperkiln-atlas").get_by_label("Study").select_option("screen")
    tab.get_by_text("36 runs: 12 cells, 3 seeds").wait_for()


def test_the_explorer_follows_the_palette_that_the_reader_chose(go: Callable[..., Any]) -> None:
    tab = go("atlas/explorer/?study=window", color_scheme="light")
    ink = lambda: tab.locator("paperkiln-atlas figure").first.evaluate(  # noqa: E731
        "figure => getComputedStyle(figure).color"
    )
    light = ink()
    for _ in range(2):  # from the system's choice to light, then to dark
        tab.locator("label[for^=__palette]:visible").click()
    assert ink() != light
