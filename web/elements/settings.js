/** How a reply is made: values, kept in this browser, and their form. */

import { h } from "./element.js";

const KEY = "paperkiln sampling";

const FIELDS = {
  temperature: {
    label: "Temperature",
    min: 0,
    max: 2,
    step: 0.05,
    value: 0.7,
    help: "0 always takes the likeliest token.",
  },
  top_k: {
    label: "Top-k",
    min: 0,
    max: 200,
    step: 1,
    value: 40,
    help: "Only the k likeliest; 0 keeps all.",
  },
  top_p: {
    label: "Top-p",
    min: 0.05,
    max: 1,
    step: 0.05,
    value: 0.95,
    help: "The fewest tokens whose chances reach p.",
  },
  length: {
    label: "Length",
    min: 16,
    max: 1024,
    step: 16,
    value: 256,
    help: "Tokens of a reply at most.",
  },
};

export class Settings {
  constructor() {
    this.values = Object.fromEntries(
      Object.entries(FIELDS).map(([name, { value }]) => [name, value]),
    );
    this.values.seed = null;
    this.values.system = "";
    try {
      this.take(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
    } catch {
      // Nothing is kept here.
    }
  }

  /** Take over what is in range. @param {Record<string, any>} kept */
  take(kept) {
    for (const [name, { min, max }] of Object.entries(FIELDS)) {
      if (kept[name] >= min && kept[name] <= max) this.values[name] = Number(kept[name]);
    }
    if (typeof kept.system === "string") this.values.system = kept.system;
    if (Number.isSafeInteger(kept.seed) && kept.seed >= 0) this.values.seed = kept.seed;
  }

  /** @param {string} name @param {number | string | null} value */
  set(name, value) {
    this.values[name] = value;
    try {
      localStorage.setItem(KEY, JSON.stringify(this.values));
    } catch {
      // They hold as long as the page does.
    }
  }

  form() {
    const sliders = Object.entries(FIELDS).map(([name, { label, min, max, step, help }]) => {
      const shown = h("span", { class: "value", "aria-hidden": "true" }, String(this.values[name]));
      const slider = h("input", {
        type: "range",
        min,
        max,
        step,
        value: this.values[name],
        "aria-label": label,
        oninput: () => {
          shown.textContent = slider.value;
          this.set(name, Number(slider.value));
        },
      });
      return h("label", {}, h("span", {}, label, shown), slider, h("small", {}, help));
    });
    const seed = h("input", {
      type: "text",
      inputmode: "numeric",
      placeholder: "another one each time",
      value: this.values.seed ?? "",
      oninput: () => {
        const number = Number(seed.value);
        const valid = seed.value.trim() === "" || (Number.isSafeInteger(number) && number >= 0);
        seed.setAttribute("aria-invalid", String(!valid));
        if (valid) this.set("seed", seed.value.trim() === "" ? null : number);
      },
    });
    const system = h("textarea", {
      rows: 3,
      placeholder: "the model's own, if it has one",
      oninput: () => this.set("system", system.value),
    });
    system.value = this.values.system;
    return h(
      "div",
      { class: "settings" },
      h(
        "label",
        { class: "wide" },
        h("span", {}, "System message"),
        system,
        h("small", {}, "Told to the model before the first turn; not every model takes one."),
      ),
      sliders,
      h(
        "label",
        {},
        h("span", {}, "Seed"),
        seed,
        h("small", {}, "The same seed gives the same reply."),
      ),
    );
  }
}
