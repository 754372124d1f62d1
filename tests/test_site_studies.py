"""The page of each study: it shows what the functions give for its rows, and nothing too early."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")
pytest.importorskip("statsmodels", reason="statsmodels is not installed (the extra `atlas`)")

from made_atlas import make_atlas
from test_site_atlas import build, dead_links, html, text

from paperkiln.atlas.analyze import effects, half_normal
from paperkiln.atlas.crossing import crossing
from paperkiln.atlas.findings import read_findings
from paperkiln.atlas.lottery import lottery
from paperkiln.atlas.power import smallest_effect
from paperkiln.atlas.rows import read_rows

QUESTION = "Does <b>that</b> [hold](x) & why?"
PAIR = ("exact", "window")
BUDGETS = [100, 200, 300, 400]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made atlas with an unfinished study, one with a failed run, and a replication."""
    atlas = make_atlas(tmp_path_factory.mktemp("atlas"))
    copy(atlas, "screen", "early", keep=7)
    copy(atlas, "factorial", "broken", failed="cell-03-seed-2", question=QUESTION)
    copy(atlas, "window", "window-replication-1")
    copy(atlas, "window", "all-failed", failed=".*")
    finding = next(f for f in read_findings(atlas) if f.id == "F-window-turns")
    event = {"date": "2026-01-09", "status": finding.status, "verdict": "REPLICATED",
             "note": "the effects differ by 0.001",
             "receipt": "studies/window-replication-1/records.jsonl"}  # fmt: skip
    line = finding.model_dump(mode="json", by_alias=True)
    line["history"].append(event)
    with open(atlas / "findings.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    return atlas


def copy(
    atlas: Path, name: str, new: str, keep: int | None = None, failed: str = "", **changes: Any
) -> None:
    """Make a study out of another one."""
    old, folder = atlas / "studies" / name, atlas / "studies" / new
    folder.mkdir()
    rows = [row | {"study": new} for row in read_rows(old / "rows.jsonl")][:keep]
    for row in rows:
        if re.fullmatch(failed, row["run"]):
            row.update(complete=False, best_val=None, wall_seconds=None, tokens_per_second=None)
    records = [{"study": new, "run": row["run"]} for row in rows]
    for record in records:
        if re.fullmatch(failed, record["run"]):
            record["reason"] = "the loss is <nan>"
    for lines, path in ((rows, "rows.jsonl"), (records, "records.jsonl")):
        (folder / path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    sweep = json.loads((old / "sweep.json").read_text()) | {"name": new} | changes
    (folder / "sweep.json").write_text(json.dumps(sweep))


@pytest.fixture(scope="module")
def site(atlas: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(atlas, tmp_path_factory.mktemp("site"))


def page(site: Path, study: str) -> str:
    return html(site / "atlas" / "studies" / study)


def rows_of(atlas: Path, study: str) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    folder = atlas / "studies" / study
    factors = json.loads((folder / "sweep.json").read_text())["factors"]
    return read_rows(folder / "rows.jsonl"), {n: [*f["levels"]] for n, f in factors.items()}


def table(markup: str, caption: str) -> list[list[str]]:
    """Return the text of the cells of a table, row by row, without its head."""
    body = re.search(f'<caption class="unseen">{caption}</caption>(.*?)</table>', markup)
    assert body is not None, caption
    lines = re.findall(r"<tr>(.*?)</tr>", body[1].partition("<tbody>")[2] or body[1])
    return [
        [text(cell.replace("<small>", " | ")) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)]
        for line in lines
    ]


def says(shown: str, value: float | None) -> bool:
    """Return whether a number was rounded right to what is shown, for what is shown of it."""
    if value is None:
        return shown == "—"
    if shown == "< 0.0001":
        return value < 1e-4
    number = shown.replace("−", "-").replace(",", "").split(" ")[0]
    mantissa, _, power = number.partition("e")
    unit = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    scale = 100 if shown.endswith("%") else 1
    return abs(float(number) - scale * value) <= 0.5001 * unit


def test_the_tables_show_what_the_functions_give(atlas: Path, site: Path) -> None:
    for study in ("screen", "factorial", "window", "broken"):
        rows, levels = rows_of(atlas, study)
        wanted = {e.term: e for e in effects(rows, "best_val", levels=levels)}
        shown = table(page(site, study), "The effects on best_val")
        assert {line[0].partition(" |")[0] for line in shown} == set(wanted)
        clearest = [abs(wanted[line[0].partition(" |")[0]].t) for line in shown]
        assert clearest == sorted(clearest, reverse=True)
        for term, effect, share, se, t, p, p_holm, by_seeds in shown:
            want = wanted[term.partition(" |")[0]]
            value, low, high = re.split(r" \| | to ", effect)
            numbers = [(value, want.effect), (low, want.ci[0]), (high, want.ci[1]),
                       (share, want.relative), (se, want.se), (t, want.t), (p, want.p),
                       (p_holm, want.p_holm), (by_seeds, want.p_per_seed)]  # fmt: skip
            assert all(says(*pair) for pair in numbers), (study, term, numbers)


def test_the_power_is_that_at_the_residual_that_was_measured(atlas: Path, site: Path) -> None:
    rows, levels = rows_of(atlas, "screen")
    some = effects(rows, "best_val", levels=levels)[0]
    sd = some.se * (12 * 3 / 4) ** 0.5
    shown = table(page(site, "screen"), "Power")
    assert [line[0] for line in shown] == ["3 (this study)", "6", "12"]
    for seeds, (_, runs, df, one, holm) in zip((3, 6, 12), shown, strict=True):
        assert (runs, df) == (str(12 * seeds), str(11 * (seeds - 1)))
        assert says(one, smallest_effect(12, seeds, sd))
        assert says(holm, smallest_effect(12, seeds, sd, n_hypotheses=4))  # as pre-registered


def test_the_half_normal_plot_has_its_numbers(atlas: Path, site: Path) -> None:
    rows, levels = rows_of(atlas, "factorial")
    data = half_normal(rows, "best_val", levels)
    shown = table(page(site, "factorial"), "The half-normal plot in numbers")[::-1]
    assert [line[0] for line in shown] == list(data.terms)
    assert all(says(line[1], size) for line, size in zip(shown, data.sizes, strict=True))
    assert {line[0] for line in shown if line[3] == "yes"} == set(data.outstanding)
    assert 'id="half-normal-desc"' not in page(site, "window")  # one effect


def test_the_lottery_and_the_crossing_show_what_the_functions_give(atlas: Path, site: Path) -> None:
    rows, _ = rows_of(atlas, "window")
    shown = table(page(site, "window"), "The lottery of seeds")
    for line, want in zip(shown, lottery(rows, "attention", PAIR, BUDGETS).rows, strict=True):
        steps, mean, sd, first, second, clash, p, holm, verdict = line
        assert (steps, first, second) == (
            str(want.budget), str(want.first_better), str(want.second_better),
        )  # fmt: skip
        assert says(mean, want.mean)
        assert says(sd, want.sd)
        assert says(p, want.estimate.p)
        assert says(holm, want.estimate.p_holm)
        assert want.verdict in verdict
        likely, low, high = re.split(r" \|  ?| to ", clash)
        pairs = ((likely, want.clash.unbiased), (low, want.clash.ci[0]), (high, want.clash.ci[1]))
        assert all(says(*pair) for pair in pairs)
    want = crossing(rows, "attention", PAIR, BUDGETS)
    assert want.status == "crossing"
    facts = {line[0]: line[1] for line in table(page(site, "window"), "The crossing")}
    assert says(facts["Crossing"], want.budget)
    assert says(facts["95 % interval"], want.interval[0])
    assert says(facts["Zone that 10 seeds cannot answer"], want.zone.width)
    assert says(facts["Slope there"], want.zone.slope)
    assert facts["Seeds that halve the zone"] == str(want.seeds_to_close(want.zone.width / 2))
    tested = re.fullmatch(r"p = (\S+); 10 seeds can give (\S+) at .*", facts["Monotone, rising"])
    assert says(tested[1], want.monotone_p)
    assert says(tested[2], want.monotone_smallest_p)
    curve = table(page(site, "window"), "The difference over budgets")
    assert all(says(line[3], fit) for line, fit in zip(curve, want.fit, strict=True))
    for study in ("screen", "factorial"):  # more than one factor
        assert "Lottery" not in headings(page(site, study))
        assert "Crossing" not in headings(page(site, study))


def headings(markup: str) -> list[str]:
    return [text(found).strip("¶") for found in re.findall(r"<h2.*?</h2>", markup)]


def test_the_page_says_what_was_asked_how_and_at_what_cost(atlas: Path, site: Path) -> None:
    assert headings(page(site, "screen")) == [
        "What varied", "Design", "Effects", "Findings", "Cost", "Reproduce",
    ]  # fmt: skip
    said = unescape(text(page(site, "screen")))
    assert "Which of seven choices move the loss?" in said
    assert "Plackett–Burman screen of resolution III of 7 factors" in said
    assert "1/3 (" in said  # what each main effect takes in
    assert "measured on a machine that was shared" in said
    cost = {line[0]: line[1] for line in table(page(site, "screen"), "The cost")}
    rows, _ = rows_of(atlas, "screen")
    assert cost["Machine time"] == f"{sum(r['wall_seconds'] for r in rows) / 3600:.2f} hours"
    assert cost["Tokens"] == f"{sum(r['tokens'] for r in rows):,}"
    for name in ("sweep.json", "rows.jsonl", "records.jsonl"):
        assert f'href="../../data/studies/screen/{name}"' in page(site, "screen")
        assert (site / "atlas" / "data" / "studies" / "screen" / name).is_file()


def test_failed_runs_are_named_and_text_is_never_markup(site: Path) -> None:
    markup = page(site, "broken")
    assert "1 of 48 runs failed and are in no estimate" in text(markup)
    assert "cell-03-seed-2 the loss is <nan>" in text(markup)
    assert "without the failed runs" in text(markup)
    assert QUESTION in text(markup)
    assert "<b>that</b>" not in markup
    assert "<nan>" not in markup


def test_where_nothing_can_be_estimated_the_page_says_why(site: Path) -> None:
    said = text(page(site, "all-failed"))
    assert "The effects cannot be estimated: no complete run has best_val" in said
    assert "It cannot be told" in said  # the power
    assert "20 of 20 runs failed" in said


def test_an_unfinished_study_says_how_far_it_is_and_nothing_else(site: Path) -> None:
    markup = page(site, "early")
    assert "7 of 36 runs are there" in text(markup)
    assert headings(markup) == []
    assert "<svg class" not in markup
    assert not (site / "atlas" / "data" / "studies" / "early" / "rows.jsonl").exists()
    listed = json.loads((site / "atlas" / "data" / "studies.json").read_text())
    assert "early" not in [study["name"] for study in listed]


def test_a_replication_stands_under_its_original(site: Path) -> None:
    original, again = page(site, "window"), page(site, "window-replication-1")
    said = "F-window-turns: REPLICATED, the effects differ by 0.001"
    assert '<a href="../window-replication-1/">' in original
    assert said in text(original)
    assert said in text(again)
    assert '<a href="../window/">window</a>' in again
    registry = html(site / "atlas")
    assert re.findall(r'<li( class="again")?><a href="studies/([\w-]+)/">', registry) == [
        ("", "all-failed"), ("", "broken"), ("", "early"), ("", "factorial"), ("", "screen"),
        ("", "window"),
        (' class="again"', "window-replication-1"),
    ]  # fmt: skip


def test_studies_are_found_from_findings_the_table_and_the_menu(atlas: Path, site: Path) -> None:
    for f in read_findings(atlas):
        assert f'<a href="../../studies/{f.study}/">' in html(site / "atlas" / "findings" / f.id)
        assert f'<a href="../../findings/{f.id}/">' in page(site, f.study)
    menu = re.search(r'<nav class="md-nav md-nav--primary.*?</nav>\s*</div>', html(site), re.DOTALL)
    assert menu is not None
    assert "window, replication 1" in menu[0]
    assert dead_links(site) == []


def test_drawings_are_described_and_take_the_colours_of_the_page(site: Path) -> None:
    for study, drawn in {"window": 2, "screen": 2, "factorial": 2, "broken": 2}.items():
        markup = page(site, study)
        drawings = re.findall(r'<svg class="interval" role="img".*?</svg>', markup, re.DOTALL)
        assert len(drawings) == drawn
        for drawing in drawings:
            name = re.search(r'aria-labelledby="([\w-]+)-title \1-desc"', drawing)[1]
            assert f'<title id="{name}-title">' in drawing
            assert re.search(rf'<desc id="{name}-desc">[^<]{{20,}}</desc>', drawing)
            colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", drawing))
            assert all(c == "none" or re.fullmatch(r"var\(--\w+\)", c) for c in colours), colours
        used = Counter(re.findall(r'\bid="?([^"\s>]+)', markup))
        assert [name for name, times in used.items() if times > 1] == []
