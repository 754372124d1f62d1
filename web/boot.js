/** Starts Python in the worker: Pyodide, our wheel, and an image of both from an earlier visit. */

import createModule from "./pyodide/pyodide.asm.mjs";
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { PageError } from "./protocol.js";

export const BASE = new URL("./", import.meta.url);
const OUR_WHEEL = "/lib/paperkiln.whl";
const PYDANTIC = ["annotated_types", "typing_extensions", "typing_inspection", "pydantic"];

// All that an image may hold: pure Python, ours and what pydantic will ask of the library.
const IMAGE = `
import annotationlib, collections.abc, copy, dataclasses, datetime, decimal, difflib, enum, fractions
import functools, importlib.metadata, inspect, ipaddress, json, operator, pathlib, re, types, typing
import uuid, warnings, zipfile, zoneinfo
import pyodide.ffi
import paperkiln.infer.ember, paperkiln.web.chat, paperkiln.web.dispatch, paperkiln.web.papers
`;

/** @typedef {(step: string, loaded: number, total: number) => void} OnProgress */

/** @param {string} path */
export async function fetchFile(path) {
  const response = await fetch(new URL(path, BASE)).catch(() => null);
  if (response?.ok) return response;
  throw notLoaded(path, response);
}

/** @param {string} path @param {Response | null} response */
function notLoaded(path, response) {
  const why = response?.status ? `the server answered ${response.status}` : "no answer";
  const mend = "Check the connection, then try again.";
  return new PageError("offline", `${path} could not be loaded (${why}). ${mend}`);
}

/** @type {Promise<any> | undefined} */
let manifest;

/** The list of the app's files. */
export function readManifest() {
  manifest ??= fetchFile("manifest.json")
    .then((response) => response.json())
    .catch((error) => {
      manifest = undefined; // so that the next request may try again
      throw error;
    });
  return manifest;
}

/**
 * Watch Pyodide's own downloads: count their bytes, and fail when one fails, which Pyodide itself
 * would only write to the console.
 * @param {OnProgress} tell
 * @returns {Promise<never>} rejected when a part cannot be had
 */
async function watchDownloads(tell) {
  const { files, wheels } = await readManifest();
  const parts = ["pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", wheels.paperkiln];
  const total = parts.reduce((sum, path) => sum + files[path].size, 0);
  let loaded = 0;
  const plainFetch = self.fetch.bind(self);
  return new Promise((_, fail) => {
    self.fetch = async (input, options) => {
      const path = String(input.url ?? input).slice(BASE.href.length);
      if (!parts.includes(path)) return plainFetch(input, options);
      const response = await plainFetch(input, options).catch(() => null);
      if (!response?.ok) {
        fail(notLoaded(path, response));
        return Response.error();
      }
      const counter = new TransformStream({
        transform(chunk, controller) {
          tell("Python", (loaded += chunk.length), total);
          controller.enqueue(chunk);
        },
      });
      return new Response(response.body.pipeThrough(counter), response);
    };
  });
}

async function imageRequest() {
  const cache = await caches.open(`paperkiln ${BASE.href}`);
  const { version } = await readManifest();
  return { cache, key: new URL(`snapshot?${version}`, BASE) };
}

/** The image of an earlier visit, if there is one. */
async function findImage() {
  if (!self.caches) return undefined;
  try {
    const { cache, key } = await imageRequest();
    return await (await cache.match(key))?.arrayBuffer();
  } catch {
    return undefined;
  }
}

async function forgetImage() {
  const { cache, key } = await imageRequest();
  await cache.delete(key);
}

/** @param {object} options of loadPyodide @param {ArrayBuffer} [image] */
async function load(options, image) {
  const wheel = readManifest().then(({ wheels }) => fetchFile(wheels.paperkiln));
  wheel.catch(() => {}); // it is told of below, once Pyodide is there
  const { pyodide: info } = await readManifest();
  const python = await loadPyodide({
    indexURL: new URL("pyodide/", BASE).href,
    packageBaseUrl: BASE.href,
    // Nothing is loaded by name, so the list of Pyodide's own packages stays away.
    lockFileContents: { info, packages: {} },
    env: { PYDANTIC_DISABLE_PLUGINS: "__all__", HOME: "/home/pyodide" },
    // An image may be larger than the memory that Pyodide begins with.
    createPyodideModule: async (settings) => {
      const module = await createModule(settings);
      if (image) module._emscripten_resize_heap(image.byteLength);
      return module;
    },
    ...(image ? { _loadSnapshot: image } : {}),
    ...options,
  });
  python.FS.writeFile(OUR_WHEEL, new Uint8Array(await (await wheel).arrayBuffer()));
  python.runPython(`
import random, sys
if ${JSON.stringify(OUR_WHEEL)} not in sys.path:
    sys.path.insert(0, ${JSON.stringify(OUR_WHEEL)})
random.seed()`);
  return python;
}

/** Start Python. @param {OnProgress} tell */
export async function startPython(tell) {
  const image = await findImage();
  if (image) {
    try {
      return await load({}, image);
    } catch (error) {
      console.warn("the image of Python did not start", error);
      await forgetImage();
    }
  }
  const failed = watchDownloads(tell);
  return Promise.race([load({}), failed]);
}

/** Keep an image of Python with our modules imported. */
export async function keepImage() {
  const python = await load({ _makeSnapshot: true });
  python.runPython(IMAGE);
  const image = python.makeMemorySnapshot();
  const { cache, key } = await imageRequest();
  await cache.put(key, new Response(image));
}

/** Add pydantic, which only specs need. @param {any} python @param {OnProgress} tell */
export async function addPydantic(python, tell) {
  const { wheels, files } = await readManifest();
  const names = [...PYDANTIC, "pydantic_core"];
  const total = names.reduce((sum, name) => sum + files[wheels[name]].size, 0);
  let loaded = 0;
  await Promise.all(
    names.map(async (name) => {
      const data = await (await fetchFile(wheels[name])).arrayBuffer();
      tell("pydantic", (loaded += data.byteLength), total);
      if (name === "pydantic_core") {
        python.unpackArchive(data, "wheel"); // its library must be a file
      } else {
        python.FS.writeFile(`/lib/${name}.whl`, new Uint8Array(data));
        python.runPython(`import sys; sys.path.append("/lib/${name}.whl")`);
      }
    }),
  );
  python.runPython("import importlib; importlib.invalidate_caches()");
}
