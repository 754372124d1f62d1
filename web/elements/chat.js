/** <paperkiln-chat>: a conversation with a model that runs in the page. */

import { appJson } from "../client.js";
import {
  forget,
  hold,
  listConversations,
  newConversation,
  resume,
  save,
  take,
} from "./conversations.js";
import { cardOf, conversationsDialog } from "./chat-dialogs.js";
import { PaperkilnElement, Status, dialog, fault, h, show } from "./element.js";
import { forgetFile, keepFile, keptFile } from "./kept-file.js";
import { whyNot } from "./model-file.js";
import { Settings } from "./settings.js";
import { describe, drawTurn, figures, remark } from "./turns.js";

/** @typedef {import("./conversations.js").Turn} Turn */

const STARTERS = ["hello", "what is your name?", "tell me a joke"];

export class PaperkilnChat extends PaperkilnElement {
  static door = {
    title: "Chat with a model, here",
    words: "Python and the engine load into this page, about 15 MB once. Nothing is sent anywhere.",
    button: "Start the chat",
  };

  start() {
    this.status = new Status();
    this.settings = new Settings();
    this.conversation = newConversation();
    /** What was loaded, so that a new worker can load it again. @type {any} */
    this.source = undefined;
    this.about = undefined;
    this.asked = 0; // for how many models
    /** The reply that is being written. @type {Promise<any> | undefined} */
    this.reply = undefined;
    /** A message that was sent before the model was there. */
    this.waiting = false;
    /** Whether the model is loaded again, for a worker that was replaced. */
    this.reopening = false;
    this.build();
    this.client.onRestart.add(() => this.reload());
    this.opening = resume().then((conversation) => {
      this.conversation = conversation;
      this.draw();
    });
    this.loadShipped();
  }

  // --- the page ---------------------------------------------------------------------------------

  build() {
    this.name = h("b", {}, "Loading the model…");
    this.log = h("ol", {});
    this.empty = this.buildEmpty();
    this.scroller = h(
      "div",
      {
        class: "log",
        role: "log",
        "aria-live": "off",
        tabindex: "0",
        "aria-label": "Conversation",
      },
      this.empty,
      this.log,
    );
    this.input = h("textarea", {
      rows: "1",
      "aria-label": "Your message",
      placeholder: "Say something",
      enterkeyhint: "send",
      onkeydown: (event) => this.onKey(event),
      oninput: () => this.drawButton(),
    });
    this.button = h(
      "button",
      { type: "button", class: "primary", onclick: () => this.onButton() },
      "Send",
    );
    this.trouble = h("div");
    this.announce = h("div", { class: "hidden-title", role: "status" });
    const file = h("input", {
      type: "file",
      accept: ".gguf",
      "aria-label": "Open a GGUF file",
      onchange: () => {
        if (file.files[0]) this.load({ file: file.files[0] });
        file.value = "";
      },
    });
    const quiet = (label, act) =>
      h("button", { type: "button", class: "quiet", onclick: act }, label);
    const root = h(
      "div",
      {
        class: "chat",
        ondragover: (event) => this.onDrag(event, true),
        ondragleave: (event) => this.onDrag(event, false),
        ondrop: (event) => this.onDrop(event),
      },
      h(
        "div",
        { class: "bar" },
        h("div", { class: "model" }, this.name, this.status.element),
        h(
          "div",
          { class: "acts" },
          quiet("Card", () => this.showCard()),
          quiet("Settings", () => this.showSettings()),
          quiet("Conversations", () => this.showConversations()),
          h("label", { class: "button quiet" }, file, "Open GGUF"),
        ),
      ),
      this.scroller,
      h(
        "div",
        { class: "composer" },
        this.trouble,
        h("div", { class: "field" }, this.input, this.button),
        h("p", { class: "hint" }, "Runs on your machine. Small models make things up."),
      ),
      this.announce,
    );
    this.root = root;
    this.shadowRoot.append(root);
    this.drawButton();
  }

  buildEmpty() {
    const starter = (text) =>
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            this.input.value = text;
            this.onButton();
          },
        },
        text,
      );
    return h(
      "div",
      { class: "empty" },
      h("h2", {}, "A small model, in this page"),
      h(
        "p",
        {},
        "It runs here, in your browser; the one that comes with the page was trained from scratch with paperkiln. Write while it loads; drop a GGUF file to talk to another.",
      ),
      h("div", { class: "row" }, STARTERS.map(starter)),
    );
  }

  draw() {
    this.log.replaceChildren(...this.conversation.turns.map((turn, i) => this.drawTurn(turn, i)));
    this.empty.hidden = this.conversation.turns.length > 0;
    this.drawButton();
    this.toEnd();
  }

  /** @param {Turn} turn @param {number} i */
  drawTurn(turn, i) {
    const last = i === this.conversation.turns.length - 1;
    if (this.reply) return drawTurn(turn, {});
    if (turn.role === "assistant")
      return drawTurn(turn, last ? { again: () => this.again(i) } : {});
    return drawTurn(turn, {
      resend: (text) => this.resend(i, text),
      cancel: () => this.draw(),
      again: last && !this.waiting && this.about ? () => this.again(-1) : undefined, // left unanswered
    });
  }

  drawButton() {
    const busy = this.reply || this.waiting;
    this.button.textContent = busy ? "Stop" : "Send";
    this.button.disabled = !busy && !this.input.value.trim();
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  get atEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < 60;
  }

  // --- the model --------------------------------------------------------------------------------

  async loadShipped() {
    try {
      const { models } = await appJson("manifest.json");
      this.shipped = models[0];
      const file = await keptFile();
      if (this.source) return;
      await this.load(file ? { file, kept: true } : this.shippedSource());
    } catch (error) {
      this.sayNone();
      this.showFault(error, [["Try again", () => this.loadShipped()]]);
    }
  }

  /** Load the model into a new worker; once, for it may be what broke the old one. */
  reload() {
    // As another source, so that an earlier load of it that failed has no say.
    if (this.source && !this.reopening) this.load({ ...this.source }, true);
  }

  /**
   * @param {{file?: File, kept?: boolean, url?: string, name?: string, size?: number, path?: string}} source
   * @param {boolean} [again] after a crash, of which the page still tells
   */
  async load(source, again = false) {
    const asked = ++this.asked;
    const refusal = source.file && (await whyNot(source.file));
    if (asked !== this.asked) return; // another one was opened meanwhile
    if (refusal && this.about && !again) return this.showFault(refusal); // the model stays
    if (this.reply && !again) await this.stop();
    if (!again) this.trouble.replaceChildren();
    const earlier = this.about && this.source;
    this.about = undefined;
    this.source = source;
    this.reopening = again;
    this.name.textContent = source.file?.name ?? source.name;
    this.status.say("Loading…");
    try {
      if (refusal) throw refusal;
      const { path, kept, ...wanted } = source;
      const about = await this.client.request("chat.load", wanted, (event) =>
        this.status.progress(event),
      );
      if (this.source !== source) return; // another one was opened meanwhile
      this.about = about;
      this.reopening = false;
      this.name.textContent = about.name;
      this.sayModel();
      this.dataset.ready = "";
      if (source.file && !kept) this.keepSource(source);
      if (this.waiting) this.answer();
      else if (this.conversation.turns.at(-1)?.role === "user") this.draw(); // to be answered now
    } catch (error) {
      if (this.source !== source) return;
      this.waiting = false;
      this.drawButton();
      this.sayNone();
      // Or every visit would begin like this. (Offline, the file is not to blame.)
      if (source.kept && ["input", "memory", "crashed"].includes(error.code)) forgetFile();
      const ways = source.file
        ? [
            [
              "Use the shipped model",
              () => this.load(earlier && !earlier.file ? earlier : this.shippedSource()),
            ],
          ]
        : [["Try again", () => this.load(source)]];
      this.source = undefined;
      this.showFault(error, ways);
    }
  }

  /** Keep an opened file for the next visit, once nobody waits. */
  async keepSource(source) {
    await this.client.quiet();
    if (this.source !== source) return;
    const copy = await keepFile(source.file);
    if (!copy) return;
    Object.assign(source, { file: copy, kept: true }); // the visitor may move the original
    if (this.source === source && this.about) this.sayModel();
  }

  sayNone() {
    this.name.textContent = "No model";
    this.status.say("Nothing is loaded.");
  }

  sayModel() {
    this.status.say(describe(this.about) + (this.source.kept ? " · kept here" : ""));
  }

  /** Remove the copy of the opened file, and go back to the shipped model. */
  async forgetSource() {
    await forgetFile();
    this.load(this.shippedSource());
  }

  shippedSource() {
    const { name, path, size } = this.shipped;
    return { name, url: `${path}model.gguf`, size, path };
  }

  showFault(error, ways) {
    this.trouble.replaceChildren(fault(error, ways));
  }

  // --- talking ----------------------------------------------------------------------------------

  onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!this.reply && !this.waiting) this.onButton();
  }

  async onButton() {
    if (this.waiting) {
      this.waiting = false;
      return this.drawButton();
    }
    if (this.reply) return this.stop();
    const text = this.input.value.trim();
    if (!text) return;
    this.input.value = ""; // before the wait: a second Enter must find nothing
    await this.opening;
    this.conversation.turns.push({ role: "user", text });
    this.draw();
    this.answer();
  }

  /** Answer the last message, now or when the model is there. */
  async answer() {
    this.waiting = !this.about;
    save(this.conversation);
    if (this.waiting) return this.drawButton();
    this.trouble.replaceChildren();
    const { conversation } = this;
    const messages = conversation.turns.map(({ role, text }) => [role, text]);
    /** @type {Turn} */
    const turn = { role: "assistant", text: "" };
    conversation.turns.push(turn);
    conversation.model = this.about.name;
    let said;
    this.reply = this.client.request(
      "chat.send",
      { messages, settings: this.settings.values },
      (event) => {
        if (event.event === "note") turn.note = remark(event);
        if (event.event !== "text") return;
        const follow = this.atEnd;
        turn.text += event.text;
        said.append(event.text);
        if (follow) this.toEnd();
      },
    );
    this.draw();
    said = this.log.lastElementChild.querySelector(".said");
    said.classList.add("writing");
    try {
      turn.figures = figures(await this.reply);
    } catch (error) {
      turn.figures = "stopped";
      if (error.code !== "stopped") {
        const again = ["Answer again", () => this.again(conversation.turns.indexOf(turn))];
        const shipped = ["Use the shipped model", () => this.load(this.shippedSource())];
        this.showFault(error, this.source?.file ? [again, shipped] : [again]);
      }
      if (!turn.text && error.code !== "stopped") conversation.turns.pop();
    }
    this.reply = undefined;
    await save(conversation);
    if (conversation === this.conversation) this.draw();
    this.announce.textContent = turn.text;
  }

  async stop() {
    await this.client.stop(this.reply);
    await this.reply?.catch(() => {});
  }

  /** Answer once more from turn i on. @param {number} i */
  async again(i) {
    if (this.reply) return;
    if (i >= 0) this.conversation.turns.length = Math.min(i, this.conversation.turns.length);
    if (this.conversation.turns.at(-1)?.role !== "user") return;
    this.draw();
    this.answer();
  }

  /** Say another thing at turn i. @param {number} i @param {string} text */
  resend(i, text) {
    if (this.reply) return;
    this.conversation.turns.length = i;
    this.conversation.turns.push({ role: "user", text });
    this.draw();
    this.answer();
    this.input.focus();
  }

  // --- dialogs ----------------------------------------------------------------------------------

  showSettings() {
    show(this.shadowRoot, dialog("Settings", this.settings.form()));
  }

  showCard() {
    const about = this.about ? describe(this.about) : "Nothing is loaded.";
    const { path, kept } = this.source ?? {};
    const forget = () => {
      box.close();
      this.forgetSource();
    };
    const box = dialog("Model card", cardOf(path, about, kept ? forget : undefined));
    show(this.shadowRoot, box);
  }

  async showConversations() {
    const box = conversationsDialog(await listConversations(), this.conversation, {
      begin: () => this.change(newConversation()),
      open: (conversation) => this.change(conversation),
      clear: () => this.clear(),
    });
    show(this.shadowRoot, box);
  }

  /** Show another conversation. @param {import("./conversations.js").Conversation} conversation */
  async change(conversation) {
    if (this.reply) await this.stop();
    this.waiting = false;
    if (!(await hold(conversation.id))) {
      this.showFault({
        message: "That conversation is open in another tab. Go on there, or close it.",
      });
      return;
    }
    this.conversation = take(conversation);
    this.draw();
  }

  async clear() {
    if (this.reply) await this.stop();
    await forget(this.conversation.id);
    this.conversation.turns = [];
    this.draw();
  }

  // --- dropping a file --------------------------------------------------------------------------

  onDrag(event, over) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    this.root.classList.toggle("dropping", over);
  }

  onDrop(event) {
    event.preventDefault();
    this.root.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    if (file) this.load({ file });
  }
}

customElements.define("paperkiln-chat", PaperkilnChat);
