/** A spec in a link: JSON, deflated, in the URL's fragment, which no server ever sees. */

const MOST = 200_000; // characters of JSON that a link may unpack to
const DEEPEST = 8; // objects and lists in one another; a spec has three

/** @param {object} spec @returns {Promise<string>} */
export async function pack(spec) {
  const deflated = new Blob([JSON.stringify(spec)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(deflated).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return `spec=${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** The spec in a fragment; null without one. Throws when it is damaged. @param {string} fragment */
export async function unpack(fragment) {
  const packed = /^#?spec=([\w-]+)$/.exec(fragment)?.[1];
  if (!packed) return null;
  const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (text.length > MOST) throw new Error("the link unpacks to more than a spec");
  }
  return readSpec(text);
}

/** What a stranger wrote as a spec: an object, and not nested without end. @param {string} text */
export function readSpec(text) {
  const spec = JSON.parse(text);
  if (spec === null || typeof spec !== "object" || Array.isArray(spec)) throw new Error("no spec");
  let level = [spec];
  for (let depth = 0; level.length; depth++) {
    if (depth > DEEPEST) throw new Error("nested too deeply");
    level = level.flatMap(Object.values).filter((each) => each && typeof each === "object");
  }
  return spec;
}
