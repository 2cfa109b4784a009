"""The style sheet of report.html: readable on a screen, in the dark and on paper, and without a network."""

CSS = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #57606a; --line: #d8dee4; --page: #ffffff;
  --card: #f6f8fa; --accent: #0a58a6; --good: #11622f; --goodbg: #dff3e4; --bad: #a3221f; --badbg: #fbe3e1;
  --warn: #6b4a00; --warnbg: #fff3d1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #a6afb9; --line: #3a4149; --page: #16191d;
  --card: #20252b; --accent: #7db8f2; --good: #8fdcaa; --goodbg: #153322; --bad: #ffaba5; --badbg: #451d1b;
  --warn: #f2cf80; --warnbg: #3b2f12; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.55; font-size: 16px;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .8rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.06rem; margin: 2rem 0 .5rem; }
p, li { max-width: 46rem; } p { margin: .5rem 0 .8rem; }
a { color: var(--accent); }
.soft, .sub { color: var(--soft); } .sub { margin: 0 0 1.4rem; }
.lead { font-size: 1.16rem; line-height: 1.45; font-weight: 600; max-width: 50rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1.1rem; margin: 1rem 0; }
.card h3 { margin-top: .1rem; } .card p { max-width: none; margin: .35rem 0; }
.alarm { background: var(--warnbg); color: var(--warn); border-radius: 6px; padding: .5rem .8rem; margin: .6rem 0 0; }
.alarm strong { font-weight: 700; } .alarm + p:not(.alarm) { margin-top: 1rem; }
nav ol { margin: .3rem 0 0; padding-left: 1.4rem; columns: 2; column-gap: 2rem; } nav li { break-inside: avoid; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .2rem 0 .4rem; }
th, td { text-align: left; vertical-align: top; padding: .36rem .7rem .36rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th.n, td.n { text-align: right; white-space: nowrap; padding-left: .5rem; }
td.n + td:not(.n), th.n + th:not(.n) { padding-left: .7rem; }
.note { color: var(--soft); font-size: .84rem; }
.chip { display: inline-block; border-radius: 4px; padding: 0 .45rem; font-weight: 600; white-space: nowrap; }
.good { color: var(--good); background: var(--goodbg); } .bad { color: var(--bad); background: var(--badbg); }
.warn { color: var(--warn); background: var(--warnbg); } .none { color: var(--soft); background: rgba(128, 128, 128, .16); }
figure { margin: 1.2rem 0 1.8rem; break-inside: avoid; }
figure img { display: block; max-width: 100%; height: auto; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; padding: .5rem; }
@media (prefers-color-scheme: dark) { figure img { filter: brightness(.9); } }
figcaption { color: var(--soft); font-size: .88rem; max-width: 48rem; margin-top: .45rem; }
figcaption strong { color: var(--ink); }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto;
  font-size: .86rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
details { margin: .6rem 0 1rem; } summary { cursor: pointer; color: var(--accent); }
.members { overflow-wrap: anywhere; }
@media (max-width: 40rem) { nav ol { columns: 1; } }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --page: #fff; --card: #f6f6f6; --accent: #000;
  --good: #11622f; --goodbg: #fff; --bad: #a3221f; --badbg: #fff; --warn: #5c4000; --warnbg: #fff; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; } h2 { break-after: avoid; } h3 { break-after: avoid; }
  .scroll { overflow: visible; } tr { break-inside: avoid; } figure img { border: none; padding: 0; max-height: 21cm; filter: none; }
  .card { break-inside: avoid; } .alarm { border: 1px solid #bbb; } }
"""
