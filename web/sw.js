/**
 * Keeps the app for offline use. Every file is kept under its address and its hash, so a new build
 * downloads only what changed, and tabs of the old build go on with the old files: this worker
 * takes over when none is open, or when the only one is loaded again.
 */

/** @type {Record<string, string>} path in the app → hash of its content */
const FILES = {}; // filled in by build.py
const BASE = self.registration.scope;
const CACHE = `paperkiln ${BASE}`;

// What a page needs to open at all; the rest is kept once the page is up.
const isShell = (path) => !/^(pyodide|wheels|models|engine)\//.test(path);

/** @param {string} path */
const keyOf = (path) => new Request(`${BASE}${path}?${FILES[path]}`);

/** The path of a file of this build, or undefined. @param {string} address */
function pathOf(address) {
  const url = new URL(address);
  const whole = url.origin + url.pathname;
  if (!whole.startsWith(BASE)) return undefined;
  const path = whole.slice(BASE.length);
  // Some hosts leave the .html of addresses out.
  return [path, `${path}.html`].find((name) => Object.hasOwn(FILES, name));
}

/** Download what is not kept yet. @param {string[]} paths */
async function keep(paths) {
  const cache = await caches.open(CACHE);
  for (const path of paths) {
    if (await cache.match(keyOf(path))) continue;
    const response = await download(path);
    if (!(await put(path, response))) throw new Error(`${path}: not of this build`);
  }
}

/** Ask the host, which answers in few bytes when the browser's own copy is the newest. */
function download(path) {
  return fetch(`${BASE}${path}`, { cache: "no-cache" });
}

/**
 * Keep a file if it is the one that this build means: a host may be between two builds.
 * @param {string} path @param {Response} response
 */
async function put(path, response) {
  if (response.status !== 200) return false;
  const data = await response.arrayBuffer();
  if (path !== "manifest.json" && !(await hashOf(data)).startsWith(FILES[path])) return false;
  const cache = await caches.open(CACHE);
  // Made anew, since a browser refuses a kept page that came by way of a redirect.
  await cache.put(keyOf(path), new Response(data, { headers: response.headers }));
  return true;
}

/** @param {ArrayBuffer} data */
async function hashOf(data) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

self.addEventListener("install", (event) => {
  event.waitUntil(keep(Object.keys(FILES).filter(isShell)));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOld().then(() => self.clients.claim()));
});

async function forgetOld() {
  const cache = await caches.open(CACHE);
  const current = new Set(Object.keys(FILES).map((path) => keyOf(path).url));
  current.add(`${BASE}snapshot?${FILES["manifest.json"]}`); // client.js puts it there
  for (const request of await cache.keys()) {
    if (!current.has(request.url)) await cache.delete(request);
  }
}

self.addEventListener("message", (event) => {
  if (event.data === "take over if alone") event.waitUntil(takeOver(event));
  if (event.data !== "keep everything") return;
  event.waitUntil(
    keep(Object.keys(FILES)).then(
      () => event.source?.postMessage("everything is kept"),
      () => {}, // offline again: the next visit goes on from here
    ),
  );
});

/** @param {ExtendableMessageEvent} event of the tab that asks; it is answered only by a no */
async function takeOver({ source, ports }) {
  const tabs = await self.clients.matchAll({ includeUncontrolled: true, type: "window" });
  const others = tabs.filter((tab) => tab.url.startsWith(BASE) && tab.id !== source.id);
  if (others.length) ports[0].postMessage("another tab is open");
  else await self.skipWaiting();
}

self.addEventListener("fetch", (event) => {
  const path = event.request.method === "GET" ? pathOf(event.request.url) : undefined;
  if (path) event.respondWith(answer(path, event));
});

/** @param {string} path @param {FetchEvent} event */
async function answer(path, event) {
  // A browser whose storage fails shows the page all the same.
  const known = await caches.match(keyOf(path), { cacheName: CACHE }).catch(() => undefined);
  if (known) return known;
  const response = await download(path);
  // A full disk is no failure: what is not kept is downloaded again.
  event.waitUntil(put(path, response.clone()).catch(() => {}));
  return response.redirected ? new Response(response.body, response) : response;
}
