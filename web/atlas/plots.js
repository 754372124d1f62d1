/** The explorer's figures, drawn by Observable Plot, each with its numbers as a table. */

import "./d3.min.js";
import "./plot.umd.min.js";
import { h } from "../demos/demo.js";
import { mean } from "./statistics.js";

/** @typedef {import("./effects.js").Estimate} Estimate */

const { Plot } = globalThis;
const FONT = { fontSize: "14px", fontFamily: "inherit", background: "none", overflow: "visible" };

/**
 * A drawing with what it shows in words and, folded, in numbers.
 * @param {{title: string, caption: string, label: string, drawing: SVGElement, head: string[],
 *   rows: string[][]}} parts
 */
export function figure({ title, caption, label, drawing, head, rows }) {
  return h("figure", {}, h("h2", {}, title), named(drawing, label), h("figcaption", {}, caption),
    h("details", {}, h("summary", {}, "The numbers"), table(title, head, rows)));
}

/** One picture with one name; Plot names its parts as well, which only a role would allow. */
function named(drawing, label) {
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", label);
  for (const part of drawing.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  return drawing;
}

/** @param {string} caption @param {string[]} head @param {string[][]} rows */
export function table(caption, head, rows) {
  const line = ([first, ...rest]) =>
    h("tr", {}, h("th", { scope: "row" }, first), rest.map((text) => h("td", {}, text)));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows.map(line))));
}

/** Heads of a table of estimates. */
export const ESTIMATE_HEAD = ["term", "low → high", "effect", "95 % interval", "SE", "t", "df", "p", "p, Holm", "relative"];

/** @param {Estimate} e */
export const estimateRow = (e) => [
  [e.term, ...e.aliases].join(" = "), e.low && `${e.low} → ${e.high}`, signed(e.effect), between(e.ci),
  digits(e.se), digits(e.t, 3), digits(e.df), probability(e.p), probability(e.pHolm),
  e.relative === null ? "" : `${signed(100 * e.relative, 3)} %`,
];

/** Effects with their intervals. @param {Estimate[]} estimates @param {string} unit @param {number} width */
export function effectsFigure(estimates, unit, width) {
  estimates = [...estimates].sort((a, b) => Math.abs(b.t) - Math.abs(a.t));
  const longest = Math.max(...estimates.map(({ term }) => term.length));
  const strong = ({ pHolm }) => (pHolm < 0.05 ? "var(--accent)" : "var(--soft)");
  const drawing = Plot.plot({
    width, style: FONT, height: 34 * estimates.length + 60,
    marginLeft: Math.min(7.5 * longest + 16, width / 2), marginTop: 8, marginBottom: 44,
    x: { label: `high − low${unit && `, ${unit}`}`, nice: true, ticks: Math.max(3, width / 130) },
    y: { domain: estimates.map(({ term }) => term), label: null, tickSize: 0 },
    marks: [
      Plot.gridX({ stroke: "var(--line)", strokeOpacity: 1 }),
      Plot.ruleX([0], { stroke: "var(--edge)" }),
      Plot.ruleY(estimates, { y: "term", x1: (e) => e.ci[0], x2: (e) => e.ci[1], stroke: strong, strokeWidth: 2.5 }),
      Plot.dot(estimates, { y: "term", x: "effect", fill: strong, r: 5, title: (e) => `${e.term} ${signed(e.effect)}` }),
    ],
  });
  return figure({
    title: "Effects", drawing,
    label: `Effects with 95 % intervals: ${estimates.map((e) => `${e.term} ${signed(e.effect)}`).join(", ")}`,
    caption: "The high level minus the low one, over all else, with its 95 % interval. Coloured: below 0.05 after Holm’s correction over all of them.",
    head: ESTIMATE_HEAD, rows: estimates.map(estimateRow),
  });
}

/** A dot for each cell and seed. @param {import("./blocks.js").Blocks} blocks */
export function seedsFigure(blocks, unit, width) {
  const cells = blocks.cells
    .map((labels, i) => ({ labels: labels.join(" · "), values: [...blocks.values[i]].sort(([a], [b]) => a - b), number: i + 1 }))
    .map((cell) => ({ ...cell, mean: mean(cell.values.map(([, value]) => value)) }))
    .sort((a, b) => a.mean - b.mean);
  const longest = Math.max(...cells.map(({ labels }) => labels.length));
  const short = 8 * longest > width / 2;
  const nameOf = (cell) => (short ? `cell ${cell.number}` : cell.labels);
  const dots = cells.flatMap((cell) => cell.values.map(([seed, value]) => ({ cell: nameOf(cell), seed, value })));
  const drawing = Plot.plot({
    width, style: FONT, height: 24 * cells.length + 60,
    marginLeft: short ? 64 : 8 * longest + 16, marginTop: 8, marginBottom: 44,
    x: { label: `${blocks.metric}${unit && `, ${unit}`}`, nice: true, ticks: Math.max(3, width / 130) },
    y: { domain: cells.map(nameOf), label: null, tickSize: 0 },
    marks: [
      Plot.gridX({ stroke: "var(--line)", strokeOpacity: 1 }),
      Plot.line(dots, { x: "value", y: "cell", z: "seed", stroke: "var(--edge)", strokeOpacity: 0.5, strokeWidth: 1 }),
      Plot.dot(dots, { x: "value", y: "cell", stroke: "var(--soft)", fill: "var(--sheet)", r: 4, title: (d) => `seed ${d.seed}: ${digits(d.value)}` }),
      Plot.tickX(cells, { x: "mean", y: nameOf, stroke: "var(--accent)", strokeWidth: 3 }),
    ],
  });
  const seeds = [...new Set(dots.map(({ seed }) => seed))].sort((a, b) => a - b);
  return figure({
    title: "Seeds", drawing,
    label: `${blocks.metric} of ${cells.length} cells with ${seeds.length} seeds each; the lowest mean is ${digits(cells[0].mean)}, the highest ${digits(cells.at(-1).mean)}`,
    caption: `Each ring is a run, each thin line a seed, each bar the mean of a cell${short ? "; which cell is which is in the numbers" : ""}.`,
    head: ["cell", Object.keys(blocks.factors).join(" · "), "mean", ...seeds.map((seed) => `seed ${seed}`)],
    rows: cells.map((cell) => [
      String(cell.number), cell.labels, digits(cell.mean),
      ...seeds.map((seed) => { const found = cell.values.find(([s]) => s === seed); return found ? digits(found[1]) : "—"; }),
    ]),
  });
}

/** The effect of a factor over budgets. @param {{step: number, found: Estimate}[]} curve */
export function budgetsFigure(factor, curve, width) {
  const seeds = curve.flatMap(({ step, found }) => found.perSeed.map(([seed, value]) => ({ step, seed, value })));
  const drawing = Plot.plot({
    width, style: FONT, height: 320, marginLeft: 64, marginTop: 12, marginBottom: 44,
    x: { label: "steps", ticks: Math.max(3, width / 130), tickFormat: (step) => step.toLocaleString("en") },
    y: { label: null, nice: true, ticks: 6 },
    marks: [
      Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1 }),
      Plot.ruleY([0], { stroke: "var(--edge)" }),
      Plot.areaY(curve, { x: "step", y1: (d) => d.found.ci[0], y2: (d) => d.found.ci[1], fill: "var(--wash)", fillOpacity: 0.8 }),
      Plot.line(seeds, { x: "step", y: "value", z: "seed", stroke: "var(--soft)", strokeOpacity: 0.6, strokeWidth: 1 }),
      Plot.line(curve, { x: "step", y: (d) => d.found.effect, stroke: "var(--accent)", strokeWidth: 2.5 }),
      Plot.dot(curve, { x: "step", y: (d) => d.found.effect, fill: "var(--accent)", r: 4 }),
    ],
  });
  const { low, high } = curve[0].found;
  const [first, last] = [curve[0], curve.at(-1)];
  return figure({
    title: "Over budgets", drawing,
    label: `${factor}: ${high} minus ${low}, ${signed(first.found.effect)} at ${first.step} steps, ${signed(last.found.effect)} at ${last.step}`,
    caption: `${high} − ${low}, in the lowest validation loss so far, nats per token: the mean with its 95 % interval, and each seed. Above the line ${low} is ahead, below it ${high}.`,
    head: ["steps", `${high} − ${low}`, "95 % interval", "p", "seeds above zero"],
    rows: curve.map(({ step, found }) => [
      step.toLocaleString("en"), signed(found.effect), between(found.ci), probability(found.p),
      found.perSeed.length ? `${found.perSeed.filter(([, value]) => value > 0).length} of ${found.perSeed.length}` : "—",
    ]),
  });
}

/** Means of two factors' levels, as lines. @param {{x: string, z: string, mean: number}[]} means */
export function meansDrawing(means, [first, second], unit, width) {
  const last = means.filter((d) => d.x === means.at(-1).x);
  const drawing = Plot.plot({
    width, style: FONT, height: 240, marginLeft: 68, marginRight: 90, marginTop: 12, marginBottom: 44,
    x: { type: "point", label: first, padding: 0.3, labelAnchor: "center", labelArrow: "none" },
    y: { label: null, nice: true, ticks: 5 },
    marks: [
      Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1 }),
      Plot.line(means, { x: "x", y: "mean", z: "z", stroke: (d) => (d.z === means[0].z ? "var(--cool)" : "var(--accent)"), strokeWidth: 2.5 }),
      Plot.dot(means, { x: "x", y: "mean", fill: (d) => (d.z === means[0].z ? "var(--cool)" : "var(--accent)"), r: 5 }),
      Plot.text(last, { x: "x", y: "mean", text: "z", dx: 12, textAnchor: "start", fill: "var(--ink)" }),
    ],
  });
  return named(drawing, `Means over ${first}, a line for each ${second}; the numbers are in the table`);
}

// --- numbers as text ------------------------------------------------------------------------------

/** @param {number} value */
export const digits = (value, n = 4) => Number(value.toPrecision(n)).toString().replace("-", "−");
/** @param {number} value */
export const signed = (value, n = 4) => (value > 0 ? "+" : "") + digits(value, n);
/** @param {[number, number]} interval */
export const between = ([low, high]) => `${signed(low)} to ${signed(high)}`;
/** @param {number} p */
export const probability = (p) => (p < 1e-4 ? "< 0.0001" : digits(p, 2));
