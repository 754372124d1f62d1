"""The spec builder, as a visitor uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from visitors import CLIPBOARD, Visit

from paperkiln.spec import json_schema, parse_spec

Visitor = Callable[..., Visit]


def shown(tab: Any) -> dict[str, Any]:
    return json.loads(tab.get_by_label("spec.json", exact=True).text_content())


def picture(tab: Any) -> str:
    return tab.locator(".figure svg").get_attribute("aria-label")


def test_every_field_of_the_schema_is_in_the_form_and_explained(visit: Visitor) -> None:
    tab = visit().open("spec.html")
    schema = json_schema()
    sections = {
        "arch": "ModelConfig",
        "data": "DataSpec",
        "train": "TrainSpec",
        "export": "ExportSpec",
    }
    for section, model in sections.items():
        for name, field in schema["$defs"][model]["properties"].items():
            if "$ref" in field or (section, name) == ("arch", "preset"):
                continue
            control = tab.locator(f"#{section}-{name}")
            assert control.count() == 1, f"{section}.{name}"
            help_text = tab.locator(f"#{section}-{name}-help").text_content()
            assert field["description"] in help_text
    assert tab.locator("#train-early_stopping-patience").count() == 1


def test_a_change_redraws_everything(visit: Visitor) -> None:
    tab = visit().open("spec.html")
    assert "RMSNorm" in picture(tab)
    before = tab.locator(".costs dd").first.inner_text()
    tab.locator("#arch-n_layers").fill("6")
    tab.locator("#arch-norm").select_option("layernorm")
    tab.locator(".figure svg[aria-label*='6 blocks'][aria-label*='LayerNorm']").wait_for()
    assert tab.locator(".costs dd").first.inner_text() != before
    assert shown(tab) == {"arch": {"n_layers": 6, "norm": "layernorm"}}
    tab.get_by_role("button", name="Reset n_layers to its default").click()
    tab.locator(".figure svg[aria-label*='2 blocks']").wait_for()
    assert shown(tab) == {"arch": {"norm": "layernorm"}}


def test_errors_stand_at_their_field(visit: Visitor) -> None:
    tab = visit().open("spec.html")
    tab.locator("#arch-d_model").fill("130")
    tab.locator("#arch-d_model-error").get_by_text("not divisible by n_heads 4").wait_for()
    assert tab.locator("#arch-d_model").get_attribute("aria-invalid") == "true"
    tab.locator("#arch-d_model").fill("many")
    tab.locator("#arch-d_model-error").get_by_text("valid integer").wait_for()
    tab.locator("#arch-d_model").fill("256")
    tab.get_by_text("Checked, as the trainer checks it.").wait_for()
    assert tab.locator("#arch-d_model-error").inner_text() == ""


def test_presets_and_the_file_they_make(visit: Visitor) -> None:
    tab = visit().open("spec.html")
    tab.get_by_role("button", name="attention-is-all-you-need").click()
    tab.locator(".figure svg[aria-label*='6 blocks'][aria-label*='Sinusoidal']").wait_for()
    assert tab.locator("#arch-d_model").get_attribute("placeholder") == "512"
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Download").click()
    assert waiting.value.suggested_filename == "attention-is-all-you-need.json"
    spec = parse_spec(json.loads(Path(waiting.value.path()).read_text()))
    assert spec.arch.norm_placement == "post"
    assert (
        tab.locator(".command code").inner_text() == "paperkiln run attention-is-all-you-need.json"
    )


def test_a_link_carries_the_spec(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.open("spec.html")
    tab.get_by_role("button", name="tinychat-quick").click()
    tab.wait_for_function("() => location.hash.startsWith('#spec=')")
    preset = tab.evaluate("location.hash")
    tab.locator("#arch-n_layers").fill("5")
    tab.wait_for_function("preset => location.hash !== preset", arg=preset)
    wanted, link = shown(tab), tab.url
    other = visitor.context.new_page()
    other.goto(link)
    other.locator(".figure svg[aria-label*='5 blocks']").wait_for()
    assert shown(other) == wanted
    assert not any("spec=" in url.partition("#")[0] for url in visitor.requests)


def test_the_file_its_link_and_its_command_are_copied(visit: Visitor) -> None:
    tab = visit(permissions=CLIPBOARD).open("spec.html")
    tab.locator("#arch-n_layers").fill("3")
    tab.locator(".figure svg[aria-label*='3 blocks']").wait_for()
    copied = {}
    for i, name in enumerate(("Copy", "Copy a link", "Copy")):
        tab.get_by_role("button", name=name, exact=True).nth(i // 2).click()
        tab.get_by_role("button", name="Copied").wait_for()
        copied[i] = tab.evaluate("navigator.clipboard.readText()")
        tab.get_by_role("button", name="Copied").wait_for(state="detached")
    assert json.loads(copied[0]) == shown(tab)
    assert copied[1] == tab.url
    assert copied[2].startswith("paperkiln run ")
    other = tab.context.new_page()
    other.goto(copied[1])
    other.locator(".figure svg[aria-label*='3 blocks']").wait_for()


def test_damaged_links_are_said(visit: Visitor) -> None:
    visitor = visit()
    for fragment in ("#spec=AAAA", "#spec=!", "#spec=" + "A" * 5000):
        tab = visitor.context.new_page()
        tab.goto(visitor.host.url + "spec.html" + fragment)
        alert = tab.get_by_role("alert").filter(has_text="The link is damaged")
        if fragment == "#spec=!":  # no link at all
            tab.wait_for_selector("paperkiln-spec[data-ready]")
            assert alert.count() == 0
        else:
            alert.wait_for()
        assert shown(tab) == {}
        tab.close()


def test_the_form_works_before_python(visit: Visitor) -> None:
    tab = visit().open("spec.html", ready=False)
    tab.locator("#arch-n_layers").fill("9")
    assert tab.locator("paperkiln-spec[data-ready]").count() == 0
    assert shown(tab) == {"arch": {"n_layers": 9}}
    tab.locator(".figure svg[aria-label*='9 blocks']").wait_for()


def test_a_file_is_opened(visit: Visitor, tmp_path: Path) -> None:
    tab = visit().open("spec.html")
    (tmp_path / "mine.json").write_text('{"name": "mine", "arch": {"n_layers": 7}}')
    tab.get_by_label("Open a spec.json").set_input_files(tmp_path / "mine.json")
    tab.locator(".figure svg[aria-label*='7 blocks']").wait_for()
    assert tab.locator("#name").input_value() == "mine"
    (tmp_path / "bad.json").write_text("[1, 2")
    tab.get_by_label("Open a spec.json").set_input_files(tmp_path / "bad.json")
    tab.get_by_role("alert").filter(has_text="bad.json is no run spec").wait_for()
