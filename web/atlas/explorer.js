/** <paperkiln-atlas>: a study's effects, interactions, seeds and budgets, computed from its rows. */

import { Demo, h } from "../demos/demo.js";
import { budgets, metricsOf, readRows } from "./blocks.js";
import { effects } from "./effects.js";
import { style } from "./explorer-style.js";
import {
  ESTIMATE_HEAD, budgetsFigure, digits, effectsFigure, estimateRow, meansDrawing, probability, seedsFigure, signed, table,
} from "./plots.js";
import { mean } from "./statistics.js";

/** @typedef {import("./effects.js").Estimate} Estimate */

const FIRST = ["best_val", "final_val", "final_train_loss", "loss_auc", "half_gap_step", "tokens_per_second"];
const LOSSES = /^(best_val|final_val|final_train_loss|loss_tail_std|val@.*)$/;
const UNITS = { tokens_per_second: "tokens/s", wall_seconds: "s", energy_joules: "J", half_gap_step: "steps" };
const OWN = "a file of yours";

const unitOf = (metric) => (LOSSES.test(metric) ? "nats per token" : (UNITS[metric] ?? ""));

export class PaperkilnAtlas extends Demo {
  static style = style;

  /** Where the data lies: the attribute `data`, else beside the docs that this app belongs to. */
  get data() {
    return new URL(this.getAttribute("data") ?? new URL("../../atlas/data/", import.meta.url), document.baseURI);
  }

  build() {
    Object.assign(this, { studies: [], rows: [], levels: {}, metric: "best_val", factor: "", pair: "" });
    this.studySelect = h("select", { onchange: () => this.openStudy(this.studySelect.value) });
    this.metricSelect = h("select", { onchange: () => { this.metric = this.metricSelect.value; this.draw(); } });
    const file = h("input", { type: "file", accept: ".jsonl", onchange: () => { this.take(file.files[0]); file.value = ""; } });
    this.question = h("p", { class: "question" });
    this.says = h("p", { class: "says", role: "status" }, "Looking for studies…");
    this.content = h("div", { class: "content" });
    this.frame.append(
      h("div", { class: "controls" },
        h("label", {}, h("span", {}, "Study"), this.studySelect),
        h("label", {}, h("span", {}, "Metric"), this.metricSelect),
        h("label", { class: "file" }, h("span", {}, "Rows of your own"), h("span", { class: "button" }, file, "Drop or choose rows.jsonl")),
      ),
      this.question, this.says, this.content,
    );
    this.frame.addEventListener("dragover", (event) => { event.preventDefault(); this.frame.classList.add("over"); });
    this.frame.addEventListener("dragleave", () => this.frame.classList.remove("over"));
    this.frame.addEventListener("drop", (event) => {
      event.preventDefault();
      this.frame.classList.remove("over");
      if (event.dataTransfer.files[0]) this.take(event.dataTransfer.files[0]);
    });
    this.watchWidth();
    this.find();
  }

  /** Draw again when the width changes: text keeps its size. */
  watchWidth() {
    let last = this.frame.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(this.frame.clientWidth - last) < 2) return;
      last = this.frame.clientWidth;
      this.draw();
    }).observe(this.frame);
  }

  // --- rows ---------------------------------------------------------------------------------------

  async find() {
    try {
      this.studies = await (await this.ask("studies.json")).json();
    } catch (error) {
      return this.say(`The list of studies could not be loaded (${error.message}). Rows of your own can still be dropped here.`);
    }
    const wanted = new URLSearchParams(location.search).get("study");
    this.list();
    if (!this.studies.length) return this.say("There are no studies yet. Rows of your own can be dropped here.");
    await this.openStudy(this.studies.some(({ name }) => name === wanted) ? wanted : this.studies[0].name);
  }

  async ask(path) {
    const response = await fetch(new URL(path, this.data));
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response;
  }

  list(chosen = "") {
    const names = [...this.studies.map(({ name }) => name), ...(chosen === OWN ? [OWN] : [])];
    this.studySelect.replaceChildren(...names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
  }

  /** @param {string} name */
  async openStudy(name) {
    const study = this.studies.find((each) => each.name === name);
    if (!study) return;
    this.list(name);
    this.asked = name;
    try {
      const text = await (await this.ask(study.rows)).text();
      if (this.asked === name) this.show(readRows(text), study.factors, study.question);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Rows from the reader's disk. @param {File} file */
  async take(file) {
    this.asked = OWN;
    try {
      if (file.size > 64e6) throw new Error("The file is larger than 64 MB; rows.jsonl of a study is smaller");
      const rows = readRows(await file.text());
      this.list(OWN);
      this.show(rows, {}, `${file.name}, the first level of each factor in natural order being the low one`);
    } catch (error) {
      this.fail(error);
    }
  }

  show(rows, levels, question) {
    Object.assign(this, { rows, levels, factor: "", pair: "" });
    this.question.textContent = question;
    const all = metricsOf(rows);
    const metrics = [...FIRST.filter((name) => all.includes(name)), ...all.filter((name) => !FIRST.includes(name))];
    const option = (value) => h("option", { value, selected: value === this.metric }, value);
    const steps = budgets(rows).map((step) => `val@${step}`);
    if (![...metrics, ...steps].includes(this.metric)) this.metric = metrics[0] ?? steps[0];
    this.metricSelect.replaceChildren(
      ...metrics.map(option),
      ...(steps.length ? [h("optgroup", { label: "lowest validation loss up to a step" }, steps.map(option))] : []),
    );
    this.draw();
  }

  say(words) {
    this.says.textContent = words;
  }

  /** Say what is wrong; what was shown before would be taken for the answer. */
  fail(error) {
    this.content.replaceChildren();
    this.rows = [];
    this.say(/[.!?]$/.test(error.message) ? error.message : `${error.message}.`);
  }

  // --- figures ------------------------------------------------------------------------------------

  draw() {
    if (!this.rows.length) return;
    const width = Math.max(260, this.content.clientWidth);
    const unit = unitOf(this.metric);
    let found;
    try {
      found = effects(this.rows, this.metric, this.levels);
    } catch (error) {
      this.content.replaceChildren();
      return this.say(`${this.metric}: ${error.message}.`);
    }
    const { table: blocks, error, estimates, refusal } = found;
    const runs = blocks.values.reduce((n, cell) => n + cell.size, 0);
    const missing = blocks.missing.length ? ` ${blocks.missing.length} runs are incomplete and left out.` : "";
    const seeds = error.leftOut.length ? ` Seeds that not every cell has are left out: ${error.leftOut.join(", ")}.` : "";
    this.say(`${runs} runs: ${blocks.cells.length} cells, ${error.seeds.length} seeds. Error term: ${error.words}.${missing}${seeds}`);
    this.content.replaceChildren(
      effectsFigure(estimates.filter(({ term }) => !term.includes(":")), unit, width),
      ...this.interactions(blocks, found, unit, width),
      seedsFigure(blocks, unit, width),
      ...this.overBudgets(blocks, width),
    );
    this.toggleAttribute("data-ready", true);
  }

  /** A table of pairs of factors; a click on one shows its means. */
  interactions(blocks, { estimates, refusal, error }, unit, width) {
    const names = Object.keys(blocks.factors);
    if (names.length < 2) return [];
    const title = h("h2", {}, "Interactions");
    if (refusal) return [h("section", {}, title, h("p", { class: "soft" }, refusal))];
    const pairs = new Map(estimates.filter(({ term }) => term.includes(":")).map((e) => [e.term, e]));
    if (!pairs.size) return [];
    const largest = Math.max(...[...pairs.values()].map(({ effect }) => Math.abs(effect)));
    if (!pairs.has(this.pair)) this.pair = [...pairs.values()].reduce((a, b) => (b.p < a.p ? b : a)).term;
    const means = h("div", { class: "means", "aria-live": "polite" });
    const buttons = [];
    const choose = (term) => {
      this.pair = term;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === term));
      means.replaceChildren(...this.means(blocks, error.means, pairs.get(term), unit, Math.min(width, 560)));
    };
    const cell = (row, column) => {
      const found = pairs.get(`${row}:${column}`) ?? pairs.get(`${column}:${row}`);
      if (!found || names.indexOf(row) <= names.indexOf(column)) return h("td");
      const share = largest ? Math.round((45 * Math.abs(found.effect)) / largest) : 0;
      const button = h("button", { type: "button", value: found.term, class: found.pHolm < 0.05 ? "strong" : null,
        "aria-label": `${row} by ${column}: ${signed(found.effect, 3)}, p ${probability(found.pHolm)} after Holm`,
        onclick: () => choose(found.term) }, signed(found.effect, 3));
      button.style.background = `color-mix(in srgb, var(${found.effect < 0 ? "--cool" : "--accent"}) ${share}%, var(--sheet))`;
      buttons.push(button);
      return h("td", {}, button);
    };
    const head = (text, scope) => h("th", { scope }, text);
    const heat = h("table", { class: "heat" },
      h("caption", {}, "Half of how much the effect of one factor changes with the other"),
      h("thead", {}, h("tr", {}, h("td"), names.slice(0, -1).map((name) => head(name, "col")))),
      h("tbody", {}, names.slice(1).map((row) =>
        h("tr", {}, head(row, "row"), names.slice(0, -1).map((column) => cell(row, column))))));
    choose(this.pair);
    return [h("section", {}, title,
      h("div", { class: "pair" },
        h("div", {}, h("div", { class: "scroll", role: "group", "aria-label": "Interactions", tabindex: "0" }, heat),
          h("p", { class: "soft" }, "Half of how much the effect of one factor changes with the other. Bold: below 0.05 after Holm’s correction. Choose one to see its means."),
          h("details", {}, h("summary", {}, "The numbers"),
            table("Interactions in numbers", ESTIMATE_HEAD, [...pairs.values()].map(estimateRow)))),
        means))];
  }

  /** The means of the cells of two factors. @param {Estimate} found */
  means(blocks, ofCells, found, unit, width) {
    const names = Object.keys(blocks.factors);
    const [first, second] = found.term.split(":");
    const places = [first, second].map((name) => names.indexOf(name));
    const [xs, zs] = [blocks.factors[first], blocks.factors[second]];
    const points = xs.flatMap((x) => zs.map((z) => {
      const inside = blocks.cells.flatMap((cell, i) =>
        cell[places[0]] === x && cell[places[1]] === z ? [ofCells[i]] : []);
      return { x, z, mean: mean(inside) };
    }));
    const rows = zs.map((z) => [z, ...xs.map((x) => digits(points.find((d) => d.x === x && d.z === z).mean, 5))]);
    return [
      h("h3", {}, `${first} by ${second}`),
      meansDrawing(points, [first, second], unit, width),
      table(`Mean of ${blocks.metric}`, [`${second} ↓ ${first} →`, ...xs], rows),
    ];
  }

  /** The effect of one factor on the lowest loss so far, over the steps. */
  overBudgets(blocks, width) {
    const steps = budgets(this.rows);
    const factors = Object.keys(blocks.factors).filter((name) => blocks.factors[name].length === 2);
    if (steps.length < 2 || !factors.length) return [];
    if (!factors.includes(this.factor)) this.factor = factors[0];
    const place = h("div");
    const draw = () => {
      const curve = steps.map((step) => ({ step, found: effects(this.rows, `val@${step}`, this.levels).estimates.find(({ term }) => term === this.factor) }));
      place.replaceChildren(budgetsFigure(this.factor, curve, width));
    };
    const select = h("select", { onchange: () => { this.factor = select.value; draw(); } },
      factors.map((name) => h("option", { value: name, selected: name === this.factor }, name)));
    draw();
    return [h("section", {}, factors.length > 1 ? h("label", { class: "factor" }, h("span", {}, "Factor over budgets"), select) : null, place)];
  }
}

customElements.define("paperkiln-atlas", PaperkilnAtlas);
