/** Conversations that survive a reload, in IndexedDB; one tab writes one conversation. */

const STORE = "conversations";
const RELOAD = 3000; // ms that the page which a reload replaces may take to let go

/**
 * @typedef {{role: "user" | "assistant", text: string, note?: string, figures?: string}} Turn
 * @typedef {{id: string, changed: number, model: string, turns: Turn[]}} Conversation
 */

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("paperkiln", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, { keyPath: "id" });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
    asked.onblocked = () => reject(new Error("another tab holds the conversations"));
  });
}

/** @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest} act */
async function transact(mode, act) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const request = act(database.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } finally {
    database.close();
  }
}

/** @returns {Conversation} */
export function newConversation() {
  return { id: randomId(), changed: Date.now(), model: "", turns: [] };
}

function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(12))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** All that have something in them, the newest first. @returns {Promise<Conversation[]>} */
export async function listConversations() {
  const all = await transact("readonly", (store) => store.getAll()).catch(() => []);
  return all.sort((a, b) => b.changed - a.changed);
}

/** @param {Conversation} conversation */
export async function save(conversation) {
  conversation.changed = Date.now();
  // A browser that keeps nothing (private windows of some) still chats.
  await transact("readwrite", (store) => store.put(structuredClone(conversation))).catch(() => {});
}

/** @param {string} id */
export async function forget(id) {
  await transact("readwrite", (store) => store.delete(id)).catch(() => {});
}

/** What ends this tab's hold on its conversation. */
let letGo = () => {};

/**
 * Hold a conversation for this tab; false if another tab has it.
 * @param {string} id
 * @param {number} [patience] ms to wait for the other tab to let go
 */
export async function hold(id, patience = 0) {
  if (!navigator.locks) return true;
  const options = patience ? { signal: AbortSignal.timeout(patience) } : { ifAvailable: true };
  return new Promise((resolve) => {
    navigator.locks
      .request(`paperkiln conversation ${id}`, options, (lock) => {
        if (!lock) return resolve(false);
        letGo();
        const held = new Promise((release) => (letGo = release));
        resolve(true);
        return held;
      })
      .catch(({ name }) => resolve(name !== "TimeoutError")); // a browser without locks goes on
  });
}

/** The conversation that this tab had, else the newest that no other tab has, else a new one. */
export async function resume() {
  const all = await listConversations();
  const own = ownId();
  all.sort((a, b) => Number(b.id === own) - Number(a.id === own));
  for (const conversation of all) {
    const patience = conversation.id === own ? RELOAD : 0;
    if (await hold(conversation.id, patience)) return take(conversation);
  }
  const fresh = newConversation();
  await hold(fresh.id);
  return take(fresh);
}

const OWN = "paperkiln conversation";

/** The conversation that this tab had before it was loaded again. */
function ownId() {
  try {
    return sessionStorage.getItem(OWN);
  } catch {
    return null; // a browser that refuses storage throws
  }
}

/** @param {Conversation} conversation */
export function take(conversation) {
  try {
    sessionStorage.setItem(OWN, conversation.id);
  } catch {
    // It holds as long as the page does.
  }
  return conversation;
}
