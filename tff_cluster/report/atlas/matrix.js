// The harm map: a row a contender, a column a client, coloured by accuracy minus that of the reference.

const MATRIX = { width: 900, names: 168, most: 100, widest: 36, row: 20, top: 14 };

// Equal is grey; else the nearer to the ground of the page the smaller, and full from the limit on.
function differenceColour(value, limit) {
  if (value === 0) return { fill: PALE };
  return { fill: value > 0 ? BETTER : WORSE, 'fill-opacity': (0.14 + 0.86 * Math.min(Math.abs(value) / limit, 1)).toFixed(3) };
}

// Nineteen of twenty differences of all seeds and budgets are below it, so that all views have one scale.
function limitOf(reference) {
  const all = [];
  for (const one of DATA.runs) {
    for (const budget of Object.keys(DATA.budgets)) {
      const base = one.contenders[reference].budgets[budget].accuracy;
      for (const [i, contender] of one.contenders.entries()) {
        if (i !== reference) contender.budgets[budget].accuracy.forEach((value, k) => all.push(Math.abs(value - base[k])));
      }
    }
  }
  all.sort((a, b) => a - b);
  const high = all.length ? all[Math.min(Math.floor(0.95 * all.length), all.length - 1)] : 0;
  return Math.max(Math.ceil(20 * high - 1e-9) / 20, 0.05);
}

function matrixLegend(limit) {
  const shares = [-1, -0.5, -0.1, 0, 0.1, 0.5, 1];
  const label = (share) => (share === 0 ? 'equal' : `${signed(share * limit, limit < 0.1 ? 1 : 0)}${Math.abs(share) === 1 ? ' and beyond' : ''}`);
  const cells = shares.map((share) => {
    const mark = svg('svg', { width: 16, height: 12 });
    mark.append(svg('rect', { width: 16, height: 12, ...differenceColour(share * limit, limit) }));
    return html('li', {}, mark, label(share));
  });
  return html('ul', { class: 'legend' }, html('li', {}, 'points:'), ...cells);
}

function cellWords(contender, client) {
  const value = `${percent(accuracy(contender, client))}, ${signed(difference(contender, client))} points`;
  return `${clientName(client)}, ${contenderName(contender)}: ${value}`;
}

// Black text, white on what is almost full blue: of the two, the one that has contrast (orange is too bright for white).
function cellNumber(value, limit, x, y) {
  return text(x, y, signed(value, 0), { class: value > 0.92 * limit ? 'cell-number on-full' : 'cell-number', 'aria-hidden': 'true' });
}

function cell(contender, client, x, y, width, limit) {
  const value = difference(contender, client);
  const mark = svg('g', {}, svg('rect', {
    x: x.toFixed(2), y, width: Math.max(width - (width > 5 ? 1 : 0), 0.5).toFixed(2), height: MATRIX.row - 2, ...differenceColour(value, limit),
  }));
  const told = markClient(mark, client, cellWords(contender, client));
  if (width < 24) return told;
  mark.append(cellNumber(value, limit, (x + width / 2 - 0.5).toFixed(2), y + 13));
  // Who speaks to the browser says what stands there.
  return fill(told, { 'aria-label': `${signed(value, 0)}: ${cellWords(contender, client)}` }, []);
}

function rowName(contender, y) {
  const current = contender === chosen.contender ? 'row-name current' : 'row-name';
  const name = text(MATRIX.names - 8, y + 13, short(contenderName(contender), 24), { class: current });
  name.append(svg('title', {}, contenderName(contender)));
  name.addEventListener('click', () => choose({ contender }));
  return name;
}

// The planted groups above the columns, a client of several in several colours.
function groupStrip(client, x, width) {
  const groups = groupsOf(client);
  const height = 7 / Math.max(groups.length, 1);
  return groups.map(([group], i) => svg('rect', {
    x: x.toFixed(2), y: (2 + i * height).toFixed(2), width: Math.max(width - (width > 5 ? 1 : 0), 0.5).toFixed(2), height: height.toFixed(2), fill: groupColour(group),
  }));
}

function columnNames(clients, width, y) {
  const longest = width >= 24 ? 4 : 0;
  const fits = longest && clients.every((client) => [...clientName(client)].length <= longest);
  // Where names do not fit beside each other they stand upright; where not even that, the titles have them.
  return clients.map((client, i) => {
    const x = MATRIX.names + (i + 0.5) * width;
    if (fits) return text(x.toFixed(2), y + 12, clientName(client), { class: 'column-name', 'data-client': client });
    const at = { class: 'column-name upright', transform: `rotate(-90 ${(x + 3.5).toFixed(2)} ${y + 4})`, 'data-client': client };
    return width < 8.5 ? null : text((x + 3.5).toFixed(2), y + 4, short(clientName(client), 12), at);
  });
}

function block(clients, width, limit) {
  const contenders = DATA.contenders.map((_, i) => i).filter((i) => i !== chosen.reference);
  const bottom = MATRIX.top + contenders.length * MATRIX.row;
  const upright = width >= 8.5 && !(width >= 24 && clients.every((client) => [...clientName(client)].length <= 4));
  const height = bottom + (width < 8.5 ? 4 : upright ? 78 : 18);
  const strips = clients.flatMap((client, i) => groupStrip(client, MATRIX.names + i * width, width));
  const rows = contenders.flatMap((contender, row) => [
    rowName(contender, MATRIX.top + row * MATRIX.row),
    ...clients.map((client, i) => cell(contender, client, MATRIX.names + i * width, MATRIX.top + row * MATRIX.row, width, limit)),
  ]);
  const label = planted() ? [text(MATRIX.names - 8, 9, 'planted group', { class: 'row-name note' })] : [];
  const made = picture(
    `Differences of ${plural(clients.length, 'client')}`, MATRIX.width, height, ...label, ...strips, ...rows, ...columnNames(clients, width, bottom),
  );
  made.dataset.columns = clients.length;
  return made;
}

function drawMatrix() {
  const clients = ordered();
  const limit = limitOf(chosen.reference);
  const blocks = Math.ceil(clients.length / MATRIX.most);
  const each = Math.ceil(clients.length / blocks);
  const width = Math.min((MATRIX.width - MATRIX.names) / each, MATRIX.widest);
  const drawn = Array.from({ length: blocks }, (_, i) => block(clients.slice(i * each, (i + 1) * each), width, limit));
  words('matrix', `Accuracy of each client minus its accuracy with ${contenderName(chosen.reference)}, in points, at ${DATA.budgets[chosen.budget]}: `
    + `blue is better off, orange is worse off, grey is equal.${planted() ? ' Clients stand by planted group, then as in the data.' : ''}`);
  show('matrix', matrixLegend(limit), html('div', { class: 'blocks' }, ...drawn));
}
