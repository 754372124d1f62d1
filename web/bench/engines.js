/** The page's part of engines.py: one model, ember and wllama in turns, each as a chat would use it. */

import { Client, makeWorker } from "../app/client.js";
import { Wllama } from "./wllama/index.js";

const BLANK = ["debug", "log", "warn"].map((name) => [name, () => {}]);
const LOGGER = { ...Object.fromEntries(BLANK), error: console.error };
const said = document.querySelector("#said");

/** A prompt of n tokens, another one each time, so that nothing of it is read already. */
function prompt(n) {
  const letter = () => String.fromCharCode(97 + Math.floor(Math.random() * 26));
  return Array.from({ length: n / 2 }, () => ` ${letter()}`).join(""); // a space, then a letter
}

/** ember as the chat page has it: client.js, the worker, Python, and text that comes in events. */
class EmberInPage {
  async open(model) {
    this.client = new Client(makeWorker);
    await this.client.request("chat.load", { ...model, url: new URL(model.url, location).href });
  }

  /** @returns {Promise<number>} how many tokens were said */
  async reply(text, n, sampling, onText) {
    const settings = { ...sampling, length: n };
    const body = { messages: [["user", text]], settings };
    let promptTokens;
    const end = await this.client.request("chat.send", body, (event) => {
      if (event.event === "note") promptTokens = event.prompt_tokens;
      if (event.event === "text") onText(event.text);
    });
    return { tokens: end.tokens, promptTokens };
  }

  close() {
    this.client.worker.terminate();
  }
}

/** llama.cpp in WebAssembly by way of wllama, streaming; `inside` is what it counts itself. */
class WllamaInPage {
  async open({ url, context }) {
    const path = { default: new URL("wllama/wasm/wllama.wasm", location).href };
    this.wllama = new Wllama(path, { suppressNativeLog: true, logger: LOGGER });
    const model = await (await fetch(url, { cache: "no-store" })).blob();
    await this.wllama.loadModel([model], {
      n_threads: 1,
      n_ctx: context,
      n_gpu_layers: 0,
      n_parallel: 1,
      jinja: false,
    });
    if (this.wllama.isMultithread()) throw new Error("wllama runs more than one thread");
  }

  async reply(text, n, { temperature, top_k, top_p }, onText) {
    const stream = await this.wllama.createCompletion({
      prompt: `<|user|>${text}<|assistant|>`, // as the chat page writes it
      max_tokens: n,
      temperature,
      top_k,
      top_p,
      min_p: 0,
      cache_prompt: false,
      ignore_eos: true,
      stream: true,
    });
    let last;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.text) onText(chunk.choices[0].text);
      if (chunk.timings) last = chunk.timings;
    }
    return {
      tokens: last.predicted_n,
      promptTokens: last.prompt_n,
      inside: { decode: last.predicted_per_second, prefill: last.prompt_per_second },
    };
  }

  close() {
    return this.wllama.exit();
  }
}

/** Ask for n tokens and put them into the page as they come. */
async function measure(engine, text, n, sampling) {
  said.textContent = "";
  const began = performance.now();
  let first;
  const reply = await engine.reply(text, n, sampling, (piece) => {
    first ??= performance.now();
    said.append(piece);
  });
  return { ...reply, first: first - began, rest: performance.now() - first };
}

/** Figures of one reply to a short prompt, and of one token after a long one. */
async function round(engine, { n, long, sampling }) {
  const short = await measure(engine, prompt(8), n, sampling);
  const read = await measure(engine, prompt(long), 1, sampling);
  return {
    first_ms: short.first,
    decode: ((short.tokens - 1) / short.rest) * 1000, // the first piece is the first token
    prefill: (read.promptTokens / read.first) * 1000,
    inside: short.inside && { decode: short.inside.decode, prefill: read.inside.prefill },
  };
}

/** Bytes that the host has sent. */
const sent = async () => Number(await (await fetch("/sent", { cache: "no-store" })).text());

/** The same greedy text? @returns {Promise<string>} how much of the shorter one */
async function agreement(engines) {
  const text = prompt(8);
  const texts = [];
  for (const engine of engines) {
    await measure(engine, text, 48, { temperature: 0, top_k: 0, top_p: 1 });
    texts.push(said.textContent);
  }
  const length = Math.min(...texts.map((each) => each.length));
  let same = 0;
  while (same < length && texts[0][same] === texts[1][same]) same++;
  return `${same} of ${length} characters`;
}

/** What this browser can do at best: FLOPs of one thread, and bytes of so large a memory. */
async function ceiling(size) {
  const source = await (await fetch("ceiling.wasm")).arrayBuffer();
  const { instance } = await WebAssembly.instantiate(source);
  const { arithmetic, reading, reserve, memory } = instance.exports;
  reserve(size);
  new Uint8Array(memory.buffer, 1 << 16).fill(1); // pages that nobody wrote are all the same one
  const best = (once, seconds = 0.4) => {
    let least = Infinity;
    const end = performance.now() + seconds * 1000;
    for (let began = performance.now(); began < end; ) {
      const n = once();
      const now = performance.now();
      [least, began] = [Math.min(least, (now - began) / n), now];
    }
    return 1000 / least;
  };
  const rounds = 2_000_000; // of 12 chains, 4 lanes, 2 operations
  return {
    flops: best(() => (arithmetic(rounds, 0.5, 0.5), rounds * 12 * 4 * 2)),
    bytes: best(() => {
      const times = Math.ceil(5e7 / size);
      for (let i = 0; i < times; i++) reading(size);
      return times * size;
    }),
  };
}

/**
 * Open a model in both engines, one after the other, then take turns.
 * @param {{model: {name: string, url: string, size: number, context: number}, rounds: number,
 *   turn: number, n: number, long: number, sampling: object}} plan
 */
globalThis.compare = async (plan) => {
  const engines = { ember: new EmberInPage(), wllama: new WllamaInPage() };
  const results = {};
  for (const [name, engine] of Object.entries(engines)) {
    const before = await sent();
    const began = performance.now();
    await engine.open(plan.model);
    const opened = performance.now() - began;
    const first = await round(engine, plan);
    results[name] = { opened_ms: opened, first, rounds: [], bytes: (await sent()) - before };
  }
  for (const engine of Object.values(engines)) await round(engine, plan); // warmed up
  for (let i = 0; i < plan.rounds; i++) {
    for (const [name, engine] of Object.entries(engines)) {
      for (let k = 0; k < plan.turn; k++) results[name].rounds.push(await round(engine, plan));
    }
  }
  results.same = await agreement(Object.values(engines));
  for (const engine of Object.values(engines)) await engine.close();
  results.ceiling = await ceiling(plan.model.size);
  return results;
};
document.documentElement.dataset.ready = "";
