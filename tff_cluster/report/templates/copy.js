// Buttons below every table: copy it as CSV or as LaTeX. ESCAPES and LONGEST stand before this text, see pages.py.
(() => {
  const FORMULA = /^[=+\-@\t\r\n]/, NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;

  // A cell is its words, with its notes (blocks of their own) behind them in parentheses.
  function parts(cell) {
    const notes = Array.from(cell.querySelectorAll(':scope > div'), (note) => note.textContent);
    const words = Array.from(cell.childNodes).filter((node) => node.nodeName !== 'DIV').map((node) => node.textContent).join('');
    return [words, notes.join('; ')];
  }
  const joined = (words, notes) => [words, notes && `(${notes})`].filter(Boolean).join(' ');
  const lines = (table, part) => Array.from(table.querySelectorAll(`${part} tr`), (row) => Array.from(row.cells));

  function csvField(text) {
    const plain = text.replace(/^\u2212(?=[0-9.]+$)/, '-');
    const safe = FORMULA.test(plain) && !NUMBER.test(plain) ? `'${plain}` : plain;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }
  function csv(table) {
    return lines(table, '').map((row) => row.map((cell) => csvField(joined(...parts(cell)))).join(',') + '\r\n').join('');
  }

  const escaped = (text) => Array.from(text.replace(/[\x00-\x1f\x7f-\x9f]/g, ' '), (c) => ESCAPES[c] ?? c).join('');
  const texRow = (cells) => { const line = cells.join(' & '); return `${/^[[*]/.test(line) ? '{}' : ''}${line} \\\\`; };
  function latex(table) {
    const head = lines(table, 'thead')[0];
    const rows = lines(table, 'tbody').map((row) => row.map((cell) => joined(...parts(cell).map(escaped))));
    const column = (cell, k) => (cell.classList.contains('n') ? 'r'
      : rows.some((row) => Array.from(row[k]).length > LONGEST) ? 'p{0.3\\linewidth}' : 'l');
    const caption = table.caption ? [`\\caption{${escaped(table.caption.textContent)}}`] : [];
    return ['% Needs \\usepackage{booktabs}.', '\\begin{table}', '\\centering', ...caption,
      `\\begin{tabular}{${head.map(column).join('')}}`, '\\toprule', texRow(head.map((cell) => escaped(cell.textContent))),
      '\\midrule', ...rows.map(texRow), '\\bottomrule', '\\end{tabular}', '\\end{table}', ''].join('\n');
  }

  // A page from a plain http address has no clipboard of its own: there a text is selected and copied as a person would.
  async function toClipboard(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.body.appendChild(document.createElement('textarea'));
      area.value = text;
      area.select();
      document.execCommand('copy');
      area.remove();
    }
  }
  function button(form, make, table, name) {
    const made = document.createElement('button');
    Object.assign(made, { type: 'button', textContent: `Copy as ${form}` });
    made.setAttribute('aria-label', `Copy as ${form}: ${name}`);
    made.addEventListener('click', async () => {
      await toClipboard(make(table));
      made.focus();
      said.textContent = `Copied ${name} as ${form}.`;
      made.textContent = 'Copied';
      setTimeout(() => { made.textContent = `Copy as ${form}`; }, 1500);
    });
    return made;
  }

  const said = document.body.appendChild(document.createElement('p'));
  said.className = 'unseen';
  said.setAttribute('role', 'status');
  // Keys must reach what is to be scrolled.
  const watch = new ResizeObserver((found) => found.forEach(({ target }) => {
    target.toggleAttribute('tabindex', false);
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
  }));
  document.querySelectorAll('.scroll, figure').forEach((box) => watch.observe(box));
  document.querySelectorAll('.scroll').forEach((box, k) => {
    const table = box.querySelector('table');
    const name = table.caption ? `“${table.caption.textContent}”` : `table ${k + 1}`;
    const bar = document.createElement('div');
    bar.className = 'copy';
    bar.append(button('CSV', csv, table, name), button('LaTeX', latex, table, name));
    box.after(bar);
  });
})();
