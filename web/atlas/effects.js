/** Main effects and interactions of a design, with the error term that the design gives. */

import { blocks } from "./blocks.js";
import { holm, mean, sum, tQuantile, twoSided, variance } from "./statistics.js";

/**
 * @typedef {import("./blocks.js").Blocks} Blocks
 * @typedef {object} Term Its effect is `weights` times the means of the cells.
 * @property {string} name a factor, `factor[label]`, or two factors as `a:b`
 * @property {string} factor "" for an interaction
 * @property {string} low @property {string} high
 * @property {number[]} column one value a cell
 * @property {boolean[]} isLow the cells that the effect is relative to
 * @property {boolean} twoLevel @property {string[]} aliases
 * @property {number[]} weights
 * @typedef {object} Estimate
 * @property {string} term @property {string} low @property {string} high
 * @property {number} effect high − low, in units of the metric
 * @property {number} se @property {number} df @property {number} t @property {number} p
 * @property {number} pHolm over all terms of the study
 * @property {[number, number]} ci 95 %
 * @property {number | null} relative effect by the mean of the low level
 * @property {[number, number][]} perSeed seed and its own effect
 * @property {string[]} aliases
 */

const EXACT = 1e-9; // columns hold small whole numbers: what differs more than this, differs

/**
 * Every effect that the rows can tell apart, as paperkiln.atlas.analyze.effects has them.
 * @param {import("./blocks.js").Row[]} rows @param {string} metric
 * @param {Record<string, string[]>} [levels]
 */
export function effects(rows, metric, levels = {}) {
  const table = blocks(rows, metric, levels);
  const { terms, refusal } = model(table);
  const error = errorTerm(table, terms);
  const found = terms.map((term) => estimate(term, error));
  const adjusted = holm(found.map(({ p }) => p));
  /** @type {Estimate[]} */
  const estimates = found.map((one, i) => ({ ...one, pHolm: adjusted[i] }));
  return { table, error, refusal, estimates };
}

// --- the model ----------------------------------------------------------------------------------

/**
 * What the design can tell apart. A two-level factor is a column of −1 and +1, an interaction the
 * product of two; its effect is half the difference of the differences.
 * @param {Blocks} table @returns {{terms: Term[], refusal: string}}
 */
export function model(table) {
  const mains = Object.entries(table.factors).flatMap(([name, labels], at) =>
    mainColumns(name, labels, table.cells.map((cell) => cell[at])),
  );
  for (const [one, other] of pairs(mains)) {
    if (one.factor !== other.factor && Math.abs(correlation(one, other)) > 1 - EXACT) {
      throw new Error(`${one.name} and ${other.name} change together in every cell; the rows cannot tell them apart`);
    }
  }
  const { found, refusal } = interactions(mains);
  const terms = [...mains, ...(refusal ? [] : found)];
  const weights = leastSquares([table.cells.map(() => 1), ...terms.map(({ column }) => column)]).slice(1);
  terms.forEach((term, i) => {
    term.weights = weights[i].map((weight) => (term.twoLevel ? 2 : 1) * weight);
  });
  return { terms, refusal };
}

function mainColumns(name, labels, at) {
  const [low, ...others] = labels;
  const isLow = at.map((label) => label === low);
  const twoLevel = others.length === 1;
  return others.map((high) => ({
    name: twoLevel ? name : `${name}[${high}]`,
    factor: name, low, high, isLow, twoLevel, aliases: [], weights: [],
    column: at.map((label) => (label === high ? 1 : twoLevel ? -1 : 0)),
  }));
}

/** The interactions that are columns of their own; or why there are none. */
function interactions(mains) {
  const found = [];
  for (const [one, other] of pairs(mains.filter(({ twoLevel }) => twoLevel))) {
    const name = `${one.name}:${other.name}`;
    const column = one.column.map((value, i) => value * other.column[i]);
    const fresh = { name, factor: "", low: "", high: "", column, twoLevel: true, aliases: [], weights: [],
      isLow: column.map(() => true) };
    let own = true;
    for (const term of [...mains, ...found]) {
      const r = correlation(term, fresh);
      if (Math.abs(r) > 1 - EXACT) {
        term.aliases.push((r > 0 ? "" : "-") + name);
        own = false;
      } else if (Math.abs(r) > EXACT) {
        const refusal = `In this design ${name} is partially aliased with ${term.name} (r = ${r.toFixed(2).replace("-", "−")}), so no interactions are computed.`;
        return { found: [], refusal };
      }
    }
    if (own) found.push(fresh);
  }
  return { found, refusal: "" };
}

function correlation(one, other) {
  const centred = ({ column }) => column.map((value) => value - mean(column));
  const [a, b] = [centred(one), centred(other)];
  const scale = Math.sqrt(dot(a, a) * dot(b, b));
  return scale > 0 ? dot(a, b) / scale : 0;
}

/** (XᵀX)⁻¹Xᵀ of the columns of X, by Gauss and Jordan. @param {number[][]} columns */
function leastSquares(columns) {
  const rows = columns.map((one) => [...columns.map((other) => dot(one, other)), ...one]);
  for (let at = 0; at < rows.length; at++) {
    const pivot = rows.findIndex((row, i) => i >= at && Math.abs(row[at]) === Math.max(...rows.slice(at).map((r) => Math.abs(r[at]))));
    [rows[at], rows[pivot]] = [rows[pivot], rows[at]];
    if (Math.abs(rows[at][at]) < EXACT) {
      throw new Error(`${columns[0].length} cells cannot tell ${columns.length - 1} terms apart; cells are missing`);
    }
    rows[at] = rows[at].map((value) => value / rows[at][at]);
    for (let i = 0; i < rows.length; i++) {
      if (i !== at) rows[i] = rows[i].map((value, k) => value - rows[i][at] * rows[at][k]);
    }
  }
  return rows.map((row) => row.slice(columns.length));
}

// --- the error term -----------------------------------------------------------------------------

/**
 * The cells' means and how sure they are. Seeds that every cell ran with are blocks, the others are
 * left out: the error is the mean square of cell × seed. Else one variance a cell (Welch,
 * Satterthwaite). Else, with one run a cell, what the model leaves over.
 * @param {Blocks} table @param {Term[]} terms
 */
export function errorTerm(table, terms) {
  const common = [...table.values[0].keys()].filter((seed) => table.values.every((cell) => cell.has(seed)));
  const counts = table.values.map(({ size }) => size);
  if (common.length >= 2) return blockError(table, common.sort((a, b) => a - b));
  if (Math.min(...counts) >= 2) return welchError(table);
  if (Math.max(...counts) === 1) return residualError(table, terms);
  throw new Error("An error term needs two seeds that every cell ran with; some ran once only");
}

function blockError(table, seeds) {
  const y = table.values.map((cell) => seeds.map((seed) => cell.get(seed)));
  const means = y.map(mean);
  const ofSeeds = seeds.map((_, s) => mean(y.map((cell) => cell[s])));
  const grand = mean(means);
  const df = (y.length - 1) * (seeds.length - 1);
  const squares = y.map((cell, c) => sum(cell.map((value, s) => (value - means[c] - ofSeeds[s] + grand) ** 2)));
  const leftOut = allSeeds(table).filter((seed) => !seeds.includes(seed));
  const words = y.length === 2
    ? `paired by seed: the t test of ${seeds.length} differences`
    : `cell × seed, a block design of ${y.length} cells and ${seeds.length} seeds`;
  return { words, means, variances: y.map(() => sum(squares) / df / seeds.length), df, seeds, paired: y, leftOut };
}

function welchError(table) {
  const y = table.values.map((cell) => [...cell.values()]);
  return {
    words: "Welch: the seeds differ between cells, so nothing is paired",
    means: y.map(mean),
    variances: y.map((cell) => variance(cell) / cell.length),
    df: y.map((cell) => cell.length - 1),
    seeds: allSeeds(table),
    paired: null, leftOut: [],
  };
}

function residualError(table, terms) {
  const y = table.values.map((cell) => [...cell.values()][0]);
  const df = y.length - 1 - terms.length;
  if (df < 1) throw new Error(`${y.length} runs and as many terms leave nothing to measure the error with`);
  const columns = [y.map(() => 1), ...terms.map(({ column }) => column)];
  const fitted = leastSquares(columns).map((weights) => dot(weights, y));
  const residuals = y.map((value, i) => value - sum(columns.map((column, k) => column[i] * fitted[k])));
  const square = dot(residuals, residuals) / df;
  return {
    words: "the residual of the model: terms outside it are taken to be zero",
    means: y, variances: y.map(() => square), df, seeds: allSeeds(table), paired: null, leftOut: [],
  };
}

/** @param {Blocks} table */
const allSeeds = (table) => [...new Set(table.values.flatMap((cell) => [...cell.keys()]))];

// --- the estimate -------------------------------------------------------------------------------

/** A contrast of the cells' means with its t test. @param {Term} term */
export function estimate(term, { means, variances, df: given, seeds, paired }) {
  const { weights } = term;
  const parts = weights.map((weight, i) => weight ** 2 * variances[i]);
  const scale = Math.max(...means.map(Math.abs));
  let effect = dot(weights, means);
  let se = Math.sqrt(sum(parts));
  const df = Array.isArray(given)
    ? sum(parts) ** 2 / sum(parts.map((part, i) => part ** 2 / given[i])) // Satterthwaite
    : given;
  if (se <= 1e-12 * scale) {
    if (Math.abs(effect) > 1e-12 * scale) throw new Error(`The difference of ${effect} is the same for every seed; a test adds nothing`);
    effect = se = 0; // the same, run by run
  }
  const t = se ? effect / se : 0;
  const half = se ? tQuantile(0.05, df) * se : 0;
  const low = mean(means.filter((_, i) => term.isLow[i]));
  return {
    term: term.name, low: term.low, high: term.high, aliases: term.aliases,
    effect, se, df, t, p: twoSided(t, df),
    ci: [effect - half, effect + half],
    relative: low ? effect / low : null,
    perSeed: paired ? seeds.map((seed, s) => [seed, dot(weights, paired.map((cell) => cell[s]))]) : [],
  };
}

/** @param {number[]} a @param {number[]} b */
const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0);

/** Every two of a list. */
const pairs = (list) => list.flatMap((one, i) => list.slice(i + 1).map((other) => [one, other]));
