/** What the three elements share: a shadow root in the app's style, the door, status and faults. */

import { appUrl, client, keepOffline, takeNewBuild } from "../client.js";
import { bytes } from "../protocol.js";

const sheet = new CSSStyleSheet();
try {
  const response = await fetch(appUrl("style.css"));
  sheet.replaceSync(await response.text());
} catch {
  // Plain but usable.
}

/**
 * Make an element: `on…` attributes are listeners, `true` and `false` switch an attribute, and
 * text is always text.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child != null && child !== false));
  return element;
}

/** A line that says what is going on; its height never changes. */
export class Status {
  constructor() {
    this.bar = h("progress", { max: 1, hidden: true, "aria-label": "Loading" });
    this.words = h("span");
    this.element = h("div", { class: "status", role: "status" }, this.words, this.bar);
    /** @type {Map<string, {loaded: number, total: number}>} */
    this.steps = new Map();
  }

  /** @param {string} words */
  say(words) {
    this.steps.clear();
    this.bar.hidden = true;
    this.words.textContent = words;
  }

  /** Show a Progress event; downloads that run at once are added up. */
  progress({ step, loaded, total }) {
    this.steps.set(step, { loaded, total });
    const sum = { loaded: 0, total: 0 };
    for (const each of this.steps.values()) {
      sum.loaded += each.loaded;
      sum.total += each.total;
    }
    const what = [...this.steps.keys()].join(", ");
    this.words.textContent =
      sum.loaded < sum.total
        ? `Loading ${what}: ${bytes(sum.loaded)} of ${bytes(sum.total)}`
        : `Starting ${what}…`;
    this.bar.hidden = sum.loaded >= sum.total;
    this.bar.value = sum.total ? sum.loaded / sum.total : 0;
  }
}

/**
 * A failure as a sentence and ways on.
 * @param {{code?: string, message: string}} error
 * @param {[string, () => void][]} ways
 */
export function fault(error, ways = []) {
  const buttons = ways.map(([label, act]) =>
    h("button", { type: "button", class: "small", onclick: act }, label),
  );
  return h(
    "div",
    { class: "fault", role: "alert" },
    h("p", {}, /[.!?…]$/.test(error.message) ? error.message : `${error.message}.`),
    buttons.length ? h("div", { class: "row" }, buttons) : null,
  );
}

/** Offer text as a file. @param {string} name @param {string} text @param {string} [type] */
export function download(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Copy text, and say so on the button for a moment. @param {HTMLElement} button @param {string} text */
export async function copy(button, text) {
  const label = (button.dataset.label ??= button.textContent); // a second click finds "Copied"
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

/** A dialog with a heading and a Close. @param {string} title @param {...any} content */
export function dialog(title, ...content) {
  const box = h(
    "dialog",
    { "aria-label": title, onclick: (event) => event.target === box && box.close() },
    h(
      "header",
      {},
      h("h2", {}, title),
      h("button", { type: "button", class: "quiet", onclick: () => box.close() }, "Close"),
    ),
    h("div", { class: "content" }, content),
  );
  return box;
}

/** Open a dialog, and forget it when it is closed. @param {ShadowRoot} root @param {HTMLDialogElement} box */
export function show(root, box) {
  box.addEventListener("close", () => box.remove());
  root.append(box);
  box.showModal();
}

/** Started at once with the attribute `autostart`, else by a click on its door. */
export class PaperkilnElement extends HTMLElement {
  /** Of the door: what it is, and what starting it costs. */
  static door = { title: "", words: "", button: "Start" };

  connectedCallback() {
    if (this.shadowRoot) return; // moved, not made
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    this.client = client();
    if (!this.hasAttribute("autostart")) return this.showDoor();
    takeNewBuild().then(() => this.begin());
  }

  begin() {
    this.shadowRoot.replaceChildren();
    this.start();
    if (document.readyState === "complete") keepOfflineLater();
    else addEventListener("load", keepOfflineLater, { once: true });
  }

  showDoor() {
    const { title, words, button } = /** @type {typeof PaperkilnElement} */ (this.constructor).door;
    const open = () => {
      this.begin();
      this.shadowRoot.querySelector("textarea, input, button")?.focus();
    };
    this.shadowRoot.replaceChildren(
      h(
        "div",
        { class: "door" },
        h("h2", {}, title),
        h("p", { class: "soft" }, words),
        h("button", { type: "button", class: "primary", onclick: open }, button),
      ),
    );
  }

  /** Build the element; called once. */
  start() {
    throw new Error("an element starts itself");
  }
}

let keeping = false;

/** Keep the app for offline use when the page has what it needs. */
function keepOfflineLater() {
  if (keeping) return;
  keeping = true;
  const whenQuiet = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 2000));
  client()
    .quiet()
    .then(() => whenQuiet(() => keepOffline()));
}
