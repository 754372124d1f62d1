/** What the chat shows in dialogs: the model's card and record, and the conversations. */

import { appUrl } from "../client.js";
import { forget } from "./conversations.js";
import { dialog, download, h } from "./element.js";

/** @typedef {import("./conversations.js").Conversation} Conversation */

// --- the card -----------------------------------------------------------------------------------

/**
 * The card of a shipped model; of a dropped file only what it says of itself.
 * @param {string | undefined} path of the model's folder
 * @param {string} about
 * @param {() => void} [forget] removes the copy of the file that this browser keeps
 */
export function cardOf(path, about, forget) {
  const content = h("div", { class: "card" }, h("p", { class: "soft" }, "Loading…"));
  if (path) fillCard(content, path);
  else {
    const why = "A GGUF file of your own: it brings no card and no record.";
    content.replaceChildren(h("p", {}, about), h("p", { class: "soft" }, why));
    if (!forget) return content;
    const words = "A copy of it is kept in this browser, and opened when you come back.";
    const button = h("button", { type: "button", onclick: forget }, "Forget this file");
    content.append(h("p", { class: "soft" }, words), h("div", { class: "row" }, button));
  }
  return content;
}

/** @param {HTMLElement} content @param {string} path */
async function fillCard(content, path) {
  const read = async (name) => {
    const response = await fetch(appUrl(path + name));
    if (!response.ok) throw new Error(name);
    return response.text();
  };
  try {
    const [card, record] = await Promise.all([read("card.md"), read("record.json")]);
    const summary = "The record, from which everything above is computed";
    content.replaceChildren(
      ...renderCard(card),
      h(
        "details",
        {},
        h("summary", {}, summary),
        h("pre", { class: "sheet", tabindex: "0" }, record),
      ),
    );
  } catch {
    const words = "The card could not be loaded. Check the connection, then open it again.";
    content.replaceChildren(h("p", {}, words));
  }
}

/** The card's few forms of Markdown: headings, tables, paragraphs. @param {string} text */
function* renderCard(text) {
  const rows = [];
  for (const line of text.split("\n")) {
    const cells = line
      .match(/^\|(.*)\|$/)?.[1]
      .split("|")
      .map((cell) => cell.trim().replaceAll("`", ""));
    if (cells) {
      if (cells.some((cell) => cell && !/^-+$/.test(cell))) rows.push(cells);
      continue;
    }
    if (rows.length)
      yield h(
        "table",
        {},
        h(
          "tbody",
          {},
          rows.splice(0).map((row) =>
            h(
              "tr",
              {},
              row.map((cell) => h("td", {}, cell)),
            ),
          ),
        ),
      );
    if (line.startsWith("#")) yield h("h3", {}, line.replace(/^#+ */, ""));
    else if (line.trim()) yield h("p", { class: "soft" }, line.replaceAll("`", ""));
  }
}

// --- the conversations --------------------------------------------------------------------------

/**
 * @param {Conversation[]} all
 * @param {Conversation} current
 * @param {{begin: () => any, open: (each: Conversation) => any, clear: () => any}} acts
 */
export function conversationsDialog(all, current, acts) {
  const box = dialog("Conversations");
  const close = (act) => async () => {
    await act();
    box.close();
  };
  const button = (label, act, kind = "") =>
    h("button", { type: "button", class: kind, onclick: act }, label);
  box.querySelector(".content").append(
    h("p", { class: "soft" }, "They stay in this browser."),
    h(
      "div",
      { class: "row" },
      button("New conversation", close(acts.begin), "primary"),
      button("Download this one", () => saveAsText(current)),
      button("Clear this one", close(acts.clear)),
    ),
    h(
      "ul",
      { class: "list" },
      all.map((each) =>
        entry(
          each,
          each.id === current.id,
          close(() => acts.open(each)),
        ),
      ),
    ),
  );
  return box;
}

/** @param {Conversation} each @param {boolean} current @param {() => void} open */
function entry(each, current, open) {
  const title = each.turns[0]?.text.slice(0, 80) || "(empty)";
  const when = new Date(each.changed).toLocaleString();
  const remove = async () => {
    await forget(each.id);
    item.remove();
  };
  const item = h(
    "li",
    {},
    h(
      "button",
      {
        type: "button",
        class: "open",
        "aria-current": current && "true",
        onclick: current ? () => {} : open,
      },
      h("span", {}, h("b", {}, title), h("small", {}, `${when} · ${each.model || "no reply yet"}`)),
    ),
    current
      ? null
      : h(
          "button",
          {
            type: "button",
            class: "quiet small",
            "aria-label": `Delete “${title}”`,
            onclick: remove,
          },
          "Delete",
        ),
  );
  return item;
}

/** @param {Conversation} conversation */
function saveAsText({ model, turns }) {
  const parts = turns.map(
    ({ role, text }) => `## ${role === "user" ? "You" : "Model"}\n\n${text}\n`,
  );
  download(
    "conversation.md",
    `# ${model || "Conversation"}\n\n${parts.join("\n")}`,
    "text/markdown",
  );
}
