/** <paperkiln-softmax>: what temperature, top-k and top-p make of one row of logits. */

import { Demo, h } from "./demo.js";

export const PROMPT = "The kettle is on the";
/** @type {[string, number][]} */
export const LOGITS = [
  ["stove", 6.1], ["table", 5.0], ["fire", 4.6], ["counter", 4.1], ["shelf", 3.4], ["hob", 3.3],
  ["floor", 2.4], ["roof", 1.3], ["moon", 0.4], ["menu", -0.1], ["kettle", -0.9], ["of", -2.2],
];

/**
 * Probabilities after temperature, top-k and top-p, in that order, as paperkiln's sampling has
 * them; 0 for what is excluded. The logits come largest first.
 * @param {number[]} logits @param {{temperature: number, topK: number, topP: number}} settings
 */
export function distribution(logits, { temperature, topK, topP }) {
  if (temperature === 0) return logits.map((_, i) => (i === 0 ? 1 : 0));
  const kept = topK ? logits.slice(0, topK) : logits;
  const weights = kept.map((x) => Math.exp((x - kept[0]) / temperature));
  const mass = weights.reduce((sum, w) => sum + w, 0);
  let n = 0;
  for (let sum = 0; n < weights.length && (topP >= 1 || sum < topP * mass); n++) sum += weights[n];
  const total = weights.slice(0, n).reduce((sum, w) => sum + w, 0);
  return logits.map((_, i) => (i < n ? weights[i] / total : 0));
}

export class PaperkilnSoftmax extends Demo {
  static style = `
    .prompt { margin: 0 0 1rem; font: 1.1rem/1.4 "Iowan Old Style", Palatino, Georgia, "Liberation Serif", serif; }
    .prompt i { color: var(--accent); font-style: normal; }
    .bars { width: 100%; margin: 1.1rem 0 0; border-collapse: collapse; font-size: .88rem; }
    .bars caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .bars :is(th, td) { padding: .1rem .5rem .1rem 0; font-weight: 400; text-align: left; border: 0; }
    .bars thead th { font-size: .78rem; color: var(--faint); padding-bottom: .3rem; }
    .bars .n { text-align: right; font-variant-numeric: tabular-nums; width: 4.2rem; }
    .bars tbody th { width: 5rem; }
    .bars .track { padding-right: 0; }
    .bars .bar { position: relative; height: 1.05rem; border-radius: 4px; background: var(--sunk); }
    .bars .bar > * { position: absolute; inset: 0 auto 0 0; border-radius: 4px; background: var(--accent); }
    .bars .bar > .drawn { inset: auto auto 0 0; height: 4px; background: var(--cool); border-radius: 2px; }
    .out { color: var(--faint); }
    .row { margin-top: 1rem; }
    @container (max-width: 30rem) { .bars .logit { display: none; } .bars .n { width: 3.4rem; } }
  `;

  build() {
    Object.assign(this, { temperature: 1, topK: 0, topP: 1, counts: LOGITS.map(() => 0), last: -1 });
    const fresh = (control) => {
      control.addEventListener("input", () => { this.forget(); this.draw(); });
      return control;
    };
    this.blank = h("i", {}, "…");
    this.rows = LOGITS.map(([word, logit]) => {
      const row = { fill: h("div"), drawn: h("div", { class: "drawn" }), percent: h("td", { class: "n" }), count: h("td", { class: "n" }) };
      row.line = h("tr", {}, h("th", { scope: "row" }, word), h("td", { class: "n logit" }, logit.toFixed(1).replace("-", "−")),
        h("td", { class: "track" }, h("div", { class: "bar" }, row.fill, row.drawn)), row.percent, row.count);
      return row;
    });
    const head = (text, name, colspan) => h("th", { scope: "col", class: name, colspan }, text);
    this.says = h("p", { class: "says", role: "status" });
    this.frame.append(
      h("p", { class: "prompt" }, `${PROMPT} `, this.blank),
      h("div", { class: "controls" },
        fresh(this.slider("temperature", "Temperature", { min: 0, max: 3, step: 0.05,
          show: (t) => (t === 0 ? "0, greedy" : t.toFixed(2)) })),
        fresh(this.slider("topK", "Top-k", { min: 0, max: LOGITS.length, show: (k) => (k ? String(k) : "0, all") })),
        fresh(this.slider("topP", "Top-p", { min: 0.05, max: 1, step: 0.05,
          show: (p) => (p >= 1 ? "1, all" : p.toFixed(2)) })),
      ),
      h("table", { class: "bars" }, h("caption", {}, "The next token"),
        h("thead", {}, h("tr", {}, head("token"), head("logit", "n logit"), head("probability", "track", 2), head("drawn", "n"))),
        h("tbody", {}, this.rows.map((row) => row.line))),
      h("div", { class: "row" },
        h("button", { type: "button", class: "first", onclick: () => this.sample(1) }, "Draw one"),
        h("button", { type: "button", onclick: () => this.sample(100) }, "Draw 100"),
        h("button", { type: "button", onclick: () => { this.forget(); this.draw(); } }, "Forget")),
      this.says,
    );
  }

  forget() {
    this.counts = LOGITS.map(() => 0);
    this.last = -1;
  }

  get probabilities() {
    return distribution(LOGITS.map(([, logit]) => logit), this);
  }

  /** @param {number} n */
  sample(n) {
    const p = this.probabilities;
    for (let drawn = 0; drawn < n; drawn++) {
      let at = Math.random();
      this.last = p.findIndex((q) => (at -= q) < 0);
      if (this.last < 0) this.last = p.findLastIndex((q) => q > 0); // the sum fell short by a rounding
      this.counts[this.last] += 1;
    }
    this.draw();
  }

  draw() {
    const p = this.probabilities;
    const n = this.counts.reduce((sum, count) => sum + count, 0);
    this.rows.forEach((row, i) => {
      row.line.className = p[i] ? "" : "out";
      row.fill.style.width = `${100 * p[i]}%`;
      row.drawn.style.width = n ? `${(100 * this.counts[i]) / n}%` : "0";
      row.percent.textContent = p[i] ? `${(100 * p[i]).toFixed(1)} %` : "—";
      row.count.textContent = n ? String(this.counts[i]) : "";
    });
    this.blank.textContent = this.last < 0 ? "…" : LOGITS[this.last][0];
    const left = p.filter(Boolean).length;
    const bits = -p.reduce((sum, q) => sum + (q ? q * Math.log2(q) : 0), 0);
    this.says.replaceChildren(
      h("b", {}, `${left} of ${LOGITS.length}`), " tokens are left; the choice among them holds ",
      h("b", {}, `${Math.abs(bits).toFixed(2)} bits`),
      `, as much as an even choice among ${(2 ** bits).toFixed(1)}.`,
    );
  }
}

customElements.define("paperkiln-softmax", PaperkilnSoftmax);
