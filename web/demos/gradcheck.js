/** <paperkiln-gradcheck>: a derivative written by hand against central differences. */

import { Demo, h, s } from "./demo.js";

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** Each function with its derivative, and one with a plausible mistake. */
export const FUNCTIONS = {
  cube: {
    label: "x³", f: (x) => x * x * x, rule: "3x²", df: (x) => 3 * x * x,
    wrongRule: "2x²", wrong: (x) => 2 * x * x,
  },
  silu: {
    label: "SiLU, x·σ(x)", f: (x) => x * sigmoid(x), rule: "σ(x) (1 + x (1 − σ(x)))",
    df: (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    wrongRule: "σ(x), the product rule forgotten", wrong: sigmoid,
  },
  tanh: {
    label: "tanh x", f: Math.tanh, rule: "1 − tanh²x", df: (x) => 1 - Math.tanh(x) ** 2,
    wrongRule: "1 − tanh x", wrong: (x) => 1 - Math.tanh(x),
  },
  log: {
    label: "ln(1 + eˣ)", f: (x) => Math.log1p(Math.exp(x)), rule: "σ(x)", df: sigmoid,
    wrongRule: "σ(x) (1 − σ(x))", wrong: (x) => sigmoid(x) * (1 - sigmoid(x)),
  },
};

/**
 * (f(x + h) - f(x - h)) / 2h, every value rounded to the number format.
 * @param {(x: number) => number} f @param {number} x @param {number} step
 * @param {(x: number) => number} round Math.fround for float32, the identity for float64
 */
export function centralDifference(f, x, step, round = (value) => value) {
  const [at, width] = [round(x), round(step)];
  const [up, down] = [round(at + width), round(at - width)];
  return round(round(round(f(up)) - round(f(down))) / round(2 * width));
}

// The plot: log10 of the error over log10 of h.
const [W, H, LEFT, RIGHT, TOP, BOTTOM] = [640, 300, 64, 14, 14, 44];
const [H_MIN, H_MAX, E_MIN, E_MAX] = [-13, 0, -14, 1];
const across = (log) => LEFT + ((log - H_MIN) / (H_MAX - H_MIN)) * (W - LEFT - RIGHT);
const down = (log) => TOP + ((E_MAX - log) / (E_MAX - E_MIN)) * (H - TOP - BOTTOM);
const power = (log) => `10${[...String(log)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;

export class PaperkilnGradcheck extends Demo {
  static style = `
    .plot { margin-top: 1rem; overflow: hidden; }
    .curve { fill: none; stroke: var(--cool); stroke-width: 2; stroke-linejoin: round; }
    .at { stroke: var(--accent); } .dot { fill: var(--accent); stroke: var(--sheet); stroke-width: 2; }
    .region { font-style: italic; }
    @container (max-width: 30rem) { 
      .plot text { font-size: 19px; } .region { display: none; } }
  `;

  build() {
    Object.assign(this, { name: "cube", x: 1.3, log: -2, wrong: false, single: false });
    this.figure = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    this.says = h("p", { class: "says", role: "status" });
    const named = Object.entries(FUNCTIONS).map(([name, f]) => [name, f.label]);
    this.frame.append(
      h("div", { class: "controls" },
        this.choice("name", "Function", named),
        this.slider("x", "At x", { min: -3, max: 3, step: 0.1, show: (x) => x.toFixed(1) }),
        this.slider("log", "Step h", { min: H_MIN, max: H_MAX, step: 0.25,
          show: (log) => `${(10 ** (log - Math.floor(log))).toFixed(1)} · ${power(Math.floor(log))}` }),
        h("div", {}, this.tick("wrong", "Use a wrong rule"), this.tick("single", "Compute in float32")),
      ),
      h("div", { class: "plot" }, this.figure),
      this.says,
    );
  }

  /** |rule - difference| over |derivative|, at least 1e-14 so that it can be drawn. */
  error(log) {
    const { f, df, wrong } = FUNCTIONS[this.name];
    const rule = (this.wrong ? wrong : df)(this.x);
    const difference = centralDifference(f, this.x, 10 ** log, this.single ? Math.fround : undefined);
    return Math.abs(rule - difference) / Math.max(Math.abs(df(this.x)), 1e-4);
  }

  draw() {
    const { f, df, rule, wrong, wrongRule } = FUNCTIONS[this.name];
    const shown = (log) => Math.min(Math.max(Math.log10(this.error(log) || 1e-99), E_MIN), E_MAX);
    const points = [];
    for (let log = H_MIN; log <= H_MAX; log += 0.125) points.push(`${across(log)},${down(shown(log))}`);
    const [x, y] = [across(this.log), down(shown(this.log))];
    const lines = [-12, -9, -6, -3, 0].map((log) => [
      s("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: down(log), y2: down(log) }),
      s("text", { x: LEFT - 8, y: down(log) + 4, "text-anchor": "end" }, power(log)),
    ]);
    const ticks = [-12, -9, -6, -3, 0].map((log) =>
      s("text", { x: across(log), y: H - BOTTOM + 20, "text-anchor": log ? "middle" : "end" }, power(log)));
    this.figure.replaceChildren(
      ...lines.flat(), ...ticks,
      s("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM }),
      s("text", { x: (LEFT + W) / 2, y: H - 4, "text-anchor": "middle" }, "step h"),
      s("text", { x: LEFT + 6, y: TOP + 6 }, "relative error"),
      this.wrong ? "" : s("text", { class: "region", x: across(-10.6), y: down(-1.2) }, "rounding ∝ 1/h"),
      this.wrong ? "" : s("text", { class: "region", x: across(-3.4), y: down(-1.2) }, "truncation ∝ h²"),
      s("polyline", { class: "curve", points: points.join(" ") }),
      s("line", { class: "at", x1: x, x2: x, y1: y, y2: H - BOTTOM }),
      s("circle", { class: "dot", cx: x, cy: y, r: 6 }),
    );
    const value = (this.wrong ? wrong : df)(this.x);
    const difference = centralDifference(f, this.x, 10 ** this.log, this.single ? Math.fround : undefined);
    const error = this.error(this.log);
    const says = `relative error ${error.toExponential(1)}`;
    this.figure.setAttribute("aria-label", `Error over step size; at this step, ${says}`);
    this.says.replaceChildren(
      `By the rule ${this.wrong ? wrongRule : rule}: `, h("b", {}, value.toFixed(10)), ". By differences: ",
      h("b", {}, difference.toFixed(10)), `. Their ${says}.`,
    );
  }
}

customElements.define("paperkiln-gradcheck", PaperkilnGradcheck);
