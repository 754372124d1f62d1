/** One turn of a conversation as the chat shows it, and the figures and remarks in words. */

import { copy, h } from "./element.js";

/** @typedef {import("./conversations.js").Turn} Turn */

/**
 * @param {Turn} turn
 * @param {{resend?: (text: string) => void, cancel?: () => void, again?: () => void}} acts what may
 *   be done with it
 */
export function drawTurn(turn, { resend, cancel, again }) {
  const said = h("div", { class: "said" }, turn.text);
  const act = (label, onclick) =>
    h("button", { type: "button", class: "quiet small", onclick }, label);
  const acts = h(
    "div",
    { class: "acts" },
    act("Copy", (event) => copy(event.currentTarget, turn.text)),
    resend ? act("Edit", () => edit(turn.text, said, acts, resend, cancel)) : null,
    again ? act("Again", again) : null,
    turn.figures ? h("span", { class: "figures" }, turn.figures) : null,
  );
  const who = h("span", { class: "hidden-title" }, turn.role === "user" ? "You:" : "Model:");
  const note = turn.note ? h("p", { class: "note" }, turn.note) : null;
  return h("li", { class: `turn ${turn.role}` }, who, said, note, acts);
}

/** Put a field in the place of what was said. */
function edit(text, said, acts, resend, cancel) {
  const send = () => field.value.trim() && resend(field.value.trim());
  const field = h("textarea", {
    rows: "2",
    "aria-label": "Edit your message",
    value: text,
    onkeydown: (event) => {
      if (event.key === "Escape") cancel();
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    },
  });
  const buttons = h(
    "div",
    { class: "row" },
    h("button", { type: "button", class: "quiet small", onclick: cancel }, "Cancel"),
    h("button", { type: "button", class: "small", onclick: send }, "Send again"),
  );
  acts.remove();
  said.replaceWith(h("div", { class: "edit" }, field, buttons));
  field.focus();
}

/** What a loaded model is, in a line. */
export function describe({ architecture, context_length, vocab_size, talks }) {
  const kind = talks ? "" : " · goes on with your text, it was not trained to chat";
  return `${architecture} · context ${number(context_length)} · ${number(vocab_size)} tokens${kind}`;
}

/** What a reply cost, in a line. */
export function figures({ reason, tokens, tokens_per_second }) {
  const end = { length: " · cut at the limit", stopped: " · stopped" }[reason] ?? "";
  return `${number(tokens)} tokens · ${number(Math.round(tokens_per_second))} tokens/s${end}`;
}

/** What to know about how a message was read, or "". */
export function remark({ note, dropped }) {
  const forgotten = dropped ? `the first ${dropped} messages no longer fit and are forgotten` : "";
  return [forgotten, note].filter(Boolean).join("; ");
}

/** @param {number} n */
const number = (n) => n.toLocaleString("en");
