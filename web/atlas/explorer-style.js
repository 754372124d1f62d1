/** What the explorer adds to the style of the demos. */

export const style = `
  .demo { padding-bottom: 1.8rem; }
  .demo.over { outline: 3px dashed var(--accent); outline-offset: -6px; }
  .controls select { width: 100%; min-width: 0; }
  .file input { position: absolute; width: 1px; height: 1px; opacity: 0; }
  .file .button { display: flex; align-items: center; min-height: 2.3rem; padding: .25rem .8rem; border: 1px dashed var(--edge);
    border-radius: 8px; font-weight: 400; cursor: pointer; }
  .file .button:hover { border-color: var(--accent); }
  .file:focus-within .button { outline: 2px solid var(--accent); outline-offset: 2px; }
  .question { margin: 1.3rem 0 0; min-height: 1.9rem; font: 1.25rem/1.4 "Iowan Old Style", Palatino, Georgia, "Liberation Serif", serif; }
  .says { margin: .3rem 0 0; min-height: 1.5em; }
  .content { display: grid; gap: 2.6rem; margin-top: 2rem; }
  .content > * { min-width: 0; }
  figure { margin: 0; }
  svg { overflow: visible; }
  svg text { font-size: 14px; }
  h2, h3 { margin: 0 0 .7rem; font: 400 1.3rem/1.3 "Iowan Old Style", Palatino, Georgia, "Liberation Serif", serif; }
  h3 { font-size: 1.1rem; }
  figcaption, .soft { margin: .5rem 0 0; max-width: 44rem; color: var(--soft); font-size: .9rem; }
  details { margin-top: .5rem; }
  summary { display: inline-block; padding: .2rem 0; color: var(--accent); cursor: pointer; font-size: .9rem; }
  summary::before { content: "▸ "; } details[open] summary::before { content: "▾ "; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
  caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  th, td { padding: .35rem 1.1rem .35rem 0; border-top: 1px solid var(--line); font-weight: 400; text-align: left; white-space: nowrap; }
  thead th { border-top: 0; color: var(--soft); font-weight: 600; }
  .pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.4rem 2.4rem; align-items: start; }
  .heat :is(th, td) { padding: .15rem; border: 0; }
  .heat tbody th { padding-right: .7rem; }
  .heat button { width: 100%; min-width: 4.6rem; min-height: 3rem; border-color: transparent; border-radius: 6px; font-variant-numeric: tabular-nums; }
  .heat button.strong { font-weight: 700; }
  .heat button[aria-pressed=true] { border-color: var(--ink); box-shadow: inset 0 0 0 1px var(--ink); }
  .means { min-height: 22rem; }
  .factor { max-width: 20rem; margin-bottom: 1rem; }
  @container (max-width: 46rem) { .pair { grid-template-columns: minmax(0, 1fr); } .heat button { min-width: 3.9rem; min-height: 2.7rem; padding: 0 .2rem; font-size: .82rem; } }
`;
