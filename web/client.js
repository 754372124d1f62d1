/** The page's side of the worker: one worker for all elements of a page, restarted if it dies. */

import { PageError, whyUnsupported } from "./protocol.js";

const BASE = new URL("./", import.meta.url);
const PATIENCE = 1500; // ms for a Stop to be obeyed before the worker is replaced
const LONGEST_TAKEOVER = 5000; // ms that a page waits for a new build
const WORKED = "Python stopped working; it starts again by itself.";
const NEVER_WORKED =
  "Python did not start, or stopped at once. Check the connection, close other pages, then try again.";

/** @typedef {import("./protocol.js").Kind} Kind */

export class Client {
  /** @param {() => Worker} makeWorker */
  constructor(makeWorker) {
    this.makeWorker = makeWorker;
    this.nextId = 1;
    /** @type {Map<number, {resolve: Function, reject: Function, onEvent: Function}>} */
    this.open = new Map();
    /** Called after a worker was replaced: elements load again what they had in it. */
    this.onRestart = new Set();
    /** Whether the worker is there: its scripts have come. */
    this.came = false;
    /** Whether it has done anything yet. One that has not is not started again by itself. */
    this.worked = false;
  }

  /**
   * @param {Kind} kind
   * @param {any} [body]
   * @param {(event: any) => void} [onEvent]
   * @returns {Promise<any>}
   */
  request(kind, body = {}, onEvent = () => {}) {
    const reason = whyUnsupported();
    if (reason) {
      return Promise.reject(
        new PageError("unsupported", `${reason} Update it or use another one.`),
      );
    }
    this.worker ??= this.start();
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.open.set(id, { resolve, reject, onEvent });
      this.worker.postMessage({ id, kind, body });
    });
  }

  /** Wait until nothing has been asked for a moment. */
  async quiet() {
    do {
      await new Promise((resolve) => setTimeout(resolve, 1000));
    } while (this.open.size);
  }

  start() {
    const worker = this.makeWorker();
    this.came = this.worked = false;
    worker.onmessage = ({ data }) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.crash();
    };
    return worker;
  }

  /** @param {any} message */
  receive({ id, done, error, ...event }) {
    this.came = true;
    const request = this.open.get(id);
    if (!request) return;
    if (event.event) return request.onEvent(event);
    if (error?.code === "crashed") return this.crash();
    this.open.delete(id);
    if (error) return request.reject(new PageError(error.code, error.message));
    this.worked = true;
    request.resolve(done);
  }

  crash() {
    const code = this.came ? "crashed" : "offline";
    this.restart(new PageError(code, this.worked ? WORKED : NEVER_WORKED));
  }

  /**
   * Ask a reply to end. A worker that does not answer is replaced.
   * @param {Promise<any>} reply
   */
  async stop(reply) {
    const ended = reply.then(
      () => true,
      () => true,
    );
    this.worker?.postMessage({ id: this.nextId++, kind: "chat.stop", body: {} });
    const patience = new Promise((resolve) => setTimeout(resolve, PATIENCE, false));
    if (!(await Promise.race([ended, patience]))) {
      this.restart(new PageError("stopped", "Stopped."));
    }
  }

  /** Replace the worker; open requests fail with `reason`. @param {PageError} reason */
  restart(reason) {
    this.worker?.terminate();
    this.worker = undefined;
    const open = [...this.open.values()];
    this.open.clear();
    for (const request of open) request.reject(reason);
    if (!this.worked) return; // or what kills each worker would do so for ever
    for (const listener of this.onRestart) listener(reason);
  }
}

/** A worker of this app; on another origin by way of a blob, which may import what it likes. */
export function makeWorker() {
  const url = new URL("worker.js", BASE);
  if (url.origin === location.origin) return new Worker(url, { type: "module" });
  const source = new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(source), { type: "module" });
}

/** @type {Client | undefined} */
let shared;

/** The page's only client. */
export function client() {
  return (shared ??= new Client(makeWorker));
}

/** Where a file of the app lies. @param {string} path */
export function appUrl(path) {
  return new URL(path, BASE);
}

/** Read a JSON file of the app. @param {string} path */
export async function appJson(path) {
  const response = await fetch(appUrl(path)).catch(() => null);
  if (!response?.ok) {
    throw new PageError(
      "offline",
      `${path} could not be loaded. Check the connection, then reload.`,
    );
  }
  return response.json();
}

// --- offline ------------------------------------------------------------------------------------

/**
 * Let a new build that waits take over, if no other tab goes on with the old one: the page is then
 * loaded again. Resolves when it is to go on as it is. It should ask nothing of the old worker
 * before: a browser replaces none that is at work.
 */
export async function takeNewBuild() {
  const { serviceWorker } = navigator;
  if (!serviceWorker?.controller) return;
  const registration = await serviceWorker.getRegistration(BASE).catch(() => null);
  if (!registration?.waiting) return;
  serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    port1.onmessage = resolve; // another tab is open
    registration.waiting.postMessage("take over if alone", [port2]);
    setTimeout(resolve, LONGEST_TAKEOVER);
  });
}

/** Let the service worker keep the app, where there is one. */
export async function keepOffline() {
  if (!("serviceWorker" in navigator) || BASE.origin !== location.origin) return;
  try {
    await navigator.serviceWorker.register(new URL("sw.js", BASE), { scope: BASE.pathname });
    const { active } = await navigator.serviceWorker.ready;
    active.postMessage("keep everything");
    await kept(active);
    await keepSnapshot();
  } catch {
    // A page without it works too, only not offline.
  }
}

/** Wait until the service worker says that all files are kept. @param {ServiceWorker} active */
function kept(active) {
  return new Promise((resolve) => {
    navigator.serviceWorker.addEventListener("message", function listen({ data }) {
      if (data !== "everything is kept") return;
      navigator.serviceWorker.removeEventListener("message", listen);
      document.documentElement.dataset.offline = "ready";
      resolve(active);
    });
  });
}

/** Once: a second worker starts Python and keeps its image, which the next visit starts from. */
async function keepSnapshot() {
  if ((navigator.deviceMemory ?? 8) < 2) return; // a second Python is too much there
  const { version } = await appJson("manifest.json");
  const cache = await caches.open(`paperkiln ${BASE.href}`);
  if (await cache.match(new URL(`snapshot?${version}`, BASE))) return;
  const other = new Client(makeWorker);
  await other.request("snapshot").catch(() => {});
  other.worker?.terminate();
  document.documentElement.dataset.snapshot = "ready";
}
