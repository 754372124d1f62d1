/** Runs Python and the engine beside the page. Requests come in, answers go out: protocol.js. */

import { addPydantic, fetchFile, keepImage, startPython } from "./boot.js";
import { Ember, chooseBuild } from "./engine/ember.js";
import { PageError, toFault } from "./protocol.js";

/** @typedef {(event: object) => void} Emit */

// --- Python -----------------------------------------------------------------------------------

/** @type {Promise<any> | undefined} */
let starting;

/** Python, started on the first call. @param {Emit} emit */
function python(emit) {
  starting ??= startPython(progress(emit)).catch((error) => {
    starting = undefined; // so that the next request may try again
    throw error;
  });
  return starting;
}

/** @type {Promise<void> | undefined} */
let withPydantic;

/** @param {Emit} emit */
async function pythonWithPydantic(emit) {
  const running = await python(emit);
  withPydantic ??= addPydantic(running, progress(emit)).catch((error) => {
    withPydantic = undefined;
    throw error;
  });
  await withPydantic;
  return running;
}

/** @param {Emit} emit */
function progress(emit) {
  return (step, loaded, total) => emit({ event: "progress", step, loaded, total });
}

/** Unpack what paperkiln/web/dispatch.py answered. @param {string} text */
function opened(text) {
  const { done, error } = JSON.parse(text);
  if (error) throw new PageError(error.code, error.message);
  return done;
}

/** Ask a room of dispatch.py. @param {any} running @param {string} kind @param {any} body */
function ask(running, kind, { data, ...body }) {
  const dispatch = running.pyimport("paperkiln.web.dispatch");
  if (!data) return opened(dispatch.answer(kind, JSON.stringify(body)));
  const view = running.toPy(new Uint8Array(data));
  try {
    return opened(dispatch.answer(kind, JSON.stringify(body), view));
  } finally {
    view.destroy();
  }
}

// --- the chat ---------------------------------------------------------------------------------

let stopAsked = false;
/** The engine with the open model. @type {Ember | undefined} */
let engine;
let newest = 0; // which of the loads that were asked for counts

/** Get the model into the engine while Python starts. @param {any} body @param {Emit} emit */
async function loadModel(body, emit) {
  const mine = ++newest;
  const name = body.file?.name ?? body.name;
  const tell = (step, loaded, total) => {
    if (mine !== newest) throw new PageError("stopped", "Another model was opened meanwhile.");
    progress(emit)(step, loaded, total);
  };
  const earlier = engine;
  engine = undefined;
  if (earlier) opened((await python(emit)).pyimport("paperkiln.web.dispatch").chat_close());
  const [running, ember] = await Promise.all([python(emit), fillEngine(body, tell, earlier)]);
  tell("model", ember.size, ember.size);
  const about = opened(running.pyimport("paperkiln.web.dispatch").chat_load(ember, name));
  engine = ember;
  return about;
}

/**
 * @param {any} body
 * @param {import("./boot.js").OnProgress} tell
 * @param {Ember} [earlier] an engine whose model is no longer needed
 */
async function fillEngine({ file, url, size }, tell, earlier) {
  const build = chooseBuild();
  if (!build) {
    throw new PageError(
      "unsupported",
      "This browser has no WebAssembly SIMD, which the engine needs. Update it or use another one.",
    );
  }
  const total = file?.size ?? size;
  const made = takesWell(earlier, total) ? earlier : makeEngine(build);
  const stream = file ? file.stream() : (await fetchFile(url)).body;
  const ember = await made;
  try {
    await ember.receive(stream, total, (loaded) => tell("model", loaded, total));
  } catch (error) {
    if (/has no .* MB/.test(error.message)) throw new PageError("memory", sentence(error.message));
    throw error;
  }
  return ember;
}

/** @param {string} build */
async function makeEngine(build) {
  return Ember.fromBytes(await (await fetchFile(`engine/${build}`)).arrayBuffer());
}

/**
 * Whether a file is to take the memory of an earlier one: what is let go comes back only later, and
 * two models would be there at once. A much smaller file gets a small memory of its own.
 * @param {Ember | undefined} ember
 * @param {number} size
 */
function takesWell(ember, size) {
  return ember && ember.exports.memory.buffer.byteLength < 2 * size + 2 ** 28;
}

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}. Take a smaller model.`;

/** Stream a reply. @param {any} body @param {Emit} emit */
async function send(body, emit) {
  const dispatch = (await python(emit)).pyimport("paperkiln.web.dispatch");
  stopAsked = false;
  emit({ event: "note", ...opened(dispatch.chat_begin(JSON.stringify(body))) });
  for (;;) {
    const { text, done } = opened(dispatch.chat_step());
    if (text) emit({ event: "text", text });
    if (done) return done;
    await otherMessages();
    if (stopAsked) {
      dispatch.chat_stop();
      throw new PageError("stopped", "Stopped.");
    }
  }
}

const channel = new MessageChannel();

/** Let messages that have come be handled: a Stop, above all. */
function otherMessages() {
  return new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  });
}

// --- messages ---------------------------------------------------------------------------------

/** @type {Record<string, (body: any, emit: Emit) => Promise<any>>} */
const HANDLERS = {
  boot: async ({ room }, emit) => {
    const running = await (room === "spec" ? pythonWithPydantic(emit) : python(emit));
    if (room === "paper") running.pyimport("paperkiln.web.papers"); // so that reading starts at once
    return {};
  },
  "chat.load": loadModel,
  "chat.send": send,
  "chat.stop": async () => {
    stopAsked = true;
    return {};
  },
  "spec.check": async (body, emit) => ask(await pythonWithPydantic(emit), "spec.check", body),
  "paper.read": async (body, emit) => ask(await python(emit), "paper.read", body),
  "paper.emit": async (body, emit) => ask(await python(emit), "paper.emit", body),
  "paper.link": async (body, emit) => ask(await python(emit), "paper.link", body),
  snapshot: async () => {
    await keepImage();
    return {};
  },
};

self.onmessage = async ({ data: { id, kind, body } }) => {
  const emit = (event) => self.postMessage({ id, ...event });
  try {
    self.postMessage({ id, done: await HANDLERS[kind](body, emit) });
  } catch (error) {
    self.postMessage({ id, error: toFault(error) });
  }
};
