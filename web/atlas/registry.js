/** <paperkiln-registry>: makes the table inside it searchable and sortable; without it, it is a table. */

/** What a cell is sorted by. @param {HTMLTableCellElement} cell */
function valueOf(cell) {
  return cell.dataset.value === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.value);
}

/** @param {number | string} a @param {number | string} b */
function compare(a, b) {
  return typeof a === "number" ? a - Number(b) : a.localeCompare(String(b), undefined, { numeric: true });
}

export class PaperkilnRegistry extends HTMLElement {
  connectedCallback() {
    if (this.form) return; // moved, not made
    this.form = this.querySelector("form");
    this.rows = [...this.querySelectorAll("tbody tr")];
    this.said = this.querySelector("output");
    this.querySelectorAll("thead th").forEach((head, column) => this.makeSortable(head, column));
    this.form.addEventListener("input", () => this.filter());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.filter();
  }

  /** Show the rows that have every word and a chosen status. */
  filter() {
    const words = this.form.querySelector("[type=search]").value.toLowerCase().split(/\s+/);
    const wanted = new Set([...this.form.querySelectorAll(":checked")].map((box) => box.value));
    let n = 0;
    for (const row of this.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(wanted.has(row.dataset.status) && words.every((word) => text.includes(word)));
      n += Number(!row.hidden);
    }
    this.said.textContent = n === this.rows.length ? `${n} findings` : `${n} of ${this.rows.length} findings`;
  }

  /** Put a button into a head; the order is said by aria-sort. */
  makeSortable(head, column) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      this.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      this.rows.sort((a, b) => (down ? -1 : 1) * compare(valueOf(a.cells[column]), valueOf(b.cells[column])));
      this.querySelector("tbody").append(...this.rows);
    });
    head.append(button);
  }
}

customElements.define("paperkiln-registry", PaperkilnRegistry);
