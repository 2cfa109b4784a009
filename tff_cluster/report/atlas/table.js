// The tables of contenders and of what they cost.

const TABLES = { contenders: columns, costs: costColumns };
const sortings = Object.fromEntries(Object.keys(TABLES).map((name) => [name, { column: 0, down: false }]));

function column(title, value, shown, about, numeric = true) {
  return { title, value, shown, about, numeric };
}

function columns() {
  const at = (i) => measured(i).budgets[chosen.budget];
  const over = (i) => (i === chosen.reference ? null : at(i).mean - at(chosen.reference).mean);
  const harmed = (i) => (i === chosen.reference ? null : at(i)[`harmed_${kindOf(chosen.reference)}`]);
  const summary = (i) => DATA.contenders[i].summaries[chosen.budget];
  const overAll = (i) => summary(i)[`over_${kindOf(chosen.reference)}`];
  const truths = [...new Set(DATA.contenders.flatMap((contender) => Object.keys(contender.recovery)))];
  const orNull = (value) => (value === undefined ? null : value);
  const reference = REFERENCES[kindOf(chosen.reference)];
  return [
    column('contender', (i) => DATA.contenders[i].name, (value) => value, 'Sort by name', false),
    column('kind', kindsOf, (value) => value, 'Sort by kind', false),
    column('mean', (i) => at(i).mean, (v) => percent(v), 'Mean accuracy of the clients, this seed'),
    column('worst decile', (i) => at(i).worst_decile, (v) => percent(v), 'Mean of the lowest tenth of clients'),
    column(`at ${Number((100 * DATA.target).toPrecision(6))}%`, (i) => at(i).at_target, (v) => percent(v), 'Share of clients at the target accuracy'),
    column(`− ${reference}`, over, (v) => signed(v), 'Difference to the reference in points, this seed'),
    column('harmed', harmed, (v) => percent(v), 'Share of clients that are worse off than with the reference'),
    column('clusters', (i) => measured(i).num_clusters, (v) => String(v), 'Number of clusters'),
    column('member\u00adships', (i) => measured(i).memberships, (v) => v.toFixed(1), 'Mean number of clusters of a client'),
    ...truths.map((truth) => column(
      `“${truth}” found`,
      (i) => orNull(DATA.contenders[i].recovery[truth]?.values[chosen.run]),
      (v, i) => `${score(v)} ${DATA.contenders[i].recovery[truth].measure}`,
      'How well the planted groups are found: 1 is exactly',
    )),
    column('all seeds: mean', (i) => summary(i).mean, (v) => percent(v), 'Mean over all seeds'),
    column(
      `all seeds: − ${reference}`, (i) => orNull(overAll(i)?.mean), (v, i) => interval(v, overAll(i)),
      'Difference over all seeds with its 95% interval',
    ),
  ];
}

function costColumns() {
  const at = (name) => (i) => measured(i).budgets[chosen.budget][name];
  const count = (v) => v.toLocaleString('en');
  return [
    column('contender', (i) => DATA.contenders[i].name, (value) => value, 'Sort by name', false),
    column('client-rounds', at('client_rounds'), count, 'Local trainings of a client and a model'),
    column('models down', at('models_down'), count, 'Models that clients received'),
    column('models up', at('models_up'), count, 'Models, or vectors in their place, that clients sent'),
    column('bytes down', at('bytes_down'), (v) => size(v), 'Bytes that clients received'),
    column('bytes up', at('bytes_up'), (v) => size(v), 'Bytes that clients sent'),
    column('rows trained', at('rows_trained'), count, 'Rows that clients trained on, as often as they were visited'),
    column('rows forward', at('rows_forward'), count, 'Rows that only went through a model'),
    column('passes', at('passes'), count, 'Rows through a model, one that is trained on counted as three'),
  ];
}

function interval(mean, { low, high }) {
  const range = low === null ? null : html('span', { class: 'note' }, ` (${signed(low)} to ${signed(high)})`);
  return html('span', {}, signed(mean), range || '');
}

// Missing values stay at the end, whichever way the table is sorted.
function compare(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const way = typeof a === 'string' ? a.localeCompare(b, 'en') : a - b;
  return down ? -way : way;
}

function sortedContenders(all, sorting) {
  const rows = DATA.contenders.map((_, i) => i);
  if (!sorting.column && !sorting.down && !sorting.asked) return rows;
  const { value } = all[sorting.column];
  return rows.sort((a, b) => compare(value(a), value(b), sorting.down) || a - b);
}

function sortBy(name, index, numeric) {
  const sorting = sortings[name];
  const again = sorting.asked && sorting.column === index;
  Object.assign(sorting, { column: index, down: again ? !sorting.down : numeric, asked: true });
  drawTable(name);
  document.querySelectorAll(`#${name} th button`)[index].focus();
}

function headerCell(name, { title, about, numeric }, index) {
  const sorting = sortings[name];
  const button = html('button', { type: 'button', title: about }, title);
  button.addEventListener('click', () => sortBy(name, index, numeric));
  const isSorted = sorting.asked && sorting.column === index;
  const order = isSorted ? (sorting.down ? 'descending' : 'ascending') : 'none';
  return html('th', { scope: 'col', class: numeric ? 'n' : null, 'aria-sort': order }, button);
}

function contenderRow(table, i, all) {
  const isChosen = i === chosen.contender;
  const cells = all.slice(1).map(({ value, shown, numeric }) => {
    const found = value(i);
    return html('td', { class: numeric ? 'n' : null }, found === null ? '–' : shown(found, i));
  });
  const name = html('button', { type: 'button', id: `${table}-${i}`, 'aria-pressed': isChosen }, contenderName(i));
  const row = html('tr', { 'data-contender': i, class: isChosen ? 'current' : null }, html('td', {}, name), ...cells);
  row.addEventListener('click', () => choose({ contender: i }));
  return row;
}

function drawTable(name) {
  const [all, sorting] = [TABLES[name](), sortings[name]];
  sorting.column = Math.min(sorting.column, all.length - 1);
  const header = html('tr', {}, ...all.map((one, index) => headerCell(name, one, index)));
  const body = sortedContenders(all, sorting).map((i) => contenderRow(name, i, all));
  show(name, html('table', {}, html('thead', {}, header), html('tbody', {}, ...body)));
}

function drawTables() {
  Object.keys(TABLES).forEach(drawTable);
}
