/** <paperkiln-spec>: a run spec as a form, what it costs, and a picture of what it builds. */

import { appJson } from "../client.js";
import { PaperkilnElement, Status, copy, download, fault, h } from "./element.js";
import { SpecForm, at, inWords, withValue } from "./form.js";
import { pack, readSpec, unpack } from "./fragment.js";

const PAUSE = 120; // ms without a change before Python is asked

export class PaperkilnSpec extends PaperkilnElement {
  static door = {
    title: "Describe a run",
    words:
      "A form with every choice, checked as the trainer checks it. Python loads into this page, about 15 MB once.",
    button: "Open the spec builder",
  };

  async start() {
    /** What was set, and nothing else. @type {any} */
    this.values = {};
    this.checks = 0; // how many were asked for
    this.status = new Status();
    this.status.say("Loading the form…");
    this.trouble = h("div");
    /** Of a link or a file that could not be read: it stays until something changes. */
    this.refused = h("div");
    this.shadowRoot.append(
      h("div", { class: "spec" }, h("div", {}, this.status.element, this.trouble), h("aside", {})),
    );
    try {
      [this.schema, this.presets] = await Promise.all([
        appJson("run.schema.json"),
        appJson("presets.json"),
      ]);
    } catch (error) {
      this.trouble.replaceChildren(fault(error, [["Try again", () => location.reload()]]));
      return;
    }
    this.build();
    await this.readLink();
    addEventListener("hashchange", () => this.readLink());
    this.client.onRestart.add(() => this.check());
    this.check();
  }

  // --- the page ---------------------------------------------------------------------------------

  build() {
    this.form = new SpecForm(this.schema, (path, value) =>
      this.change(withValue(this.values, path, value)),
    );
    this.starts = this.buildStarts();
    const columns = h(
      "div",
      { class: "spec" },
      h("div", {}, this.starts, this.refused, this.trouble, this.form.element),
      h(
        "aside",
        { id: "costs", "aria-label": "What it builds and costs" },
        this.status.element,
        this.buildCosts(),
        this.buildFigure(),
        this.buildFile(),
      ),
      this.buildBrief(),
    );
    this.shadowRoot.replaceChildren(columns);
    this.form.show(this.values, this.defaults());
  }

  /** The defaults as the schema has them, until Python resolves the spec. */
  defaults() {
    return Object.fromEntries(
      Object.entries(this.schema.properties).map(([name, { default: value }]) => [name, value]),
    );
  }

  buildStarts() {
    const start = (name, spec) =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          "aria-pressed": "false",
          "data-start": name,
          onclick: () => this.change(spec, name),
        },
        name,
      );
    return h(
      "div",
      {},
      h("h2", { class: "label" }, "Start from"),
      h(
        "div",
        { class: "starts" },
        start("defaults", {}),
        Object.entries(this.presets.runs).map(([name, spec]) => start(name, spec)),
        Object.keys(this.presets.arch).map((name) => start(name, { name, arch: { preset: name } })),
        this.buildOpen(),
      ),
    );
  }

  buildOpen() {
    const file = h("input", {
      type: "file",
      accept: ".json",
      "aria-label": "Open a spec.json",
      onchange: async () => {
        const [chosen] = file.files;
        try {
          if (chosen.size > 1 << 20) throw new Error("too large");
          this.change(readSpec(await chosen.text()));
        } catch {
          this.refused.replaceChildren(
            fault({
              message: `${chosen.name} is no run spec: it should hold one JSON object. specs/ has examples.`,
            }),
          );
        }
        file.value = "";
      },
    });
    return h("label", { class: "button small quiet" }, file, "or open a file");
  }

  buildCosts() {
    const cost = (label) => {
      const value = h("span", {}, "…");
      const remark = h("small", {});
      return [value, remark, h("div", {}, h("dt", {}, label), h("dd", {}, value, remark))];
    };
    const shown = {};
    const rows = [
      ["parameters", "Parameters"],
      ["flops", "FLOPs per token"],
      ["memory", "Memory to train"],
      ["time", "Time to train"],
    ].map(([name, label]) => {
      const [value, remark, row] = cost(label);
      shown[name] = { value, remark };
      return row;
    });
    this.costs = shown;
    this.rate = h("input", {
      type: "text",
      inputmode: "decimal",
      id: "rate",
      oninput: () => this.checkSoon(),
    });
    this.rateWords = h("span", {});
    this.notes = h("ul", { class: "notes" });
    this.costPanel = h(
      "section",
      { class: "panel", "aria-label": "Costs" },
      h("h2", { class: "label" }, "What it costs"),
      h("dl", { class: "costs" }, rows),
      h(
        "div",
        { class: "rate" },
        h("label", { for: "rate" }, "at GFLOP/s"),
        this.rate,
        this.rateWords,
      ),
      this.notes,
    );
    return this.costPanel;
  }

  /** On a phone the costs are far below the form: a line of them stays in sight. */
  buildBrief() {
    this.brief = h(
      "button",
      {
        type: "button",
        class: "brief",
        onclick: () =>
          this.shadowRoot.querySelector("#costs").scrollIntoView({ behavior: "smooth" }),
      },
      "…",
    );
    return this.brief;
  }

  buildFigure() {
    this.figure = h("figure", { class: "panel figure" });
    return this.figure;
  }

  buildFile() {
    this.json = h("pre", { class: "sheet", tabindex: "0", "aria-label": "spec.json" });
    this.command = h("code", {});
    const copies = (label, text) =>
      h(
        "button",
        { type: "button", class: "small", onclick: (event) => copy(event.currentTarget, text()) },
        label,
      );
    return h(
      "section",
      { class: "panel", "aria-label": "The file" },
      h("h2", { class: "label" }, "spec.json"),
      this.json,
      h(
        "div",
        { class: "row made" },
        h(
          "button",
          {
            type: "button",
            class: "small primary",
            onclick: () => download(this.fileName, this.text(), "application/json"),
          },
          "Download",
        ),
        copies("Copy", () => this.text()),
        copies("Copy a link", () => location.href),
      ),
      h(
        "div",
        { class: "command" },
        this.command,
        copies("Copy", () => this.command.textContent),
      ),
    );
  }

  // --- changing and checking --------------------------------------------------------------------

  /** @param {any} values @param {string} [start] the preset that they are */
  change(values, start) {
    this.values = values;
    this.refused.replaceChildren();
    for (const button of this.starts.querySelectorAll("[data-start]")) {
      button.setAttribute("aria-pressed", String(button.dataset.start === start));
    }
    this.draw();
    this.writeLink();
    this.checkSoon();
  }

  draw() {
    this.form.show(this.values, this.resolved ?? this.defaults());
    this.json.textContent = this.text();
    this.command.textContent = `paperkiln run ${this.fileName}`;
  }

  get fileName() {
    const name = inWords(at(this.values, ["name"]) ?? "run");
    return `${/^[A-Za-z0-9][\w.-]{0,99}$/.test(name) ? name : "run"}.json`;
  }

  text() {
    return `${JSON.stringify(this.values, null, 2)}\n`;
  }

  checkSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE);
  }

  async check() {
    const { values } = this;
    const mine = ++this.checks;
    const rate = Number(this.rate.value.replaceAll(",", ""));
    const body = { values, gflops: this.rate.value && rate > 0 ? rate : null };
    let answer;
    try {
      answer = await this.client.request("spec.check", body, (event) =>
        this.status.progress(event),
      );
    } catch (error) {
      if (mine !== this.checks) return; // it was asked again: the worker is back
      this.status.say("The form works; it is not checked.");
      this.trouble.replaceChildren(fault(error, [["Try again", () => this.check()]]));
      return;
    }
    this.trouble.replaceChildren();
    this.dataset.ready = "";
    if (values !== this.values) return; // a later check is on its way
    this.form.complain(answer.errors);
    this.showAnswer(answer);
  }

  showAnswer(answer) {
    const wrong = answer.errors.length;
    for (const panel of [this.costPanel, this.figure]) panel.classList.toggle("stale", wrong > 0);
    if (wrong) {
      const fields = wrong === 1 ? "One field is" : `${wrong} fields are`;
      this.status.say(`${fields} to mend; below is what was right before.`);
      return;
    }
    this.status.say("Checked, as the trainer checks it.");
    this.resolved = answer.spec;
    this.draw();
    this.showCosts(answer.estimate);
    this.notes.replaceChildren(...answer.notes.map((note) => h("li", {}, note)));
    const svg = new DOMParser().parseFromString(answer.svg, "image/svg+xml").documentElement;
    this.figure.replaceChildren(
      document.importNode(svg, true),
      h("figcaption", { class: "hidden-title" }, answer.words),
    );
  }

  showCosts(e) {
    const show = (name, value, remark) => {
      this.costs[name].value.textContent = value;
      this.costs[name].remark.textContent = remark;
    };
    show(
      "parameters",
      short(e.parameters),
      `${e.parameters.toLocaleString("en")} at V = ${e.vocabulary.toLocaleString("en")}`,
    );
    show("flops", short(e.flops_per_token), "to train, forward and back");
    show("memory", size(e.memory_bytes), `weights alone ${size(e.weights_bytes)}`);
    show("time", duration(e.seconds), `${short(e.tokens)} tokens`);
    this.brief.textContent = `${short(e.parameters)} parameters · ${size(e.memory_bytes)} · ${duration(e.seconds)}`;
    this.rate.placeholder = e.gflops.toLocaleString("en");
    this.rateWords.textContent = e.measured
      ? "measured on two cores"
      : this.rate.value
        ? ""
        : "a guess: put in your own";
  }

  // --- links ------------------------------------------------------------------------------------

  async writeLink() {
    const { values } = this;
    const fragment = Object.keys(values).length ? `#${await pack(values)}` : "";
    if (values !== this.values) return;
    this.written = fragment;
    history.replaceState(null, "", location.pathname + location.search + fragment);
  }

  async readLink() {
    if (!this.hasAttribute("autostart") || location.hash === (this.written ?? "")) return;
    try {
      const values = await unpack(location.hash);
      if (values) this.change(values);
      else this.draw();
    } catch {
      this.draw();
      this.refused.replaceChildren(
        fault({
          message:
            "The link is damaged: the spec in it cannot be read. Ask for it again, or start from a preset.",
        }),
      );
    }
  }
}

const UNITS = [
  ["T", 1e12],
  ["B", 1e9],
  ["M", 1e6],
  ["k", 1e3],
];

/** @param {number} n */
function short(n) {
  const [unit, of] = UNITS.find(([, least]) => n >= least) ?? ["", 1];
  return `${Number((n / of).toPrecision(3))} ${unit}`.trim();
}

/** @param {number} n bytes */
function size(n) {
  const [unit, of] = [
    ["TB", 1e12],
    ["GB", 1e9],
    ["MB", 1e6],
  ].find(([, least]) => n >= least) ?? ["kB", 1e3];
  return `${Number((n / of).toPrecision(3))} ${unit}`;
}

/** @param {number} s seconds */
function duration(s) {
  if (s < 90) return `${Math.max(1, Math.round(s))} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172_800) return `${Number((s / 3600).toPrecision(2))} h`;
  if (s < 63_072_000) return `${Math.round(s / 86_400).toLocaleString("en")} days`;
  return `${Math.round(s / 31_536_000).toLocaleString("en")} years`;
}

customElements.define("paperkiln-spec", PaperkilnSpec);
