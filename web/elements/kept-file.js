/** The last file that was opened here, kept over a reload in the browser's own file system. */

const FOLDER = "paperkiln-model"; // holds one file at most
const ROOM = 1.1; // times the file's size, before it is copied

/** @returns {Promise<FileSystemDirectoryHandle>} */
async function folder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

/** The copy that is being made. @type {{stop: AbortController, done: Promise<File | undefined>} | undefined} */
let copying;

/** What was kept, if anything. @returns {Promise<File | undefined>} */
export async function keptFile() {
  try {
    for await (const handle of (await folder()).values()) {
      const file = await handle.getFile();
      if (file.size) return file; // an empty one is a copy that broke off
    }
  } catch {
    // Private windows and old browsers keep no files.
  }
}

/**
 * Keep a copy, in place of any other, if the browser has room for it.
 * @param {File} file
 * @returns {Promise<File | undefined>} the copy
 */
export async function keepFile(file) {
  await forgetFile();
  const stop = new AbortController();
  const mine = { stop, done: copy(file, stop.signal).catch(() => undefined) };
  copying = mine;
  const kept = await mine.done;
  if (!kept && copying === mine) await forgetFile();
  return kept;
}

/** @param {File} file @param {AbortSignal} signal */
async function copy(file, signal) {
  const { quota = 0, usage = 0 } = await navigator.storage.estimate();
  if (quota - usage < ROOM * file.size) return;
  const handle = await (await folder()).getFileHandle(file.name, { create: true });
  await file.stream().pipeTo(await handle.createWritable(), { signal });
  return handle.getFile();
}

/** Keep nothing. */
export async function forgetFile() {
  copying?.stop.abort();
  await copying?.done;
  copying = undefined;
  try {
    const root = await navigator.storage.getDirectory();
    await root.removeEntry(FOLDER, { recursive: true });
  } catch {
    // There was none.
  }
}
