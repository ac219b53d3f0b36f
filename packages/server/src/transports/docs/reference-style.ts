export const REFERENCE_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#dde1e6, #333a44); --soft: light-dark(#f5f7f9, #1b1f26);
  --text: light-dark(#1c2430, #e4e8ee); --dim: light-dark(#5c6773, #9aa4b1); --page: light-dark(#fff, #13161b); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 1fr); background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); }
nav h1 { font-size: 1.1rem; margin: 0 0 1rem; }
nav a { display: flex; justify-content: space-between; padding: .25rem .5rem; border-radius: 6px; color: inherit;
  text-decoration: none; }
nav a:hover { background: var(--soft); }
nav a span { color: var(--dim); }
nav input { width: 100%; margin-bottom: 1rem; padding: .4rem .6rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--soft); color: inherit; font: inherit; }
main { padding: 2rem 2.5rem 6rem; max-width: 62rem; }
h2 { margin: 2.5rem 0 .75rem; text-transform: capitalize; }
h4 { margin: 1rem 0 .25rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { padding: .75rem 1rem; background: var(--soft); border-radius: 8px; overflow: auto; }
main > section > details { border: 1px solid var(--line); border-radius: 8px; margin: .5rem 0; padding: 0 1rem; }
main > section > details[open] { padding-bottom: 1rem; }
summary { cursor: pointer; padding: .6rem 0; overflow-wrap: anywhere; }
summary b { display: inline-block; min-width: 4.2rem; font: 700 12px/1.6 ui-monospace, monospace; }
summary span { color: var(--dim); margin-left: .5rem; }
.get > summary b { color: light-dark(#0a6d3d, #5bd396); } .post > summary b { color: light-dark(#0b55b8, #7bb0ff); }
.put > summary b, .patch > summary b { color: light-dark(#8a5700, #f0b656); }
.delete > summary b { color: light-dark(#b3261e, #ff8f86); }
table { width: 100%; border-collapse: collapse; }
td { padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td:first-child { width: 26%; } td:nth-child(2) { width: 24%; color: var(--dim); }
td details summary { padding: 0; color: var(--dim); }
ul { padding-left: 1.1rem; } .role, i { color: var(--dim); }
nav a:focus-visible, summary:focus-visible { outline: 2px solid light-dark(#0b55b8, #7bb0ff); outline-offset: 2px; }
@media (max-width: 50rem) { body { display: block; }
  nav { position: static; height: auto; border: 0; display: flex; flex-wrap: wrap; } nav h1, nav input { flex: 100%; }
  nav a { gap: .35rem; }
  main { padding: 1rem; } td { display: block; width: auto !important; border: 0; padding: 0; }
  tr { display: block; border-top: 1px solid var(--line); padding: .4rem 0; } }
`;

/** Filters the list; keeps the operation that was opened last in the address, and opens the one in the address. */
export const REFERENCE_SCRIPT = `
const filter = document.getElementById('filter');
const open = () => { const target = document.getElementById(location.hash.slice(1)); if (target?.tagName === 'DETAILS') target.open = true; };
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\\s+/);
  for (const item of document.querySelectorAll('main > section > details')) {
    const text = item.querySelector('summary').textContent.toLowerCase() + item.id.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll('main > section')) {
    section.hidden = section.querySelector('details:not([hidden])') === null;
  }
});
for (const item of document.querySelectorAll('main > section > details')) {
  item.addEventListener('toggle', () => { if (item.open) history.replaceState(null, '', '#' + item.id); });
}
addEventListener('hashchange', open);
open();
`;
