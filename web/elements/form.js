/** A form made from the run spec's JSON Schema: grouped, every field explained. */

import { h } from "./element.js";

/**
 * Where the fields stand. One that is not named here, a newer one, comes last in its section, so
 * that nothing in the schema can be missing from the form.
 * @type {[string, string, string[]][]} section, group, fields
 */
const GROUPS = [
  [
    "arch",
    "Size",
    [
      "d_model",
      "n_layers",
      "n_heads",
      "n_kv_heads",
      "head_dim",
      "d_ff",
      "context_length",
      "vocab_size",
    ],
  ],
  [
    "arch",
    "Flavour",
    ["norm", "norm_placement", "activation", "positional", "attention", "window", "sinks"],
  ],
  ["arch", "Details", []],
  ["data", "Text and tokens", []],
  ["train", "Budget", ["steps", "batch", "accum", "device", "shards", "seed"]],
  [
    "train",
    "Optimiser",
    [
      "optimizer",
      "lr",
      "weight_decay",
      "clip",
      "beta1",
      "beta2",
      "eps",
      "decay_all",
      "momentum",
      "muon_lr",
      "muon_momentum",
      "muon_per_head",
    ],
  ],
  ["train", "Schedule", ["schedule", "warmup_steps", "min_lr_ratio", "step_every", "step_gamma"]],
  ["train", "Evaluation and safety", []],
  ["export", "Files", []],
  ["", "Name and notes", ["name", "out_dir", "notes"]],
];
const SECTIONS = {
  arch: "The model",
  data: "The text",
  train: "The training",
  export: "The artefacts",
  "": "The run",
};
const OPEN = new Set(["Size", "Flavour"]);
const MOST_SAID = 5; // complaints that belong to no field
const LEFT_OUT = new Set(["arch.preset", "version"]); // the buttons above choose it; there is one

/** @typedef {{path: string[], schema: any, element: HTMLElement, show: Function, complain: Function}} Field */

export class SpecForm {
  /**
   * @param {any} schema of a run spec
   * @param {(path: string[], value: any) => void} onChange `undefined` unsets a field
   */
  constructor(schema, onChange) {
    this.schema = schema;
    this.onChange = onChange;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    this.general = h("div", { class: "error", role: "status" });
    this.element = h(
      "form",
      { onsubmit: (event) => event.preventDefault(), "aria-label": "The spec" },
      this.general,
      ...this.sections(),
    );
  }

  *sections() {
    let last;
    for (const [section, title, names] of this.groups()) {
      if (section !== last) yield h("h2", { class: "label" }, SECTIONS[section]);
      last = section;
      yield this.group(section, title, names);
    }
  }

  /** GROUPS with what they leave out of a section in its last empty or last group. */
  groups() {
    const groups = GROUPS.map(([section, title, names]) => [section, title, [...names]]);
    for (const section of Object.keys(SECTIONS)) {
      const own = groups.filter((group) => group[0] === section);
      const placed = new Set(own.flatMap((group) => group[2]));
      const properties = this.resolve(
        section ? this.schema.properties[section] : this.schema,
      ).properties;
      const rest = Object.keys(properties).filter(
        (name) =>
          !placed.has(name) &&
          !LEFT_OUT.has(section ? `${section}.${name}` : name) &&
          !(name in SECTIONS),
      );
      own.at(-1)[2].push(...rest);
    }
    return groups;
  }

  /** Follow a $ref. @param {any} schema */
  resolve(schema) {
    return schema.$ref ? this.schema.$defs[schema.$ref.split("/").at(-1)] : schema;
  }

  /** @param {string} section @param {string} title @param {string[]} names */
  group(section, title, names) {
    const { properties } = this.resolve(section ? this.schema.properties[section] : this.schema);
    const fields = names.flatMap((name) =>
      this.make(section ? [section, name] : [name], properties[name]),
    );
    const changed = h("span", { class: "changed" });
    const wrong = h("span", { class: "wrong" });
    const details = h(
      "details",
      { class: "group", open: OPEN.has(title) },
      h("summary", {}, h("h3", {}, title), changed, wrong),
      h(
        "div",
        { class: section ? "fields" : "fields wide-fields" },
        fields.map((field) => field.element),
      ),
    );
    for (const field of fields) Object.assign(field, { details, mates: fields, changed, wrong });
    return details;
  }

  /** @param {string[]} path @param {any} schema @returns {Field[]} */
  make(path, schema) {
    const inner = this.resolve(schema);
    if (inner.properties) {
      return Object.entries(inner.properties).flatMap(([name, each]) =>
        this.make([...path, name], each),
      );
    }
    const field = new FormField(path, schema, this.onChange);
    this.fields.set(path.join("."), field);
    return [field];
  }

  /** Show a sparse spec over the resolved one. @param {any} values @param {any} resolved */
  show(values, resolved) {
    for (const field of this.fields.values()) {
      field.show(at(values, field.path), at(resolved, field.path));
    }
    this.count();
  }

  /** @param {{path: string[], message: string}[]} errors */
  complain(errors) {
    const open = new Map(errors.map((error) => [error.path.join("."), error.message]));
    for (const [key, field] of this.fields) {
      field.complain(open.get(key) ?? "");
      open.delete(key);
    }
    const left = [...open].map(([path, message]) => (path ? `${path}: ${message}` : message));
    if (left.length > MOST_SAID) left.splice(MOST_SAID, Infinity, `${left.length - MOST_SAID} more.`);
    this.general.textContent = left.join(" ");
    this.count();
  }

  /** Say at each group's heading what is inside. */
  count() {
    for (const field of this.fields.values()) {
      const n = field.mates.filter((mate) => mate.isSet).length;
      field.changed.textContent = n ? `${n} set` : "";
      const bad = field.mates.filter((mate) => mate.isWrong).length;
      field.wrong.textContent = bad ? `${bad} to mend` : "";
    }
  }
}

class FormField {
  constructor(path, schema, onChange) {
    Object.assign(this, { path, schema, onChange, isSet: false, isWrong: false });
    const id = path.join("-");
    const choices = (schema.anyOf ?? [schema]).find((each) => each.enum)?.enum;
    this.nullable = (schema.anyOf ?? []).some((each) => each.type === "null");
    const type = (schema.anyOf ?? [schema])[0].type;
    this.number = type === "integer" || type === "number";
    const common = { id, "aria-describedby": `${id}-help ${id}-error` };
    if (choices) this.control = this.select(common, choices);
    else if (type === "boolean") this.control = this.checkbox(common);
    else if (type === "array") this.control = this.lines(common);
    else this.control = this.text(common);
    this.reset = h(
      "button",
      {
        type: "button",
        class: "quiet reset",
        "aria-label": `Reset ${path.at(-1)} to its default`,
        onclick: () => onChange(path, undefined),
      },
      "reset",
    );
    this.error = h("p", { class: "error", id: `${id}-error` });
    this.element = h(
      "div",
      { class: "field-of" },
      h("div", { class: "top" }, h("label", { for: id }, path.at(-1)), this.reset),
      type === "boolean" ? h("div", { class: "check" }, this.control, this.said) : this.control,
      h(
        "div",
        {},
        this.error,
        h("p", { class: "help", id: `${id}-help` }, schema.description ?? "", this.range()),
      ),
    );
  }

  /** The bounds in words, where the schema has some worth saying. */
  range() {
    const of = (this.schema.anyOf ?? [this.schema])[0];
    if (!this.number || of.maximum === undefined || of.minimum === undefined || of.maximum > 1e9)
      return "";
    return ` ${of.minimum.toLocaleString("en")} to ${of.maximum.toLocaleString("en")}.`;
  }

  select(common, choices) {
    this.default = h("option", { value: "" }, "default");
    return h(
      "select",
      {
        ...common,
        onchange: (event) => {
          const { value } = event.target;
          this.onChange(this.path, value === "" ? undefined : value === "null" ? null : value);
        },
      },
      this.default,
      choices.map((choice) => h("option", { value: choice }, choice)),
      this.nullable ? h("option", { value: "null" }, "none") : null,
    );
  }

  checkbox(common) {
    this.said = h("span", { class: "soft", "aria-hidden": "true" });
    return h("input", {
      ...common,
      type: "checkbox",
      onchange: (event) => this.onChange(this.path, event.target.checked),
    });
  }

  lines(common) {
    return h("textarea", {
      ...common,
      rows: "4",
      placeholder: "one on each line",
      oninput: (event) => {
        const lines = event.target.value
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean);
        this.onChange(this.path, lines.length ? lines : undefined);
      },
    });
  }

  text(common) {
    return h("input", {
      ...common,
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      inputmode: this.number ? "decimal" : "text",
      oninput: (event) => this.onChange(this.path, this.read(event.target.value)),
    });
  }

  /** What was typed, as JSON would have it; what is no number stays text, for pydantic to explain. */
  read(text) {
    const plain = text.trim();
    if (plain === "") return undefined;
    if (!this.number) return text;
    const number = Number(plain.replace(/(?<=\d)[_ ,](?=\d{3})/g, ""));
    return Number.isFinite(number) ? number : plain;
  }

  /** @param {any} value as set, or undefined @param {any} resolved what holds then */
  show(value, resolved) {
    this.isSet = value !== undefined;
    this.reset.hidden = !this.isSet;
    const { control } = this;
    if (control.type === "checkbox") {
      control.checked = value ?? resolved ?? false;
      this.said.textContent = control.checked ? "yes" : "no";
    } else if (control.tagName === "SELECT") {
      this.default.textContent = `${resolved ?? "none"}${this.isSet ? "" : " (default)"}`;
      if (this.isSet) this.default.textContent = "default";
      control.value = this.isSet ? inWords(value) : "";
    } else {
      const shown = Array.isArray(value) ? value.map(inWords).join("\n") : inWords(value ?? "");
      if (control.getRootNode().activeElement !== control) control.value = shown;
      if (control.tagName === "INPUT")
        control.placeholder = resolved == null ? "not set" : String(resolved);
    }
  }

  /** @param {string} message */
  complain(message) {
    this.isWrong = message !== "";
    this.error.textContent = message;
    this.control.setAttribute("aria-invalid", String(this.isWrong));
    if (this.isWrong) this.details.open = true;
  }
}

/** A value as a field shows it; a link may hold an object where text belongs. @param {any} value */
export function inWords(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {any} values @param {string[]} path */
export function at(values, path) {
  return path.reduce((inner, name) => inner?.[name], values);
}

/** A copy of `values` with one field set, or unset. @param {any} values @param {string[]} path */
export function withValue(values, [name, ...rest], value) {
  const fields = values instanceof Object && !Array.isArray(values) ? values : {};
  const { [name]: old, ...others } = fields;
  const inner = rest.length ? withValue(old, rest, value) : value;
  const empty = inner === undefined || (rest.length && Object.keys(inner).length === 0);
  if (empty) return others;
  // In place, so that the order in which fields were set is the order in the file.
  return { ...fields, [name]: inner };
}
