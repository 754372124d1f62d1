/** The rows of a study, and one metric of them as a table of cells by seeds. */

/**
 * @typedef {Record<string, any>} Row
 * @typedef {object} Blocks What the complete runs measured; every run of one seed is one block.
 * @property {string} metric
 * @property {Record<string, string[]>} factors name to levels, the low one first; those that vary
 * @property {string[][]} cells a label of each factor
 * @property {Map<number, number>[]} values of each cell: seed to value
 * @property {string[]} missing runs that are incomplete or lack the metric
 */

const LARGEST = 64e6; // characters of a file
const MOST_ROWS = 100_000;
const PREFIX = "factor.";
const NO_METRIC = new Set(["seed", "complete"]);

/** Read rows.jsonl. Throws an Error that names the line. @param {string} text @returns {Row[]} */
export function readRows(text) {
  if (text.length > LARGEST) throw new Error("The file is larger than 64 MB; rows.jsonl of a study is smaller");
  const rows = [];
  text.split("\n").forEach((line, index) => {
    if (!line.trim()) return;
    let row;
    try {
      row = JSON.parse(line);
    } catch {
      throw new Error(`Line ${index + 1} is not JSON; drop the rows.jsonl of a study`);
    }
    if (typeof row !== "object" || row === null || Array.isArray(row) || !("seed" in row)) {
      throw new Error(`Line ${index + 1} is no row of a study: it has no seed`);
    }
    rows.push(row);
  });
  if (!rows.length) throw new Error("The file has no rows");
  if (rows.length > MOST_ROWS) throw new Error(`The file has ${rows.length} rows; at most ${MOST_ROWS} are analysed`);
  return rows;
}

/** The fields that are numbers in some complete run. @param {Row[]} rows */
export function metricsOf(rows) {
  const found = new Set();
  for (const row of rows) {
    for (const key of Object.keys(row)) {
      if (row.complete === true && !NO_METRIC.has(key) && Number.isFinite(row[key])) found.add(key);
    }
  }
  return [...found];
}

/** The steps at which every complete run was validated. @param {Row[]} rows @returns {number[]} */
export function budgets(rows) {
  const curves = rows.filter((row) => row.complete === true).map((row) => row.val);
  if (!curves.length || !curves.every((val) => Array.isArray(val) && val.length)) return [];
  const sets = curves.map((val) => new Set(val.map(([step]) => step)));
  return [...sets[0]].filter((step) => sets.every((set) => set.has(step))).sort((a, b) => a - b);
}

/** A metric of a run, or null. `val@STEP` is the lowest validation loss up to that step. */
export function measure(row, metric) {
  if (!metric.startsWith("val@")) return Number.isFinite(row[metric]) ? row[metric] : null;
  const step = Number(metric.slice(4));
  const seen = (row.val ?? []).filter(([at]) => at <= step).map(([, loss]) => loss);
  return seen.length ? seen.reduce((a, b) => Math.min(a, b)) : null;
}

/**
 * @param {Row[]} rows @param {string} metric
 * @param {Record<string, string[]>} [levels] the order of labels, low first; else natural order
 * @returns {Blocks}
 */
export function blocks(rows, metric, levels = {}) {
  const factors = varied(rows, levels);
  const names = Object.keys(factors);
  /** @type {Map<string, {labels: string[], values: Map<number, number>, seeds: Set<number>}>} */
  const cells = new Map();
  const missing = [];
  for (const row of rows) {
    const labels = names.map((name) => String(row[PREFIX + name]));
    const key = JSON.stringify(labels);
    if (!cells.has(key)) cells.set(key, { labels, values: new Map(), seeds: new Set() });
    const cell = cells.get(key);
    if (cell.seeds.has(row.seed)) throw new Error(`${row.run} and another run are the same cell and seed`);
    cell.seeds.add(row.seed);
    const value = row.complete === true ? measure(row, metric) : null;
    if (value === null) missing.push(String(row.run));
    else cell.values.set(row.seed, value);
  }
  const place = ({ labels }) => labels.map((label, i) => factors[names[i]].indexOf(label));
  const ordered = [...cells.values()].sort((a, b) => compare(place(a), place(b)));
  const empty = ordered.find((cell) => !cell.values.size);
  if (empty) throw new Error(`The cell ${empty.labels.join(", ")} has no complete run with ${metric}`);
  return {
    metric, factors, missing,
    cells: ordered.map((cell) => cell.labels),
    values: ordered.map((cell) => cell.values),
  };
}

/** Factors that vary, each with its levels. */
function varied(rows, levels) {
  const names = Object.keys(rows[0]).filter((key) => key.startsWith(PREFIX)).sort();
  const same = (row) => Object.keys(row).filter((key) => key.startsWith(PREFIX)).length === names.length;
  if (!rows.every((row) => same(row) && names.every((name) => name in row))) {
    throw new Error("The rows do not all have the same factors; give those of one study");
  }
  if (new Set(rows.map((row) => row.study)).size > 1) throw new Error("The rows are of several studies; give one");
  const factors = {};
  for (const key of names) {
    const name = key.slice(PREFIX.length);
    const there = [...new Set(rows.map((row) => String(row[key])))].sort(byNature);
    const order = (levels[name] ?? []).filter((label) => there.includes(label));
    const labels = order.length === there.length ? order : there;
    if (labels.length > 1) factors[name] = labels;
  }
  return factors;
}

/** Numbers by size, also within words, then words by the alphabet. */
export function byNature(a, b) {
  const [x, y] = [a, b].map((label) => (label.trim() === "" ? NaN : Number(label)));
  if (!Number.isNaN(x) || !Number.isNaN(y)) {
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return x - y;
  }
  const parts = (label) => label.split(/(\d+)/).map((part, i) => (i % 2 ? Number(part) : part));
  return compare(parts(a), parts(b));
}

/** Lists by their first difference; a number comes before a word. */
function compare(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] === b[i]) continue;
    if (typeof a[i] !== typeof b[i]) return typeof a[i] === "number" ? -1 : 1;
    return a[i] < b[i] ? -1 : 1;
  }
  return a.length - b.length;
}
