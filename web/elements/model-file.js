/** What can be said of a model's file before it is opened, and the model in use is let go. */

import { bytes, toFault } from "../protocol.js";

const LARGEST = 2 ** 32 - 2 ** 16 - 64e6; // bytes: 32-bit WebAssembly, and the cache beside it

/**
 * Why a file cannot be opened, if that is plain to see.
 * @param {File} file
 * @returns {Promise<import("../protocol.js").Fault | undefined>}
 */
export async function whyNot(file) {
  try {
    const magic = new Uint8Array(await file.slice(0, 4).arrayBuffer());
    if (String.fromCharCode(...magic) !== "GGUF") {
      const message = `${file.name} is no GGUF file. paperkiln, llama.cpp and Hugging Face export them as NAME.gguf.`;
      return { code: "input", message };
    }
  } catch (error) {
    return toFault(error);
  }
  if (file.size > LARGEST) {
    const message = `${file.name} has ${bytes(file.size)}; a page can hold ${bytes(LARGEST)} at most. Take a smaller model, or one with 8-bit weights.`;
    return { code: "memory", message };
  }
}
