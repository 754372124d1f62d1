/** Conversations that survive a reload, in IndexedDB; one tab writes one conversation. */

const STORE = "conversations";

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

/** Hold a conversation for this tab; false if another tab has it. @param {string} id */
export async function hold(id) {
  if (!navigator.locks) return true;
  return new Promise((resolve) => {
    navigator.locks
      .request(`paperkiln conversation ${id}`, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(false);
        letGo();
        const held = new Promise((release) => (letGo = release));
        resolve(true);
        return held;
      })
      .catch(() => resolve(true));
  });
}

/** The conversation that this tab had, else the newest that no other tab has, else a new one. */
export async function resume() {
  const all = await listConversations();
  const own = sessionStorage.getItem("paperkiln conversation");
  all.sort((a, b) => Number(b.id === own) - Number(a.id === own));
  for (const conversation of all) {
    if (await holdSoon(conversation.id, conversation.id === own)) return take(conversation);
  }
  const fresh = newConversation();
  await hold(fresh.id);
  return take(fresh);
}

/** A reload may come before the page that it replaces has let go. @param {string} id @param {boolean} own */
async function holdSoon(id, own) {
  for (let tries = own ? 10 : 1; tries > 0; tries--) {
    if (await hold(id)) return true;
    if (tries > 1) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

/** @param {Conversation} conversation */
export function take(conversation) {
  sessionStorage.setItem("paperkiln conversation", conversation.id);
  return conversation;
}
