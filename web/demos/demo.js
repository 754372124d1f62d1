/** What the demos of the docs share: a shadow root in the site's colours, sliders, SVG. */

const SVG = "http://www.w3.org/2000/svg";

// The host page may set the same variables on the element; those win.
const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host { display: block; color-scheme: light dark; --paper: #fbf8f1; --sheet: #fffefb; --sunk: #f4efe4;
  --ink: #211d18; --soft: #655d52; --faint: #73695d; --line: #e3dbcb; --edge: #978d7e; --accent: #a63d16;
  --on-accent: #fffefb; --wash: #f7e9dc; --good: #2e6b3f; --bad: #a3231f; --cool: #2b6178; }
@media (prefers-color-scheme: dark) { :host { --paper: #171412; --sheet: #1f1b18; --sunk: #12100e;
  --ink: #ece5d9; --soft: #b0a698; --faint: #968c7e; --line: #352f29; --edge: #7d7266; --accent: #f0895b;
  --on-accent: #1d1410; --wash: #33251d; --good: #8fcb9b; --bad: #f2938c; --cool: #8fc1d6; } }
*, *::before, *::after { box-sizing: border-box; }
.demo { container-type: inline-size; padding: 1.2rem clamp(.9rem, 3vw, 1.5rem) 1.3rem; border: 1px solid var(--line);
  border-radius: 14px; background: var(--sheet); color: var(--ink);
  font: .94rem/1.5 "Avenir Next", Avenir, "Segoe UI", "Helvetica Neue", "Liberation Sans", system-ui, sans-serif; }
.controls { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .7rem 1.6rem; align-items: end; }
label { display: grid; gap: .2rem; font-weight: 600; font-size: .88rem; }
label > span { display: flex; justify-content: space-between; gap: .6rem; }
.value { font-weight: 400; font-variant-numeric: tabular-nums; color: var(--soft); }
input[type=range] { width: 100%; height: 1.6rem; margin: 0; accent-color: var(--accent); }
label.tick { display: flex; align-items: center; gap: .55rem; min-height: 2rem; }
input[type=checkbox] { width: 1.1rem; height: 1.1rem; margin: 0; accent-color: var(--accent); }
select, button { min-height: 2.3rem; padding: .25rem .8rem; border: 1px solid var(--edge); border-radius: 8px;
  background: var(--sheet); color: var(--ink); font: inherit; font-weight: 400; cursor: pointer; }
button:hover, select:hover { border-color: var(--accent); }
button.first { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.row { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
.says { margin: .9rem 0 0; min-height: 3em; color: var(--soft); }
.says b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 12px "Avenir Next", "Segoe UI", "Liberation Sans", system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); } .axis { stroke: var(--edge); }
`);

/**
 * Make an element; names that begin with "on" are listeners.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

/** An element with a frame; a subclass builds its content once and redraws it on each change. */
export class Demo extends HTMLElement {
  static style = "";

  connectedCallback() {
    if (this.shadowRoot) return; // moved, not made
    const root = this.attachShadow({ mode: "open" });
    const own = new CSSStyleSheet(); // not a <style>: a page with a strict policy forbids those
    own.replaceSync(/** @type {any} */ (this.constructor).style);
    root.adoptedStyleSheets = [sheet, own];
    this.frame = h("div", { class: "demo" });
    root.append(this.frame);
    this.build();
    this.draw();
  }

  /** @returns {void} */
  build() {}

  /** @returns {void} */
  draw() {}

  /**
   * A labelled slider that keeps `this[name]` and redraws.
   * @param {string} name @param {string} label
   * @param {{min: number, max: number, step?: number, show?: (value: number) => string}} options
   */
  slider(name, label, { min, max, step = 1, show = String }) {
    const shown = h("span", { class: "value" }, show(this[name]));
    const input = h("input", { type: "range", min, max, step, value: this[name] });
    const update = () => {
      shown.textContent = show(this[name]);
      input.setAttribute("aria-valuetext", show(this[name]));
    };
    input.addEventListener("input", () => {
      this[name] = Number(input.value);
      update();
      this.draw();
    });
    update();
    return h("label", {}, h("span", {}, label, shown), input);
  }

  /** A labelled choice. @param {string} name @param {string} label @param {[any, string][]} options */
  choice(name, label, options) {
    const select = h(
      "select",
      { onchange: () => { this[name] = options[select.selectedIndex][0]; this.draw(); } },
      options.map(([value, text]) => h("option", { selected: value === this[name] }, text)),
    );
    return h("label", {}, h("span", {}, label), select);
  }

  /** A labelled tick box. @param {string} name @param {string} label */
  tick(name, label) {
    const input = h("input", { type: "checkbox",
      onchange: () => { this[name] = input.checked; this.draw(); } });
    return h("label", { class: "tick" }, input, label);
  }
}
