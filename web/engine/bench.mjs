// Plays back what bench.py recorded and measures: node bench.mjs RECORD.json
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { Ember } from "./ember.js";

const record = JSON.parse(readFileSync(process.argv[2], "utf8"));
const SECONDS = Number(process.argv[3] ?? 1.5);

async function open() {
  const ember = await Ember.fromBytes(readFileSync(record.module));
  const file = readFileSync(record.gguf);
  ember.reserve(file.length);
  ember.write(ember.file, file);
  play(ember, record.steps);
  return ember;
}

function play(ember, steps) {
  for (const step of steps)
    if (step.call) ember.call(step.call, ...step.arguments);
    else ember.write(step.write, Buffer.from(step.base64, "base64"));
}

/** Write n token ids at the start of the context. */
function prompt(ember, n) {
  const ids = Int32Array.from({ length: n }, (_, i) => (i * 37 + 11) % record.n_tokens);
  ember.call("ember_rewind", 0);
  ember.write(record.tokens, new Uint8Array(ids.buffer));
}

/** Tokens per second of `once`, which returns how many: the best of three parts of the time. */
function measure(once, seconds = SECONDS) {
  let best = 0;
  for (let part = 0; part < 3; part++) {
    const began = performance.now();
    let tokens = 0;
    do tokens += once();
    while (performance.now() - began < (seconds * 1000) / 3);
    best = Math.max(best, (tokens / (performance.now() - began)) * 1000);
  }
  return Math.round(best);
}

const started = performance.now();
const ember = await open();
const opened = performance.now() - started;

const prefill = () => (prompt(ember, 128), ember.call("ember_read", 128), 128);
const decode = () => {
  prompt(ember, 8);
  ember.call("ember_read", 8);
  let n = 0;
  while (n < 120) n += ember.call("ember_generate", 40);
  return n + 8;
};

const uniforms = Float64Array.from({ length: 512 }, (_, i) => (i * 0.618) % 1);
ember.write(record.uniforms, new Uint8Array(uniforms.buffer));
play(ember, record.samplings.greedy);
const first = measure(decode, 0);
const said = [`decode ${measure(decode)}/s (first ${first})`];
play(ember, record.samplings["top-k 40"]);
said.push(`sampled ${measure(decode)}/s`, `prefill ${measure(prefill)}/s`);
said.push(`opened in ${opened.toFixed(0)} ms`);
const name = `${basename(record.gguf, ".gguf")} ${basename(record.module, ".wasm")}`;
console.log(name.padEnd(28), said.join(", "));
