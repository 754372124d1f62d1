"""The atlas on the site: what its pages say, and that the explorer's numbers are Python's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")
pytest.importorskip("statsmodels", reason="statsmodels is not installed (the extra `atlas`)")

from made_atlas import Cell, Row, factorial_cells, make_atlas, rows, screen_cells

from paperkiln.atlas.analyze import effects
from paperkiln.atlas.findings import Finding, read_findings

ROOT = Path(__file__).resolve().parents[1]
HEADINGS = ["Result", "Design", "Scope", "Pre-registration", "Receipts", "Reproduce", "History"]


def build(atlas: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PAPERKILN_ATLAS": str(atlas)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_atlas(tmp_path_factory.mktemp("atlas"))


@pytest.fixture(scope="module")
def site(atlas: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(atlas, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def findings(atlas: Path) -> list[Finding]:
    return read_findings(atlas)


def html(page: Path) -> str:
    return (page / "index.html").read_text(encoding="utf-8")


def text(markup: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", markup))


def test_the_table_holds_every_finding_and_keeps_what_was_corrected(
    site: Path, findings: list[Finding]
) -> None:
    lines = re.findall(r'<tr data-status="(\w+)">(.*?)</tr>', html(site / "atlas"), re.DOTALL)
    findings = sorted(findings, key=lambda f: f.status in ("superseded", "retracted"))
    assert [status for status, _ in lines] == [f.status for f in findings]
    assert {f.status for f in findings} == {
        "supported", "replicated", "pending", "superseded", "retracted",
    }  # fmt: skip
    for finding, (status, line) in zip(findings, lines, strict=True):
        assert finding.claim in text(line)
        assert f'href="findings/{finding.id}/"' in line
        corrected = status in ("superseded", "retracted")
        assert ("<del>" in line) == corrected
        assert not corrected or finding.note in text(line)
    superseded = next(line for status, line in lines if status == "superseded")
    assert "Superseded by F-lr-with-muon" in text(superseded)


def test_each_finding_has_its_page_with_the_same_headings(
    site: Path, findings: list[Finding]
) -> None:
    for f in findings:
        page = html(site / "atlas" / "findings" / f.id)
        headings = [text(found).strip("¶") for found in re.findall(r"<h2.*?</h2>", page)]
        assert headings == HEADINGS
        said = text(page)
        assert f.claim in said
        assert f"paperkiln atlas reproduce {f.id} --run" in said
        assert f"{f.t:.2f} with {f.df:.4g} degrees of freedom".replace("-", "−") in said
        assert f.preregistration.commit[:12] in said
        for receipt in f.receipts:
            assert f'href="../../data/{receipt}"' in page
            assert (site / "atlas" / "data" / receipt).is_file()


def test_the_drawing_says_what_it_shows_and_has_a_ring_for_each_seed(
    site: Path, findings: list[Finding]
) -> None:
    for f in findings:
        page = html(site / "atlas" / "findings" / f.id)
        (drawing,) = re.findall(r'<svg class="interval".*?</svg>', page, re.DOTALL)
        assert 'role="img"' in drawing
        assert re.search(r'<desc id="interval-desc">effect [+−]\d', drawing)
        colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", drawing))
        assert colours <= {f"var(--{n})" for n in ("ink", "soft", "edge", "accent", "wash")} | {
            "none"
        }
        assert ("--wash" in drawing) == (f.check.margin is not None)
        assert page.count('<th scope="row">Seed ') == f.seeds


def test_a_claim_is_text_and_never_markup(site: Path) -> None:
    for page in site.glob("atlas/**/index.html"):
        assert "<all>" not in page.read_text(encoding="utf-8")


def test_no_link_of_the_atlas_is_dead(site: Path) -> None:
    assert dead_links(site) == []


def dead_links(site: Path) -> list[str]:
    dead = []
    for page in site.glob("atlas/**/index.html"):
        for link in re.findall(r'href="?([^"> ]+)', page.read_text(encoding="utf-8")):
            path = re.sub(r"[?#].*", "", link)
            target = (page.parent / path).resolve()
            there = (target / "index.html").exists() or target.is_file()
            if "://" not in link and "app/" not in link and not there:
                dead.append(f"{page}: {link}")
    return dead


def test_without_findings_the_site_says_so(tmp_path: Path) -> None:
    out = build(tmp_path / "nowhere", tmp_path / "site")
    assert "There are no findings yet." in html(out / "atlas")
    assert json.loads((out / "atlas" / "data" / "studies.json").read_text()) == []
    assert not (out / "atlas" / "findings").exists()
    assert dead_links(out) == []


# --- the explorer's arithmetic ------------------------------------------------------------------

PULL = {"optimizer": -0.15, "lr": -0.06}
PAIR: list[Cell] = [{"attention": "exact"}, {"attention": "window"}]
THREE = [{"lr": lr, "optimizer": o} for lr in ("0.001", "0.003", "0.01") for o in ("a", "b")]


def three_levels() -> list[Row]:
    made = rows("factorial", factorial_cells()[:6], 3, PULL)
    for i, row in enumerate(made):
        kept = {key: value for key, value in row.items() if not key.startswith("factor.")}
        made[i] = kept | {f"factor.{key}": label for key, label in THREE[i // 3].items()}
    return made


CASES = {
    "a screen": rows("screen", screen_cells(), 3, PULL),
    "a factorial": rows("factorial", factorial_cells(), 3, PULL),
    "a pair": rows("window", PAIR, 10, {"attention": 0.03}),
    "three levels": three_levels(),
    "a half fraction": [
        row for i, row in enumerate(rows("factorial", factorial_cells(), 3, PULL))
        if (i // 3).bit_count() % 2 == 0
    ],
    "a cell is missing": rows("factorial", factorial_cells(), 3, PULL)[3:],
    "a run is missing": rows("factorial", factorial_cells(), 3, PULL)[1:],
    "one run a cell": rows("factorial", factorial_cells(), 1, PULL),
    "unpaired": [
        row | {"seed": row["seed"] + 20 * (row["factor.attention"] == "window")}
        for row in rows("window", PAIR, 10, {"attention": 0.03})
    ],
}  # fmt: skip
SCRIPT = """
import { readFileSync } from "node:fs";
const { effects } = await import(process.env.MODULE);
const { readRows } = await import(process.env.MODULE.replace("effects", "blocks"));
const { text, metric, levels } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(effects(readRows(text), metric, levels).estimates));
"""


def in_the_page(of: list[Row], metric: str, levels: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Return what the explorer's modules compute, run by node."""
    given = {"text": "\n".join(map(json.dumps, of)), "metric": metric, "levels": levels}
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", SCRIPT], input=json.dumps(given), text=True,
        capture_output=True, env=os.environ | {"MODULE": f"{ROOT}/web/atlas/effects.js"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("metric", ["best_val", "tokens_per_second", "val@200"])
@pytest.mark.parametrize("case", CASES)
def test_the_explorer_computes_what_python_computes(case: str, metric: str) -> None:
    of = CASES[case]
    scale = abs(effects(of, metric)[0].effect) + max(abs(row["best_val"]) for row in of)
    wanted, found = effects(of, metric), in_the_page(of, metric, {})
    assert [e.term for e in wanted] == [e["term"] for e in found]
    for want, have in zip(wanted, found, strict=True):
        close = {"rel": 1e-9, "abs": 1e-12 * scale}
        for name in ("effect", "se", "t", "df", "relative"):
            assert have[name] == pytest.approx(getattr(want, name), **close), (want.term, name)
        assert have["ci"] == pytest.approx(want.ci, **close)
        assert have["p"] == pytest.approx(want.p, rel=1e-9, abs=0)
        assert have["pHolm"] == pytest.approx(want.p_holm, rel=1e-9, abs=0)
        assert [seed for seed, _ in have["perSeed"]] == [seed for seed, _ in want.per_seed]
        assert [v for _, v in have["perSeed"]] == pytest.approx(
            [v for _, v in want.per_seed], **close
        )
        assert (have["low"], have["high"]) == (want.low, want.high)
        assert have["aliases"] == list(want.aliases)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_order_of_the_levels_can_be_given() -> None:
    of, order = CASES["a pair"], {"attention": ["window", "exact"]}
    (found,) = in_the_page(of, "best_val", order)
    (want,) = effects(of, "best_val", levels=order)
    assert found["effect"] == pytest.approx(want.effect, rel=1e-9)
    assert found["effect"] == pytest.approx(-effects(of, "best_val")[0].effect, rel=1e-9)
