/** What Material leaves out for readers who use the keyboard or listen. It builds both of these late. */

function mend() {
  // A bar of buttons at each listing: as a landmark it would be one of many without a name.
  for (const bar of document.querySelectorAll("nav.md-code__nav")) bar.role = "none";
  // A table that is wider than its place is scrolled with the arrows once it has the focus.
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (wrap.scrollWidth > wrap.clientWidth) {
      Object.assign(wrap, { tabIndex: 0, role: "group", ariaLabel: "Table" });
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) wrap.removeAttribute(name);
    }
  }
}

new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", mend);
mend();
