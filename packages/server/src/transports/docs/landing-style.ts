export const LANDING_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#dde1e6, #333a44); --soft: light-dark(#f5f7f9, #1b1f26);
  --text: light-dark(#1c2430, #e4e8ee); --dim: light-dark(#5c6773, #9aa4b1); --page: light-dark(#fff, #13161b);
  --link: light-dark(#0b55b8, #7bb0ff); --good: light-dark(#0a6d3d, #5bd396); --bad: light-dark(#b3261e, #ff8f86); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.25rem 5rem; overflow-wrap: anywhere; }
h1 { font-size: 2rem; margin: 0 0 .25rem; } h1 small { font-size: .9rem; font-weight: 400; color: var(--dim); }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .35rem; }
.state::before { content: ''; display: inline-block; width: .6rem; height: .6rem; border-radius: 50%;
  margin-right: .5rem; background: currentColor; }
.good { color: var(--good); } .bad { color: var(--bad); }
.links { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
.links li { display: flex; flex-wrap: wrap; gap: .1rem .75rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
.links span { color: var(--dim); margin-left: auto; }
a { color: var(--link); } a:focus-visible, pre:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre { font: 14px/1.55 ui-monospace, monospace; } .links code { color: var(--dim); align-self: center; }
pre { margin: 0; padding: .75rem 1rem; background: var(--soft); border: 1px solid var(--line); border-radius: 8px;
  white-space: pre-wrap; user-select: all; }
@media (max-width: 30rem) { main { padding-top: 1.5rem; } .links span { margin-left: 0; flex: 100%; } }
`;
