/** <paperkiln-rope>: pairs of a query and a key turned by their positions, and the score they make. */

import { Demo, h, s } from "./demo.js";

const PAIRS = 4; // of one head, E = 8
const LAST = 63;
/** Angles (radians) and lengths of the pairs before they are turned. @type {[number, number][]} */
const QUERY = [[0.4, 1], [1.1, 0.9], [0.2, 1], [0.7, 0.8]];
/** @type {[number, number][]} */
const KEY = [[0.4, 0.9], [0.8, 1], [0.5, 0.9], [0.6, 1]];

/** Radians a pair turns per position: base^(-2m/E). @param {number} m @param {number} base */
export const frequency = (m, base) => base ** (-m / PAIRS);

/** q · k / sqrt(E) with each pair turned by its position. @param {number} t @param {number} j @param {number} base */
export function score(t, j, base) {
  let sum = 0;
  for (let m = 0; m < PAIRS; m++) {
    const angle = QUERY[m][0] - KEY[m][0] + (t - j) * frequency(m, base);
    sum += QUERY[m][1] * KEY[m][1] * Math.cos(angle);
  }
  return sum / Math.sqrt(2 * PAIRS);
}

const [W, H, LEFT, RIGHT, TOP, BOTTOM] = [640, 190, 40, 14, 16, 40];
const LIMIT = 1.4;
const across = (distance) => LEFT + (distance / LAST) * (W - LEFT - RIGHT);
const down = (value) => TOP + ((LIMIT - value) / (2 * LIMIT)) * (H - TOP - BOTTOM);

export class PaperkilnRope extends Demo {
  static style = `
    .dials { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .6rem; margin-top: 1.1rem; }
    .dials figure { margin: 0; } .dials figcaption { text-align: center; font-size: .8rem; color: var(--soft); font-variant-numeric: tabular-nums; }
    .face { fill: var(--paper); stroke: var(--line); }
    .q { stroke: var(--accent); fill: none; stroke-width: 3; stroke-linecap: round; }
    .k { stroke: var(--cool); fill: none; stroke-width: 3; stroke-linecap: round; }
    .between { fill: none; stroke: var(--edge); stroke-dasharray: 2 3; }
    .legend { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; margin: .8rem 0 0; font-size: .86rem; color: var(--soft); }
    .legend i { display: inline-block; width: 1.1rem; height: 3px; margin-right: .45rem; vertical-align: middle; border-radius: 2px; background: var(--accent); }
    .legend .of-k i { background: var(--cool); }
    .curve { fill: none; stroke: var(--soft); stroke-width: 2; stroke-linejoin: round; }
    .dot { fill: var(--accent); stroke: var(--sheet); stroke-width: 2; }
    .plot { margin-top: .8rem; } .row { margin-top: .9rem; }
    @container (max-width: 30rem) { .dials { gap: .3rem; } .dials figcaption { font-size: .74rem; line-height: 1.3; } .plot text { font-size: 19px; } }
  `;

  build() {
    Object.assign(this, { t: 12, j: 7, base: 10000 });
    this.controls = h("div", { class: "controls" });
    this.dials = Array.from({ length: PAIRS }, () => ({
      svg: s("svg", { viewBox: "-60 -60 120 120", "aria-hidden": "true" }), words: h("figcaption"),
    }));
    this.figure = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    this.says = h("p", { class: "says", role: "status" });
    const move = (by) => () => this.move(by);
    this.frame.append(
      this.controls,
      h("div", { class: "row" },
        h("button", { type: "button", class: "first", onclick: move(1) }, "Move both on"),
        h("button", { type: "button", onclick: move(-1) }, "Move both back")),
      h("div", { class: "dials" }, this.dials.map(({ svg, words }) => h("figure", {}, svg, words))),
      h("p", { class: "legend" }, h("span", {}, h("i"), "query, at t"), h("span", { class: "of-k" }, h("i"), "key, at j"),
        h("span", {}, "dotted: the angle between them")),
      h("div", { class: "plot" }, this.figure),
      this.says,
    );
    this.buildControls();
  }

  buildControls() {
    this.controls.replaceChildren(
      this.slider("t", "Query’s position t", { min: 0, max: LAST }),
      this.slider("j", "Key’s position j", { min: 0, max: LAST }),
      this.choice("base", "Base θ", [[100, "100"], [10000, "10,000, the usual"], [500000, "500,000, for long contexts"]]),
    );
  }

  /** Move both tokens, as far as both can. @param {number} by */
  move(by) {
    const [low, high] = [Math.min(this.t, this.j), Math.max(this.t, this.j)];
    if (low + by < 0 || high + by > LAST) return;
    this.t += by;
    this.j += by;
    this.buildControls();
    this.draw();
  }

  draw() {
    const degrees = (radians) => (radians * 180) / Math.PI;
    this.dials.forEach(({ svg, words }, m) => {
      const turn = frequency(m, this.base);
      const q = QUERY[m][0] + this.t * turn;
      const k = KEY[m][0] + this.j * turn;
      const point = (angle, length) => [50 * length * Math.cos(angle), -50 * length * Math.sin(angle)];
      const hand = (name, angle, length) => {
        const [x2, y2] = point(angle, length);
        return s("line", { class: name, x1: 0, y1: 0, x2, y2 });
      };
      const [x1, y1] = point(k, 0.36);
      const [x2, y2] = point(q, 0.36);
      const between = Math.atan2(Math.sin(q - k), Math.cos(q - k)); // in (-π, π]
      svg.replaceChildren(
        s("circle", { class: "face", r: 56 }),
        s("path", { class: "between", d: `M${x1} ${y1}A18 18 0 0 ${between > 0 ? 0 : 1} ${x2} ${y2}` }),
        hand("k", k, KEY[m][1]), hand("q", q, QUERY[m][1]),
      );
      words.replaceChildren(`pair ${m}: `, h("br"), `${degrees(turn).toPrecision(2)}° a step`);
    });
    const distance = this.t - this.j;
    const value = score(this.t, this.j, this.base);
    const points = [];
    for (let d = 0; d <= LAST; d += 0.25) points.push(`${across(d)},${down(score(d, 0, this.base))}`);
    const ticks = [0, 16, 32, 48, 63].map((d) => s("text", { x: across(d), y: H - BOTTOM + 18, "text-anchor": "middle" }, String(d)));
    this.figure.replaceChildren(
      ...[-1, 0, 1].map((v) => s("line", { class: v ? "grid" : "axis", x1: LEFT, x2: W - RIGHT, y1: down(v), y2: down(v) })),
      ...[-1, 0, 1].map((v) => s("text", { x: LEFT - 8, y: down(v) + 4, "text-anchor": "end" }, String(v).replace("-", "−"))),
      ...ticks,
      s("text", { x: (LEFT + W) / 2, y: H - 4, "text-anchor": "middle" }, "distance t − j"),
      s("polyline", { class: "curve", points: points.join(" ") }),
      distance < 0 ? "" : s("circle", { class: "dot", cx: across(distance), cy: down(value), r: 6 }),
    );
    const shown = value.toFixed(3).replace("-", "−");
    this.figure.setAttribute("aria-label", `Score over distance; at distance ${distance} it is ${shown}`);
    this.says.replaceChildren(
      "Distance ", h("b", {}, String(distance).replace("-", "−")), ", score ", h("b", {}, shown), ". ",
      distance < 0 ? "This key comes later: a decoder’s query may not see it."
        : "Move both by the same number of steps and it stays.",
    );
  }
}

customElements.define("paperkiln-rope", PaperkilnRope);
