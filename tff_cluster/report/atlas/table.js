// The table of contenders.

const sorting = { column: 0, down: false };

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
    column(`at ${percent(DATA.target, 0)}`, (i) => at(i).at_target, (v) => percent(v), 'Share of clients at the target accuracy'),
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
    column('client-rounds', (i) => at(i).client_rounds, (v) => v.toLocaleString('en'), 'Client-rounds of Phase 2'),
    column('bytes', (i) => at(i).bytes, (v) => size(v), 'Bytes sent in Phase 2, up and down'),
    column('all seeds: mean', (i) => summary(i).mean, (v) => percent(v), 'Mean over all seeds'),
    column(
      `all seeds: − ${reference}`, (i) => orNull(overAll(i)?.mean), (v, i) => interval(v, overAll(i)),
      'Difference over all seeds with its 95% interval',
    ),
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

function sortedContenders(all) {
  const rows = DATA.contenders.map((_, i) => i);
  if (!sorting.column && !sorting.down && !sorting.asked) return rows;
  const { value } = all[sorting.column];
  return rows.sort((a, b) => compare(value(a), value(b), sorting.down) || a - b);
}

function sortBy(index, numeric) {
  const again = sorting.asked && sorting.column === index;
  Object.assign(sorting, { column: index, down: again ? !sorting.down : numeric, asked: true });
  drawTable();
  document.querySelectorAll('#contenders th button')[index].focus();
}

function headerCell({ title, about, numeric }, index) {
  const button = html('button', { type: 'button', title: about }, title);
  button.addEventListener('click', () => sortBy(index, numeric));
  const isSorted = sorting.asked && sorting.column === index;
  const order = isSorted ? (sorting.down ? 'descending' : 'ascending') : 'none';
  return html('th', { scope: 'col', class: numeric ? 'n' : null, 'aria-sort': order }, button);
}

function contenderRow(i, all) {
  const isChosen = i === chosen.contender;
  const cells = all.slice(1).map(({ value, shown, numeric }) => {
    const found = value(i);
    return html('td', { class: numeric ? 'n' : null }, found === null ? '–' : shown(found, i));
  });
  const name = html('button', { type: 'button', id: `contender-${i}`, 'aria-pressed': isChosen }, contenderName(i));
  const row = html('tr', { 'data-contender': i, class: isChosen ? 'current' : null }, html('td', {}, name), ...cells);
  row.addEventListener('click', () => choose({ contender: i }));
  return row;
}

function drawTable() {
  const all = columns();
  sorting.column = Math.min(sorting.column, all.length - 1);
  const header = html('tr', {}, ...all.map(headerCell));
  const body = sortedContenders(all).map((i) => contenderRow(i, all));
  show('contenders', html('table', {}, html('thead', {}, header), html('tbody', {}, ...body)));
}
