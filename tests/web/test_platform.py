"""What all pages have in common: offline, slow networks, access, no layout jumps, embedding."""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from visitors import BASE, PAGES, PLACE, ROOT, Visit, use, violations

Visitor = Callable[..., Visit]
# The browser tells of a layout shift when it has painted.
TWO_FRAMES = "() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))"


def test_after_one_visit_everything_works_offline_and_from_an_image(visit: Visitor) -> None:
    visitor = visit(first=True, keeps=True)
    first = visitor.open("chat.html")
    first.wait_for_selector("html[data-offline=ready]")
    first.wait_for_selector("html[data-snapshot=ready]")
    first.close()
    visitor.host.stop()
    visitor.context.set_offline(True)
    for page in PAGES:
        tab = visitor.open(page)
        use(tab, page)
        tab.close()


def test_a_broken_image_is_thrown_away(visit: Visitor) -> None:
    visitor = visit()
    told = "the image of Python did not start"
    tab = visitor.open("paper.html")
    visitor.expected += [told]
    tab.evaluate(
        """async () => {
          const cache = await caches.open((await caches.keys())[0]);
          const key = (await cache.keys()).find((each) => each.url.includes("snapshot?"));
          await cache.put(key, new Response(new Uint8Array(1000)));
        }"""
    )
    tab.reload()
    tab.wait_for_selector("paperkiln-paper[data-ready]")
    use(tab, "paper.html")
    assert any(told in problem for problem in visitor.problems)


def test_a_new_build_takes_over_when_no_other_tab_has_the_old_one(
    visit: Visitor, site: Path, tmp_path: Path
) -> None:
    visitor = visit(keeps=True)
    tab = visitor.open("paper.html")
    tab.wait_for_selector("html[data-offline=ready]")
    visitor.host.root = str(rebuilt(site, tmp_path / "new"))
    asked: list[str] = []
    visitor.host.wait = staticmethod(asked.append)
    other = visitor.open("paper.html", ready=False)
    other.wait_for_function(
        """async () => {
          const registration = await navigator.serviceWorker.getRegistration();
          if (!registration.waiting) await registration.update();
          return registration.waiting !== null;
        }"""
    )
    other.reload()
    other.get_by_label("Choose a source file").wait_for(state="attached")
    assert other.title().startswith("Paper reader")  # both tabs go on with the old files
    tab.close()
    other.reload()
    other.wait_for_function("() => document.title === 'A new build'")
    other.wait_for_selector("paperkiln-paper[data-ready]")
    use(other, "paper.html")
    assert not any("pyodide" in path for path in asked)  # what did not change stays


def rebuilt(site: Path, out: Path) -> Path:
    """Return a copy of the site in which one page has changed."""
    shutil.copytree(site, out)
    page = out / "app" / "paper.html"
    text = page.read_text()
    title = text.partition("<title>")[2].partition("</title>")[0]
    page.write_text(text.replace(f"<title>{title}<", "<title>A new build<"))
    spec = importlib.util.spec_from_file_location("web_build", ROOT / "web" / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    old = json.loads((out / "app" / "manifest.json").read_text())
    (out / "app" / "manifest.json").unlink()
    shutil.copyfile(ROOT / "web" / "sw.js", out / "app" / "sw.js")
    build.write_manifest(out / "app", **{k: old[k] for k in ("pyodide", "wheels", "models")})
    return out


def test_offline_at_the_first_visit_is_said(visit: Visitor) -> None:
    visitor = visit(first=True)
    visitor.expected += ["Failed to load resource", "wasm", "WebAssembly"]
    tab = visitor.context.new_page()
    tab.route("**/pyodide.asm.wasm", lambda route: route.abort())
    tab.goto(visitor.host.url + "paper.html")
    tab.get_by_role("alert").filter(has_text="Check the connection").wait_for()


@pytest.mark.parametrize("page", PAGES)
def test_a_slow_network_and_a_reload_in_mid_load(visit: Visitor, page: str) -> None:
    visitor = visit(first=True, keeps=True)
    waits = {"pyodide.asm.wasm": 1.5, ".gguf": 1.0, ".whl": 0.4, ".json": 0.2}

    def wait(path: str) -> None:
        time.sleep(next((s for end, s in waits.items() if path.endswith(end)), 0.02))

    visitor.host.wait = staticmethod(wait)
    tab = visitor.context.new_page()
    with tab.expect_request("**/pyodide.asm.wasm"):
        tab.goto(visitor.host.url + page)
    tab.reload()
    tab.wait_for_selector(f"paperkiln-{page.partition('.')[0]}[data-ready]")
    use(tab, page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_access_width_and_no_jump(visit: Visitor, scheme: str, width: int) -> None:
    first = scheme == "light"  # the others start from an image, which looks different meanwhile
    size = {"width": width, "height": 844}
    visitor = visit(first=first, color_scheme=scheme, viewport=size)
    visitor.context.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => { for (const e of list.getEntries())"
        " if (!e.hadRecentInput) window.shift += e.value; })"
        ".observe({ type: 'layout-shift', buffered: true });"
    )
    for page in PAGES:
        tab = visitor.open(page)
        tab.evaluate(TWO_FRAMES)
        assert tab.evaluate("window.shift") < 0.05, page
        for used in (False, True):
            if used:
                use(tab, page)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, page
            assert violations(tab) == [], page
        for name in ("Settings", "Card", "Conversations") if page == "chat.html" else ():
            tab.get_by_role("button", name=name, exact=True).click()
            tab.get_by_role("dialog").get_by_role("button", name="Close").wait_for()
            assert violations(tab) == [], name
            tab.keyboard.press("Escape")
        tab.close()


def test_keyboard_alone_is_enough(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    for _ in range(20):
        tab.keyboard.press("Tab")
        focused = "document.activeElement.shadowRoot?.activeElement?.getAttribute('aria-label')"
        if tab.evaluate(focused) == "Your message":
            break
    tab.keyboard.type("hello")
    tab.keyboard.press("Enter")
    tab.locator(".turn.assistant .figures").first.wait_for()


def test_an_element_in_someones_page_starts_on_a_click(visit: Visitor, site: Path) -> None:
    visitor = visit()
    visitor.expected += ["404"]  # of a favicon
    (site / "embed.html").write_text(
        "<!doctype html><html lang=en><title>x</title><style>button{font-size:99px}</style>"
        "<h1>mine</h1><script type=module src=app/elements/chat.js></script>"
        "<paperkiln-chat></paperkiln-chat>"
    )
    tab = visitor.context.new_page()
    tab.goto(f"{visitor.host.origin}{BASE}embed.html")
    tab.get_by_role("button", name="Start the chat").wait_for()
    tab.wait_for_load_state("networkidle")
    assert not any("pyodide" in url for url in visitor.requests)
    tab.get_by_role("button", name="Start the chat").click()
    tab.wait_for_selector("paperkiln-chat[data-ready]")
    use(tab, "chat.html")


def test_elements_in_a_narrow_place_fit_it_and_do_not_move_it(visit: Visitor, site: Path) -> None:
    """They look at the width they have, not at the window's."""
    names = {"chat": "Start the chat", "spec": "Open the spec builder",
             "paper": "Open the paper reader"}  # fmt: skip
    (site / "narrow.html").write_text(
        "<!doctype html><html lang=en><title>x</title><link rel=icon href='data:,'><main><h1>mine"
        + "".join(f"<script type=module src=app/elements/{name}.js></script>" for name in names)
        + "</h1><div style='width: 22rem'>"
        + "".join(f"<paperkiln-{name}></paperkiln-{name}>" for name in names)
    )
    visitor = visit(viewport={"width": 1280, "height": 844})
    tab = visitor.context.new_page()
    tab.goto(f"{visitor.host.origin}{BASE}narrow.html")
    elements = [tab.locator(f"paperkiln-{name}") for name in names]
    for button in names.values():
        tab.get_by_role("button", name=button).wait_for()
    places = [element.evaluate(PLACE) for element in elements]
    for name, button in names.items():
        tab.get_by_role("button", name=button).click()
        tab.wait_for_selector(f"paperkiln-{name}[data-ready]")
    assert violations(tab) == []
    for name in names:
        use(tab, f"{name}.html")
    assert [element.evaluate(PLACE) for element in elements] == places
    for element in elements:
        assert element.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    model, acts = (tab.locator(f"paperkiln-chat .{part}").first for part in ("model", "acts"))
    assert acts.evaluate(PLACE)[1] > model.evaluate(PLACE)[1]  # below it, as on a phone
    assert tab.locator("paperkiln-spec .brief").is_visible()


def test_the_policy_of_the_pages_is_strict(site: Path) -> None:
    for page in PAGES:
        text = (site / "app" / page).read_text()
        policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
        assert policy.startswith("default-src 'none'")
        assert "{{" not in policy
        for forbidden in ("unsafe-inline", "unsafe-eval'; ", "http:", "https:", "*"):
            assert forbidden not in policy.replace("'wasm-unsafe-eval'", "")
