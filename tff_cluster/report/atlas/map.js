// The map: clients where classical scaling of their signatures puts them, filled by cluster, ringed by planted group.

// On a narrow screen the map is as wide as that, and its circles stay as large.
const MAP = { width: 900, widest: 900, least: 320, height: 460, margin: 26 };

// The geometry of what the contender was clustered by; of something else where the run keeps only that.
function geometryOf(contender) {
  const known = run().geometry;
  const names = Object.keys(known);
  if (!names.length) return null;
  const own = measured(contender).signature;
  const name = own !== null && Object.hasOwn(known, own) ? own : names[0];
  return { name, ...known[name] };
}

function radius() {
  const clients = run().clients.length;
  return clients <= 60 ? 9 : clients <= 250 ? 6.5 : 4;
}

// One unit is the same length both ways: distances in the picture are what it is about.
function placed(positions) {
  const ends = [0, 1].map((axis) => {
    const all = positions.map((position) => position[axis]);
    return [Math.min(...all), Math.max(...all)];
  });
  const room = [MAP.width - 2 * MAP.margin, MAP.height - 2 * MAP.margin];
  const scale = Math.min(...ends.map(([low, high], axis) => room[axis] / (high - low || 1e-9)), 1e9);
  const centre = [MAP.width / 2, MAP.height / 2];
  return positions.map((position) => position.map((value, axis) => {
    const offset = scale * (value - (ends[axis][0] + ends[axis][1]) / 2);
    return centre[axis] + (Number.isFinite(offset) ? offset : 0) * (axis ? -1 : 1);
  }));
}

// Moves circles that would hide each other apart, no further than they have to go.
function apart(points, least) {
  const found = points.map((point) => [...point]);
  // Thousands hide each other wherever they go, and every pair takes its time.
  const rounds = points.length > 2000 ? 0 : points.length > 400 ? 12 : 60;
  for (let round = 0; round < rounds; round += 1) {
    for (let i = 0; i < found.length; i += 1) for (let j = 0; j < i; j += 1) push(found[i], found[j], least, i + j);
  }
  for (const point of found) {
    point[0] = Math.min(Math.max(point[0], MAP.margin / 2), MAP.width - MAP.margin / 2);
    point[1] = Math.min(Math.max(point[1], MAP.margin / 2), MAP.height - MAP.margin / 2);
  }
  return found;
}

function push(a, b, least, turn) {
  const [x, y] = [a[0] - b[0], a[1] - b[1]];
  const far = Math.hypot(x, y);
  if (far >= least) return;
  // Two in one place go apart in a direction that depends on which two they are.
  const [ux, uy] = far > 1e-6 ? [x / far, y / far] : [Math.cos(turn), Math.sin(turn)];
  const half = (least - far) / 2;
  a[0] += ux * half;
  a[1] += uy * half;
  b[0] -= ux * half;
  b[1] -= uy * half;
}

function arcPoint(r, share) {
  const angle = 2 * Math.PI * share - Math.PI / 2;
  return `${(r * Math.cos(angle)).toFixed(2)} ${(r * Math.sin(angle)).toFixed(2)}`;
}

function wedge(r, from, to, colour) {
  const large = to - from > 0.5 ? 1 : 0;
  return svg('path', { d: `M0 0L${arcPoint(r, from)}A${r} ${r} 0 ${large} 1 ${arcPoint(r, to)}Z`, fill: colour, class: 'wedge' });
}

// Parts `[[colour, share]]`, shares add up to 1.
function pie(r, parts) {
  if (parts.length === 1) return [svg('circle', { r, fill: parts[0][0] })];
  let done = 0;
  return parts.map(([colour, share]) => wedge(r, done, (done += share), colour));
}

function ring(r, parts) {
  if (parts.length < 2) return parts.map(([colour]) => svg('circle', { r, stroke: colour, class: 'ring' }));
  const total = parts.reduce((sum, [, share]) => sum + share, 0);
  let done = 0;
  return parts.map(([colour, share]) => {
    const from = done;
    done += share / total;
    const large = done - from > 0.5 ? 1 : 0;
    return svg('path', { d: `M${arcPoint(r, from)}A${r} ${r} 0 ${large} 1 ${arcPoint(r, done)}`, stroke: colour, class: 'ring' });
  });
}

function clusterParts(client, clusters) {
  if (!clusters) return [[hasOwnModels(chosen.contender) ? GREY : INK, 1]];
  const own = clusters[client];
  const all = own.map((cluster) => [clusterColour(chosen.contender, cluster), clusterShare(chosen.contender, cluster, client) ?? 1 / own.length]);
  // A share that nobody would see is left out, unless all are as small.
  const large = all.filter(([, share]) => share >= 0.005);
  const seen = large.length ? large : all;
  const total = seen.reduce((sum, [, share]) => sum + share, 0);
  return seen.map(([colour, share]) => [colour, share / total]);
}

function groupWords(client) {
  return groupsOf(client).map(([group, share]) => `${group}${share < 1 ? ` (${percent(share, 0)})` : ''}`).join(', ');
}

function clientWords(client, clusters) {
  const found = clusters ? `; ${clusters[client].length > 1 ? 'clusters' : 'cluster'} ${clusters[client].join(', ')}` : '';
  const group = planted() ? `; planted group ${groupWords(client)}` : '';
  return `${clientName(client)}${found}${group}; accuracy ${percent(accuracy(chosen.contender, client))}`;
}

function swatch(colour, label, kind, attributes = {}) {
  const mark = svg('svg', { width: 16, height: 16, viewBox: '-8 -8 16 16', 'aria-hidden': 'true' }, ...(
    kind === 'ring' ? ring(5, [[colour, 1]]) : pie(6, [[colour, 1]])
  ));
  return html('li', attributes, mark, label);
}

function mapLegend() {
  const { clusters } = measured();
  const groups = planted();
  const found = clusters
    ? clusters.map((members, i) => swatch(clusterColour(chosen.contender, i), `cluster ${i}: ${members.length}`, 'pie'))
    : [swatch(...clusterParts(0, null)[0].slice(0, 1), oneModel(), 'pie')];
  const rings = groups
    ? groups.members.map((members, i) => swatch(groupColour(i), `planted ${i}: ${members.length}`, 'ring'))
    : [];
  return html('ul', { class: 'legend' }, ...found, ...rings);
}

function oneModel() {
  return hasOwnModels(chosen.contender) ? 'every client has its own model' : 'one model for all clients';
}

function drawMap() {
  const geometry = geometryOf(chosen.contender);
  if (!geometry) {
    words('map', `This run (seed ${run().seed}) has no distances between all of its clients, so there is no map.`);
    show('map', mapLegend());
    return;
  }
  MAP.width = Math.max(Math.min(document.getElementById('map').clientWidth, MAP.widest), MAP.least);
  const clusters = clustersOf(chosen.contender);
  const r = radius();
  const there = [...run().clients.keys()].filter((client) => geometry.positions[client]);
  const points = apart(placed(there.map((client) => geometry.positions[client])), 2 * r + 5);
  const marks = points.map(([x, y], i) => {
    const client = there[i];
    const groups = groupsOf(client).map(([group, share]) => [groupColour(group), share]);
    const drawn = [svg('circle', { r: r + 6.5, class: 'halo' }), svg('circle', { r: r + 3.1, class: 'edge' }), ...ring(r + 1.5, groups), ...pie(r - 1.5, clusterParts(client, clusters))];
    const mark = svg('g', { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }, ...drawn);
    return markClient(mark, client, clientWords(client, clusters));
  });
  const kept = geometry.kept === null ? '' : `; they show ${percent(geometry.kept, 0)} of the squared distances`;
  const absent = run().clients.length - there.length;
  const left = absent ? ` Not shown: ${absent === 1 ? 'a client whose update was' : `${absent} clients whose updates were`} not finite.` : '';
  words('map', `A circle is a client, filled by cluster of ${contenderName()} (a pie for several)${planted() ? ', ringed by planted group' : ''}. `
    + `The axes are the first two of classical scaling of the distances between the clients’ ${geometry.name} after Phase 1${kept}. `
    + `Near each other means alike; directions and units mean nothing, and circles that would hide each other are moved apart.${left}`);
  show('map', picture('Map of the clients', MAP.width, MAP.height, ...marks), mapLegend());
}
