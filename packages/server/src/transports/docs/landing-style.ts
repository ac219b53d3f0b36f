/** The colours, fonts and shapes of the dashboard (`app/style/tokens.css` there; a test compares them). */
export const LANDING_STYLE = `
:root { color-scheme: light dark; --paper: light-dark(#f8f5ef, #151310); --panel: light-dark(#fffefb, #1d1a16);
  --sunken: light-dark(#f1ece2, #110f0d); --line: light-dark(#e3dbcc, #332d26); --line-strong: light-dark(#8d8371, #7d7365);
  --ink: light-dark(#221d16, #efe9df); --soft: light-dark(#655c4e, #ada392); --accent: light-dark(#8f4a0b, #e8b36a);
  --good: light-dark(#256b45, #79c99b); --good-wash: light-dark(#e0efe4, #1b2d22);
  --bad: light-dark(#a32b20, #f2928a); --bad-wash: light-dark(#f9e3df, #3a1e1b);
  --sans: ui-sans-serif, system-ui, -apple-system, 'Segoe UI', 'Inter', 'Noto Sans', 'DejaVu Sans', sans-serif;
  --mono: ui-monospace, 'SF Mono', 'JetBrains Mono', 'Cascadia Code', 'Noto Sans Mono', 'DejaVu Sans Mono', monospace; }
:root[data-theme=light] { color-scheme: light; } :root[data-theme=dark] { color-scheme: dark; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 var(--sans); }
main { display: grid; gap: 18px; max-width: 54rem; margin: 0 auto; padding: 30px 20px 72px; overflow-wrap: anywhere; }
h1, h2, h3, p, ul { margin: 0; padding: 0; }
h1 { display: flex; align-items: center; gap: 9px; font-size: 1.6rem; font-weight: 650; letter-spacing: -.02em; }
h1 svg { fill: none; stroke: var(--accent); stroke-width: 1.8; stroke-linejoin: round; }
h1 small { color: var(--soft); font-size: .9rem; font-weight: 400; letter-spacing: 0; }
h2 { font-size: 1rem; font-weight: 620; } h3 { font-size: .83rem; font-weight: 400; color: var(--soft); }
header { display: grid; justify-items: start; gap: 10px; }
.panel { display: grid; gap: 14px; min-width: 0; padding: 14px 18px 18px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--panel); }
.state { display: inline-flex; align-items: center; gap: 7px; padding: 2px 10px 2px 8px; border-radius: 99px; font-size: .83rem;
  font-weight: 560; }
.state::before { content: ''; flex: none; width: 8px; height: 8px; border-radius: 50%; background: currentColor; }
.good { background: var(--good-wash); color: var(--good); } .bad { background: var(--bad-wash); color: var(--bad); }
.links { list-style: none; } .links li { display: flex; flex-wrap: wrap; gap: 2px 12px; padding: 8px 0;
  border-top: 1px solid var(--line); } .links li:first-child { border: 0; }
.links span { margin-left: auto; } .links span, .links a + code { color: var(--soft); } .links code { align-self: center; }
a { color: var(--accent); text-underline-offset: 3px; text-decoration-thickness: 1px; }
a:focus-visible, pre:focus-visible, button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
code, pre { font-family: var(--mono); font-size: .86em; }
.code { border: 1px solid var(--line); border-radius: 7px; background: var(--sunken); min-width: 0; }
.code header { display: flex; align-items: center; justify-content: space-between; min-height: 38px; padding: 2px 4px 2px 13px;
  border-bottom: 1px solid var(--line); }
pre { margin: 0; padding: 11px 13px; line-height: 1.55; white-space: pre-wrap; }
button { flex: none; min-height: 30px; padding: 3px 10px; border: 1px solid transparent; border-radius: 7px; background: none;
  color: var(--ink); font: inherit; font-size: .87rem; cursor: pointer; } button:hover { background: var(--panel); }
@media (max-width: 30rem) { main { padding-top: 20px; } .links span { margin-left: 0; flex: 100%; } }
`;

/**
 * Copies the lines beside a button. Over plain HTTP browsers have no clipboard API; there the script selects the
 * lines and uses the copy command. Applies the theme chosen in the dashboard.
 */
export const LANDING_SCRIPT = `
const theme = (() => { try { return localStorage.getItem('theme'); } catch { return null; } })();
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
const copy = async (lines) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(lines.textContent);
  getSelection().selectAllChildren(lines);
  if (!document.execCommand('copy')) throw new Error('refused');
};
addEventListener('DOMContentLoaded', () => {
  for (const button of document.querySelectorAll('button')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      const lines = document.getElementById(button.dataset.copies);
      const say = (word) => { button.firstElementChild.textContent = word; setTimeout(() => { button.firstElementChild.textContent = 'Copy'; }, 1500); };
      await copy(lines).then(() => say('Copied'), () => { getSelection().selectAllChildren(lines); say('Press Ctrl-C'); });
    });
  }
});
`;
