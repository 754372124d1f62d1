/**
 * The messages between a page and the worker.
 *
 * The page sends a Request; the worker answers with any number of Events and then one End, all with
 * the same id. Requests of different rooms may run at once; what one room is asked, it does in turn.
 *
 * @typedef {"boot" | "chat.load" | "chat.send" | "chat.stop" | "spec.schema" | "spec.check"
 *   | "paper.read" | "paper.emit" | "paper.link" | "snapshot"} Kind
 *
 * @typedef {{id: number, kind: Kind, body: any}} Request
 * @typedef {{id: number, event: "progress", step: string, loaded: number, total: number}} Progress
 * @typedef {{id: number, event: "text", text: string}} Text
 * @typedef {{id: number, event: "note", note: string, dropped: number}} Note
 * @typedef {{id: number, done: any} | {id: number, error: Fault}} End
 * @typedef {{code: "input" | "offline" | "unsupported" | "memory" | "crashed" | "stopped"
 *   | "internal", message: string}} Fault  a sentence, and what to do
 *
 * What each kind takes and gives:
 *   boot        {room: "chat" | "spec" | "paper"} → {}, after Progress
 *   chat.load   {url, name, size} | {file: File} → About (paperkiln/web/chat.py), after Progress
 *   chat.send   {messages: [role, text][], settings} → figures of the reply, after Note and Texts
 *   chat.stop   {} → {}: the reply ends as "stopped"
 *   spec.check  {values, gflops?} → paperkiln/web/spec.py check()
 *   paper.read  {data: ArrayBuffer, name, size?} → paperkiln/web/papers.py read()
 *   paper.emit  the same and {fit} → emit()
 *   paper.link  {text} → link()
 *   snapshot    {} → {}: keep an image of Python that has started, for the next visit
 */

/** A failure that a person is meant to read. */
export class PageError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const FATAL = /pyodide already fatally failed/i; // it is of no use any more
const MEMORY =
  /out of memory|allocation failed|could not allocate|memory\.grow|Array buffer alloc/i;
const NETWORK = /failed to fetch|networkerror|load failed|importing a module script/i;
const UNREADABLE = ["NotReadableError", "NotFoundError", "SecurityError"]; // of a File, its names

/** Turn whatever was thrown into a Fault. @param {any} error @returns {Fault} */
export function toFault(error) {
  const message = String(error?.message ?? error);
  if (error instanceof PageError) return { code: error.code, message };
  if (error?.pyodide_fatal_error || FATAL.test(message)) {
    return { code: "crashed", message: "Python stopped working; it starts again by itself." };
  }
  if (UNREADABLE.includes(error?.name)) {
    return {
      code: "input",
      message:
        "The file cannot be read: it is a folder, or was moved or changed meanwhile. Choose it again.",
    };
  }
  if (MEMORY.test(message)) {
    return {
      code: "memory",
      message:
        "The browser has no memory left for this. Close other pages, or take a smaller file.",
    };
  }
  if (NETWORK.test(message)) {
    return {
      code: "offline",
      message: "A part of this page could not be loaded. Check the connection, then try again.",
    };
  }
  const line = message.trim().split("\n").at(-1); // of a traceback, what it ends with
  return { code: "internal", message: `Something went wrong inside the page: ${line}` };
}

/** Why this browser cannot run the pages, or "". */
export function whyUnsupported() {
  if (typeof WebAssembly !== "object") return "This browser runs no WebAssembly.";
  if (typeof Worker !== "function") return "This browser runs no workers.";
  if (!("adoptedStyleSheets" in Document.prototype))
    return "This browser is too old for this page.";
  return "";
}

/** 1234567 → "1.2 MB". @param {number} n */
export function bytes(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)} GB`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)} MB`;
  return `${Math.ceil(n / 1e3)} kB`;
}
