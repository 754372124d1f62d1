/** <paperkiln-paper>: a paper's source in, what it says of its model out, each value quoted. */

import { appJson, appUrl } from "../client.js";
import { PageError, bytes, toFault } from "../protocol.js";
import { PaperkilnElement, Status, download, fault, h } from "./element.js";
import { pack } from "./fragment.js";

const LARGEST = 256e6; // bytes of a source
/** What a model can be shrunk to; one that is smaller keeps its shape. */
const FITS = [
  ["", "its own size"],
  ["cpu", "for a CPU, in minutes"],
  ["300k", "300 k"],
  ["5M", "5 M"],
  ["20M", "20 M"],
  ["100M", "100 M"],
];

export class PaperkilnPaper extends PaperkilnElement {
  static door = {
    title: "What does a paper say of its model?",
    words:
      "Drop the LaTeX source; every value comes with the sentence that proves it. Python loads into this page, about 14 MB once.",
    button: "Open the paper reader",
  };

  start() {
    this.status = new Status();
    this.trouble = h("div");
    /** The source that is being read, kept so that a new worker can read it again. */
    this.source = undefined;
    this.size = "";
    this.fit = "";
    this.build();
    this.client.onRestart.add((reason) => {
      if (this.source && reason.code === "crashed" && !this.crashed) {
        this.crashed = true; // once: a source that always crashes it is told of
        this.read();
      }
    });
    this.client
      .request("boot", { room: "paper" }, (event) => this.status.progress(event))
      .then(() => {
        this.dataset.ready = "";
        if (!this.busy) this.status.say("Ready.");
      })
      .catch((error) => {
        if (error.code !== "stopped")
          this.complain(error, [["Try again", () => location.reload()]]);
      });
  }

  // --- the page ---------------------------------------------------------------------------------

  build() {
    // Python cannot be interrupted: it is started anew.
    const stop = () => this.client.restart(new PageError("stopped", "Stopped."));
    this.stopButton = h(
      "button",
      { type: "button", class: "small", disabled: true, onclick: stop },
      "Stop reading",
    );
    this.gate = h(
      "div",
      { class: "gate" },
      h(
        "div",
        { class: "across" },
        h("div", { class: "doing" }, this.status.element, this.stopButton),
        this.trouble,
      ),
      this.buildDrop(),
      h("div", { class: "panel" }, this.buildId(), this.buildPaste()),
    );
    this.result = h("div", {});
    this.root = h(
      "div",
      {
        class: "paper",
        ondragover: (event) => this.onDrag(event, true),
        ondragleave: (event) => this.onDrag(event, false),
        ondrop: (event) => this.onDrop(event),
      },
      this.gate,
      this.result,
    );
    this.shadowRoot.append(this.root);
  }

  buildDrop() {
    const file = h("input", {
      type: "file",
      accept: ".tex,.gz,.tgz,.zip,.tar,.txt",
      "aria-label": "Choose a source file",
      onchange: () => {
        if (file.files[0]) this.take(file.files[0]);
        file.value = "";
      },
    });
    this.zone = h(
      "div",
      { class: "dropzone" },
      h("h2", {}, "Drop a source here"),
      h("p", { class: "soft" }, ".tar.gz, .gz, .zip or .tex"),
      h("label", { class: "button primary" }, file, "Choose a file"),
      h(
        "button",
        { type: "button", class: "quiet small", onclick: () => this.takeExample() },
        "or read a short example",
      ),
    );
    return this.zone;
  }

  buildId() {
    const id = h("input", {
      type: "text",
      id: "paper-id",
      placeholder: "1706.03762, or a link",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.found = h("div", { class: "found" });
    const find = (event) => {
      event.preventDefault();
      this.find(id.value);
    };
    return h(
      "form",
      { onsubmit: find },
      h("h2", {}, "From arXiv"),
      h("label", { for: "paper-id", class: "soft" }, "The paper’s id, or a link to it"),
      h("div", { class: "inline" }, id, h("button", {}, "Find")),
      this.found,
    );
  }

  buildPaste() {
    const text = h("textarea", {
      id: "pasted",
      spellcheck: "false",
      placeholder: "\\section{Model} We use 12 layers of width 768 …",
    });
    const read = (event) => {
      event.preventDefault();
      if (text.value.trim()) this.take(new File([text.value], "pasted.tex"));
    };
    return h(
      "form",
      { onsubmit: read },
      h("h2", {}, "Or paste LaTeX"),
      h("label", { for: "pasted", class: "hidden-title" }, "LaTeX source"),
      text,
      h("div", { class: "row" }, h("button", {}, "Read it")),
    );
  }

  complain(error, ways) {
    if (this.gate.hidden) this.reset();
    this.status.say("");
    this.trouble.replaceChildren(fault(error, ways));
    this.trouble.scrollIntoView({ block: "nearest" });
  }

  // --- finding ----------------------------------------------------------------------------------

  /** Fetch a paper where the site's owner has a proxy, else link to its source. @param {string} text */
  async find(text) {
    this.found.replaceChildren(h("p", { class: "soft" }, "Looking…"));
    let paper;
    try {
      paper = await this.client.request("paper.link", { text }, (event) =>
        this.status.progress(event),
      );
    } catch (error) {
      this.found.replaceChildren(fault(error));
      return;
    }
    if (await this.fetchByProxy(paper)) return;
    this.found.replaceChildren(
      h(
        "p",
        {},
        h(
          "a",
          {
            class: "button",
            href: paper.source,
            rel: "noreferrer",
            target: "_blank",
            download: true,
          },
          `Download the source of ${paper.id}`,
        ),
      ),
      h(
        "p",
        { class: "soft" },
        "arXiv lets no other site’s page fetch a source (it sends no CORS header), so download it yourself and drop it here.",
      ),
    );
  }

  async fetchByProxy(paper) {
    const { paperProxy } = await appJson("config.json").catch(() => ({}));
    if (!paperProxy) return false;
    try {
      const response = await fetch(`${paperProxy.replace(/\/$/, "")}/src/${paper.id}`);
      if (!response.ok) return false;
      this.found.replaceChildren();
      await this.take(new File([await response.arrayBuffer()], paper.id.replace("/", "_")));
      return true;
    } catch {
      return false;
    }
  }

  // --- reading ----------------------------------------------------------------------------------

  /** @param {File} file */
  async take(file) {
    if (file.size > LARGEST) {
      this.complain({
        message: `${file.name} has ${bytes(file.size)}; a source has ${bytes(LARGEST)} at most. Unpack it and drop the .tex file.`,
      });
      return;
    }
    try {
      this.source = { name: file.name, data: await file.arrayBuffer() };
    } catch (error) {
      this.complain(toFault(error));
      return;
    }
    this.size = this.fit = "";
    this.crashed = false;
    await this.read();
  }

  async takeExample() {
    let data;
    try {
      const response = await fetch(appUrl("example.tex"));
      if (!response.ok) throw new Error(response.statusText);
      data = await response.arrayBuffer();
    } catch {
      this.complain({
        message: "The example could not be loaded. Check the connection, then try again.",
      });
      return;
    }
    await this.take(new File([data], "example.tex"));
  }

  async read() {
    const { source, size } = this;
    this.busy = true;
    this.stopButton.disabled = false;
    this.trouble.replaceChildren();
    this.status.say(`Reading ${source.name}…`);
    try {
      const paper = await this.client.request("paper.read", { ...source, size }, (event) =>
        this.status.progress(event),
      );
      if (this.source !== source) return;
      this.paper = paper;
      this.show();
    } catch (error) {
      if (error.code === "crashed" && !this.crashed) return; // it is read again when the worker is back
      if (error.code === "stopped") return this.reset("Stopped.");
      this.complain(error, [
        ["Choose another file", () => this.zone.querySelector("input").click()],
      ]);
    } finally {
      this.busy = false;
      this.stopButton.disabled = true;
    }
  }

  show() {
    const { paper } = this;
    this.gate.hidden = true;
    this.dataset.reading = "";
    this.builder = h(
      "a",
      { class: "button primary", href: appUrl("spec.html").href },
      "Open in spec builder",
    );
    const frame = h("iframe", {
      class: "evidence",
      sandbox: "allow-scripts",
      title: `What “${paper.title}” says of its model`,
    });
    // Without its name before them, the page's links to its own places would lead to this one.
    frame.srcdoc = paper.html.replaceAll('href="#', 'href="about:srcdoc#');
    this.notice = h("span", { class: "soft", role: "status" });
    const gives = (label, name, text, type) =>
      h("button", { type: "button", onclick: () => download(name, text(), type) }, label);
    this.result.replaceChildren(
      h(
        "div",
        { class: "tools" },
        h("button", { type: "button", onclick: () => this.reset() }, "Another paper"),
        this.models(),
        h("span", { class: "grow" }),
        this.notice,
        this.fits(),
        gives("Spec", "spec.json", () => json(this.paper.spec), "application/json"),
        gives("HF config", "config.json", () => this.paper.hf, "application/json"),
        gives("Python", "model.py", () => this.paper.python, "text/x-python"),
        gives("Evidence", "evidence.html", () => this.paper.html, "text/html"),
        this.builder,
      ),
      frame,
    );
    this.link();
    this.result.querySelector("button").focus({ preventScroll: true });
  }

  /** Which of the paper's models, where it has several. */
  models() {
    const { models } = this.paper;
    if (!models.length) return null;
    const option = (value, label) => h("option", { value, selected: value === this.size }, label);
    const choose = () => {
      this.size = choice.value;
      this.fit = "";
      this.read();
    };
    const choice = h(
      "select",
      { onchange: choose },
      option("", "main"),
      models.map((name) => option(name, name)),
    );
    return h("label", {}, "Model", choice);
  }

  /** How large what is made of it should be. */
  fits() {
    const choice = h(
      "select",
      { onchange: () => this.emit(choice.value) },
      FITS.map(([value, label]) => h("option", { value, selected: value === this.fit }, label)),
    );
    return h("label", {}, "Build at", choice);
  }

  /** Make the spec and the Python anew at another size. @param {string} fit */
  async emit(fit) {
    this.fit = fit;
    this.notice.textContent = "";
    try {
      const made = await this.client.request("paper.emit", {
        ...this.source,
        size: this.size,
        fit,
      });
      if (this.fit === fit) Object.assign(this.paper, made);
      await this.link();
    } catch (error) {
      this.notice.textContent = error.message;
    }
  }

  async link() {
    this.builder.href = `${appUrl("spec.html").href}#${await pack(this.paper.spec)}`;
  }

  /** Ask for a paper again. @param {string} words */
  reset(words = "Ready.") {
    this.source = undefined;
    this.result.replaceChildren();
    this.gate.hidden = false;
    this.status.say(words);
    delete this.dataset.reading;
    this.zone.querySelector("input").focus();
  }

  onDrag(event, over) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    this.zone.classList.toggle("over", over);
  }

  onDrop(event) {
    event.preventDefault();
    this.zone.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) this.take(file);
  }
}

/** @param {any} value */
const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

customElements.define("paperkiln-paper", PaperkilnPaper);
