"use strict";
// Without this script every link still leads from a value to its quotes and back.
(() => {
  const rows = new Map([...document.querySelectorAll(".v")].map((row) => [row.id, row]));
  const quotes = new Map([...rows.keys()].map((id) => [id, []]));
  for (const quote of document.querySelectorAll(".q")) {
    for (const id of quote.dataset.of.split(" ")) quotes.get(id)?.push(quote);
  }
  const sideBySide = matchMedia("(min-width: 56.01rem)");
  let lit = [];
  let kept = []; // what stays lit when the pointer leaves

  const light = (ids) => {
    for (const element of lit) element.classList.remove("on");
    lit = ids.flatMap((id) => [rows.get(id), ...(quotes.get(id) ?? [])]).filter(Boolean);
    for (const element of lit) element.classList.add("on");
  };
  const keep = (ids) => light((kept = ids));

  // What a pointer or the focus stands on: a row, or the rows that a quote speaks for.
  const idsAt = (target) => {
    const quote = target.closest?.(".q");
    if (quote) return quote.dataset.of.split(" ");
    const row = target.closest?.(".v");
    return row ? [row.id] : null;
  };

  document.addEventListener("pointerover", (event) => light(idsAt(event.target) ?? kept));
  document.addEventListener("focusin", (event) => {
    const ids = idsAt(event.target);
    if (ids) keep(ids);
  });
  document.addEventListener("click", (event) => {
    const ids = idsAt(event.target);
    if (!ids) return;
    keep(ids);
    const row = rows.get(ids[0]);
    if (event.target.closest(".q")) {
      // Beside the source the page stays where it is, and only the column of values moves.
      if (!sideBySide.matches || !row) return;
      event.preventDefault();
      row.scrollIntoView({ block: "nearest" });
      row.focus({ preventScroll: true });
    } else if (!event.target.closest("a, summary, details") && !String(getSelection())) {
      row?.querySelector(".go")?.click();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") keep([]);
  });
})();
