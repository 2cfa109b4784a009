// The flow: every client a strand from its planted group over Phase 1 and its clusters to how it ends.

const FLOW = { width: 900, left: 120, right: 150, bar: 11, top: 34, height: 300, least: 14, gap: 5, tight: 3, most: 40, single: 3000 };

// A column is {title, nodes}, a node {name, colour, members}.

function groupColumn() {
  const groups = planted();
  if (!groups) return [];
  const nodes = groups.members.map((members, i) => ({ name: `group ${i}`, colour: groupColour(i), members }));
  return [{ title: `planted “${short(groups.name, 12)}”`, nodes }];
}

function everybody(name) {
  return [{ name, colour: INK, members: run().clients.map((_, client) => client) }];
}

// After a round of a method that alternates: a node for each model that somebody has, and one for those of whom nothing is known yet.
function modelsColumn(stage) {
  const { way } = measured();
  const nodes = stage.clusters.map((members, i) => {
    const model = stage.models[i];
    return model < 0 ? { name: 'not seen', colour: PALE, members } : { name: way.names[model], colour: modelColour(chosen.contender, model), members };
  });
  return { title: `round ${stage.round}`, nodes };
}

// A cluster on the way to the end has the colour of the final cluster that most of its clients get to.
function stageColumn(stage, i) {
  if (stage.models) return modelsColumn(stage);
  const final = measured().clusters;
  const shared = (members, cluster) => cluster.filter((client) => members.includes(client)).length;
  const nodes = stage.clusters.map((members) => {
    const counts = final.map((cluster) => shared(members, cluster));
    return { name: '', colour: clusterColour(chosen.contender, counts.indexOf(Math.max(...counts))), members };
  });
  return { title: `split ${i + 1} (round ${stage.round})`, nodes };
}

function clusterColumns() {
  const { clusters, stages } = measured();
  if (!clusters) return [];
  const nodes = clusters.map((members, i) => ({ name: `cluster ${i}`, colour: clusterColour(chosen.contender, i), members }));
  return [...stages.map(stageColumn), { title: stages.length ? 'final clusters' : 'clusters', nodes }];
}

function outcomeColumn() {
  const clients = run().clients.map((_, client) => client);
  if (chosen.contender === chosen.reference) return { title: 'end', nodes: [{ name: 'the reference', colour: PALE, members: clients }] };
  const side = (sign) => clients.filter((client) => Math.sign(difference(chosen.contender, client)) === sign);
  const nodes = [
    { name: 'better', colour: BETTER, members: side(1) },
    { name: 'equal', colour: PALE, members: side(0) },
    { name: 'worse', colour: WORSE, members: side(-1) },
  ];
  const reference = REFERENCES[kindOf(chosen.reference)];
  return { title: `against ${reference}`, nodes: nodes.filter(({ members }) => members.length), fixed: true };
}

function flowColumns() {
  const titles = { local: 'alone, from the start', ditto: 'Ditto, from the start' };
  const kind = kindOf(chosen.contender);
  const { way } = measured();
  const start = kind in titles
    ? { title: titles[kind], nodes: everybody('own models') }
    : way && way.start === 'random'
      ? { title: 'start', nodes: everybody('random') }
      : { title: 'Phase 1', nodes: everybody('one model') };
  const columns = [...groupColumn(), start, ...clusterColumns(), outcomeColumn()];
  if (['fedavg', 'fine_tuning'].includes(kind)) {
    columns.splice(-1, 0, { title: 'Phase 2', nodes: everybody('one model') });
  }
  if (kind === 'fine_tuning') {
    columns.splice(-1, 0, { title: 'fine-tuning', nodes: everybody('own models') });
  }
  return columns;
}

// Where everything stands: adds x, y, height to nodes and the place of each client in a node, `slots` {client: [y, height]}.
function layOut(columns) {
  const clients = run().clients.length;
  const count = (column) => {
    const found = new Array(clients).fill(0);
    for (const { members } of column.nodes) for (const client of members) found[client] += 1;
    return found;
  };
  const unit = Math.max(FLOW.height / clients, 0.8);
  let before = null;
  for (const [i, column] of columns.entries()) {
    column.counts = count(column);
    column.x = FLOW.left + (i * (FLOW.width - FLOW.left - FLOW.right)) / Math.max(columns.length - 1, 1);
    place(column, unit, before || ordered().map((client, at) => [client, at]).sort((a, b) => a[0] - b[0]).map(([, at]) => at));
    before = middles(column, clients);
  }
  const bottom = Math.max(...columns.map((column) => column.end));
  for (const column of columns) shift(column, (bottom - column.end) / 2);
  return bottom;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
}

// Nodes in the order of where their clients come from, clients in a node as well: few strands cross.
function place(column, unit, before) {
  const roomy = column.nodes.length <= FLOW.most;
  const from = (node) => mean(node.members.map((client) => before[client]));
  if (!column.fixed) column.nodes.sort((a, b) => from(a) - from(b));
  let y = FLOW.top;
  for (const node of column.nodes) {
    node.height = node.members.reduce((sum, client) => sum + unit / column.counts[client], 0);
    const room = roomy ? Math.max(node.height, FLOW.least) : node.height;
    node.y = y + (room - node.height) / 2;
    node.labelled = room >= FLOW.least - 1;
    node.slots = new Map();
    let at = node.y;
    for (const client of [...node.members].sort((a, b) => before[a] - before[b] || a - b)) {
      node.slots.set(client, [at, unit / column.counts[client]]);
      at += unit / column.counts[client];
    }
    y += room + (roomy ? FLOW.gap : FLOW.tight);
  }
  column.end = y;
}

function middles(column, clients) {
  const found = Array.from({ length: clients }, () => []);
  for (const node of column.nodes) for (const [client, [y, height]] of node.slots) found[client].push(y + height / 2);
  return found.map(mean);
}

function shift(column, by) {
  for (const node of column.nodes) {
    node.y += by;
    for (const slot of node.slots.values()) slot[0] += by;
  }
}

// [{client, from, to, y0, y1, height}] between two columns: one strand for each node that a client is in on either side.
function strands(left, right) {
  const found = [];
  const all = (column, client) => column.nodes.filter((node) => node.slots.has(client));
  for (const client of run().clients.keys()) {
    const [before, after] = [all(left, client), all(right, client)];
    before.forEach((from, i) => after.forEach((to, k) => {
      const [a, whole] = from.slots.get(client);
      const [b, other] = to.slots.get(client);
      const height = Math.min(whole / after.length, other / before.length);
      found.push({ client, from, to, height, y0: a + (k * whole) / after.length, y1: b + (i * other) / before.length });
    }));
  }
  return found;
}

function strandPath(left, right, { y0, y1, height }) {
  const [x0, x1] = [left.x + FLOW.bar, right.x];
  const half = (x0 + x1) / 2;
  const n = (value) => value.toFixed(1);
  return `M${n(x0)} ${n(y0)}C${n(half)} ${n(y0)} ${n(half)} ${n(y1)} ${n(x1)} ${n(y1)}v${height.toFixed(2)}`
    + `C${n(half)} ${n(y1 + height)} ${n(half)} ${n(y0 + height)} ${n(x0)} ${n(y0 + height)}Z`;
}

// By planted group, which shows at a glance what a cluster is made of; by cluster where no groups are known.
function strandColour({ client, from, to }, left) {
  if (!planted()) return [from, to].map((node) => node.colour).find((colour) => colour !== INK) || GREY;
  return left.title.startsWith('planted') ? from.colour : groupColour(groupsOf(client)[0]?.[0]);
}

function drawnStrands(columns) {
  const pairs = columns.slice(1).map((right, i) => ({ left: columns[i], right, all: strands(columns[i], right) }));
  const single = pairs.reduce((sum, { all }) => sum + all.length, 0) <= FLOW.single;
  const drawn = pairs.flatMap(({ left, right, all }) => (single ? all.map((one) => strand(left, right, one)) : bundles(left, right, all)));
  return { pairs, single, drawn };
}

function strand(left, right, one) {
  const mark = svg('path', { d: strandPath(left, right, one), fill: strandColour(one, left), class: 'strand', 'data-client': one.client });
  mark.append(svg('title', {}, `${clientName(one.client)}: ${one.from.name || left.title} to ${one.to.name || right.title}`));
  return mark;
}

// With very many clients one path holds all strands of a colour between two nodes.
function bundles(left, right, all) {
  const found = new Map();
  for (const one of all) {
    const key = [left.nodes.indexOf(one.from), right.nodes.indexOf(one.to), strandColour(one, left)].join();
    const held = found.get(key) || { colour: strandColour(one, left), paths: [] };
    held.paths.push(strandPath(left, right, one));
    found.set(key, held);
  }
  return [...found.values()].map(({ colour, paths }) => svg('path', { d: paths.join(''), fill: colour, class: 'strand bundle' }));
}

function nodeMarks(column, i, last) {
  return column.nodes.flatMap((node) => {
    const size = plural(node.members.length, 'client');
    const bar = svg('rect', { x: column.x.toFixed(1), y: node.y.toFixed(1), width: FLOW.bar, height: Math.max(node.height, 1).toFixed(1), fill: node.colour, class: 'node' });
    bar.append(svg('title', {}, `${node.name || column.title}: ${size}`));
    if (!node.labelled) return [bar];
    const y = (node.y + node.height / 2 + 4).toFixed(1);
    const label = node.name ? `${node.name}: ${node.members.length}` : String(node.members.length);
    const first = i === 0 && !last;
    const x = first ? column.x - 6 : column.x + FLOW.bar + 5;
    return [bar, text(x.toFixed(1), y, label, { class: first ? 'node-name left' : 'node-name' })];
  });
}

function drawFlow() {
  const columns = flowColumns();
  const bottom = layOut(columns);
  const { pairs, single, drawn } = drawnStrands(columns);
  const titles = columns.map(({ x, title }) => text((x + FLOW.bar / 2).toFixed(1), 14, title, { class: 'stage' }));
  const nodes = columns.flatMap((column, i) => nodeMarks(column, i, i === columns.length - 1));
  const own = svg('g', { class: 'own-strands' });
  const made = picture('Membership flow', FLOW.width, Math.ceil(bottom + 6), ...drawn, own, ...nodes, ...titles);
  drawFlow.last = { pairs, single, own };
  const overlap = measured().memberships > 1 ? ' A client of several clusters has as many thin strands.' : '';
  words('flow', `Every client is a strand${planted() ? ', coloured by its planted group' : ''}; it ends with its accuracy under ${contenderName()} `
    + `against ${contenderName(chosen.reference)}, at ${DATA.budgets[chosen.budget]}.${overlap}`);
  show('flow', made);
  drawFlowOfClient();
}

// Where strands are bundled, those of the chosen client are drawn over them.
function drawFlowOfClient() {
  const { pairs, single, own } = drawFlow.last;
  const mine = ({ client }) => client === chosen.client;
  const found = single ? [] : pairs.flatMap(({ left, right, all }) => all.filter(mine).map((one) => strand(left, right, one)));
  own.replaceChildren(...found);
}
