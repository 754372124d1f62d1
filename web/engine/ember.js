/**
 * Loads ember and moves bytes in and out of its memory. No imports: it runs in a page, in a worker
 * and in node. What the calls mean is said in ember.c and paperkiln/infer/ember.py.
 */

// A function that adds three vectors with the relaxed multiply-add: valid where that is known.
const RELAXED_PROBE = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, // magic, version
  1, 5, 1, 96, 0, 1, 123, // one type: () -> v128
  3, 2, 1, 0, // one function of it
  10, 19, 1, 17, 0, // its code:
  65, 0, 253, 15, 65, 0, 253, 15, 65, 0, 253, 15, // three times i32.const 0, i8x16.splat
  253, 133, 2, 11, // f32x4.relaxed_madd, end
);
// The same with one i8x16.splat and nothing else.
const SIMD_PROBE = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0,
  65, 0, 253, 15, 11,
);

/** The file name of the build that this machine can run, or null without SIMD. */
export function chooseBuild() {
  if (WebAssembly.validate(RELAXED_PROBE)) return "ember-relaxed.wasm";
  return WebAssembly.validate(SIMD_PROBE) ? "ember.wasm" : null;
}

/**
 * Load the engine from the folder it is served from.
 * @param {URL | string} folder its address, with a slash at the end
 * @returns {Promise<Ember>}
 */
export async function loadEmber(folder) {
  const name = chooseBuild();
  if (!name) throw new Error("this browser has no WebAssembly SIMD; update it to run the model");
  const response = await fetch(new URL(name, folder));
  if (!response.ok) throw new Error(`${name} did not load (${response.status})`);
  return Ember.fromBytes(await response.arrayBuffer());
}

/** One instance: one model at a time. */
export class Ember {
  /** @param {WebAssembly.Instance} instance */
  constructor(instance) {
    this.exports = instance.exports;
    /** Where the model's file lies, and how long it is. */
    this.file = 0;
    this.size = 0;
  }

  /** @param {BufferSource} bytes of the module */
  static async fromBytes(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Ember(instance);
  }

  // The buffer is another one after memory has grown, so no view of it is kept.
  /** @param {number} address @param {number} n */
  view(address, n) {
    return new Uint8Array(this.exports.memory.buffer, address, n);
  }

  /** Call an export; addresses come back unsigned. @param {string} name @param {...number} args */
  call(name, ...args) {
    return this.exports[name](...args) >>> 0;
  }

  /** A copy of n bytes. @param {number} address @param {number} n */
  read(address, n) {
    return this.view(address, n).slice();
  }

  /** @param {number} address @param {Uint8Array} bytes */
  write(address, bytes) {
    this.view(address, bytes.length).set(bytes);
  }

  /**
   * Make room for a model file. Forgets any earlier model.
   * @param {number} size in bytes
   */
  reserve(size) {
    this.file = size < 2 ** 32 - 2 ** 16 ? this.call("ember_reserve", size) : 0;
    if (!this.file) throw new Error(`the browser has no ${Math.ceil(size / 1e6)} MB for this model`);
    this.size = size;
  }

  /**
   * Read a model file straight into the engine's memory, as it arrives.
   * @param {ReadableStream<Uint8Array>} stream
   * @param {number} size in bytes
   * @param {(bytes: number) => void} [onProgress] told how many bytes have come
   */
  async receive(stream, size, onProgress = () => {}) {
    this.reserve(size);
    let at = 0;
    for (const reader = stream.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > size) throw new Error("the model file is longer than it said");
      this.write(this.file + at, value);
      onProgress((at += value.length));
    }
    if (at < size) throw new Error(`the model file broke off at byte ${at} of ${size}`);
  }
}
