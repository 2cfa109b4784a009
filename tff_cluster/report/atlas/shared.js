// What all views share: the data, what is chosen, and how elements and numbers are made.
// Texts from files go through textContent and attributes only, never through HTML.

const DATA = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';
// Colours are names of the style sheet, which has each of them in light and dark.
const INK = 'var(--ink)', GREY = 'var(--grey)', PALE = 'var(--pale)', BETTER = 'var(--better)', WORSE = 'var(--worse)';
const KINDS = {
  fedavg: 'no clusters', local: 'alone', fine_tuning: 'fine-tuned', ditto: 'Ditto', oracle: 'oracle', disjoint: 'disjoint',
  overlapping: 'overlapping',
};
// Kinds of contenders that others are compared with.
const REFERENCES = { fedavg: 'FedAvg', local: 'alone', fine_tuning: 'fine-tuned', ditto: 'Ditto' };
// Accuracies have four decimals: less than half a step apart is equal.
const SAME = 5e-5;

// Positions in DATA.runs, DATA.contenders and the run's clients; client is -1 where none is chosen.
const chosen = { run: 0, budget: Object.keys(DATA.budgets)[0], reference: 0, contender: 0, client: -1 };

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function picture(label, width, height, ...children) {
  const box = `0 0 ${width} ${height}`;
  return svg('svg', { viewBox: box, width, height, role: 'group', 'aria-label': label }, ...children);
}

function text(x, y, words, attributes = {}) {
  return svg('text', { x, y, ...attributes }, words);
}

function show(name, ...children) {
  document.getElementById(name).replaceChildren(...children.flat().filter((child) => child !== null));
}

function words(name, sentence) {
  document.getElementById(`${name}-words`).textContent = sentence;
}

// What is chosen.

function run() {
  return DATA.runs[chosen.run];
}

function measured(contender = chosen.contender) {
  return run().contenders[contender];
}

function accuracy(contender, client, budget = chosen.budget) {
  return measured(contender).budgets[budget].accuracy[client];
}

function difference(contender, client, budget = chosen.budget) {
  const value = accuracy(contender, client, budget) - accuracy(chosen.reference, client, budget);
  return Math.abs(value) < SAME ? 0 : value;
}

function contenderName(contender = chosen.contender) {
  return DATA.contenders[contender].name;
}

// An id as sentences and lists show it: in quotes where it is more than one plain word (words.client).
function clientName(client) {
  const id = run().clients[client];
  return /^[\p{L}\p{N}_.:@/+-]+$/u.test(id) ? id : `“${id}”`;
}

function kindsOf(contender) {
  return DATA.contenders[contender].kinds.map((kind) => KINDS[kind]).join(', ');
}

function references() {
  return DATA.contenders.map((_, i) => i).filter((i) => DATA.contenders[i].kind in REFERENCES);
}

function kindOf(contender) {
  return DATA.contenders[contender].kind;
}

// Whether a contender without clusters has a model for each client.
function hasOwnModels(contender) {
  return kindOf(contender) !== 'fedavg' && kindOf(contender) in REFERENCES;
}

// Planted groups: the first grouping of the run.

function planted() {
  return run().groups[0] || null;
}

// [[group, share]] of a client, the largest share first.
function groupsOf(client, grouping = planted()) {
  if (!grouping) return [];
  const found = [];
  grouping.members.forEach((members, group) => {
    const at = members.indexOf(client);
    if (at >= 0) found.push([group, grouping.shares ? grouping.shares[group][at] : 1]);
  });
  return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

// The clients by planted group, then as they stand in the run.
function ordered() {
  const group = run().clients.map((_, client) => (groupsOf(client)[0] || [0])[0]);
  return group.map((_, client) => client).sort((a, b) => group[a] - group[b] || a - b);
}

// Positions of the clusters of each client; null where the contender has no clusters.
function clustersOf(contender) {
  const clusters = measured(contender).clusters;
  if (!clusters) return null;
  const found = run().clients.map(() => []);
  clusters.forEach((members, cluster) => members.forEach((client) => found[client].push(cluster)));
  return found;
}

// What a client has of one of its clusters; null where that is not told.
function clusterShare(contender, cluster, client) {
  const { clusters, shares } = measured(contender);
  return shares && shares[cluster][clusters[cluster].indexOf(client)];
}

// A colour of the palette; the rest is pale.
function tone(number) {
  return number !== null && number < DATA.palette.length ? `var(--tone${number})` : PALE;
}

function groupColour(group) {
  return tone(group ?? null);
}

function clusterColour(contender, cluster) {
  return tone(measured(contender).colours[cluster]);
}

// Of a method that alternates, also of a model that no cluster has in the end.
function modelColour(contender, model) {
  return tone(measured(contender).way.colours[model]);
}

// Numbers in words, as on the page of the comparison.

function plain(value, decimals) {
  const shown = value.toFixed(decimals);
  if (!shown.startsWith('-')) return shown;
  return /[1-9]/.test(shown) ? `−${shown.slice(1)}` : shown.slice(1);
}

function percent(share, decimals = 1) {
  return share === null ? '–' : `${plain(100 * share, decimals)}%`;
}

function signed(share, decimals = 1) {
  if (share === null) return '–';
  const shown = plain(100 * share, decimals);
  return shown.startsWith('−') || !/[1-9]/.test(shown) ? shown : `+${shown}`;
}

function score(value) {
  const shown = plain(value, 2);
  return shown === '1.00' && value < 1 ? '0.99' : shown;
}

function size(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [unit, left] = [0, Math.abs(bytes)];
  for (; left >= 999.5 && unit < 4; unit += 1) left /= 1000;
  return `${bytes < 0 ? '-' : ''}${unit ? Number(left.toPrecision(3)) : left} ${units[unit]}`;
}

function plural(count, noun) {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

function short(name, length) {
  const letters = [...name];
  if (letters.length <= length) return name;
  return [...letters.slice(0, Math.ceil(length / 2) - 1), '…', ...letters.slice(-Math.floor(length / 2))].join('');
}

// Clients in pictures: one of them takes part in the tab order, arrows go on from there.

function markClient(element, client, label) {
  fill(element, { 'data-client': client, tabindex: '-1', role: 'button', 'aria-label': label }, []);
  element.classList.add('client');
  element.append(svg('title', {}, label));
  return element;
}

function markChosen() {
  for (const old of document.querySelectorAll('.chosen')) old.classList.remove('chosen');
  for (const mark of document.querySelectorAll(`[data-client="${chosen.client}"]`)) mark.classList.add('chosen');
  document.body.classList.toggle('has-client', chosen.client >= 0);
  for (const view of document.querySelectorAll('.view')) {
    const first = view.querySelector('.client.chosen') || view.querySelector('.client');
    for (const mark of view.querySelectorAll('.client[tabindex="0"]')) mark.setAttribute('tabindex', '-1');
    if (first) first.setAttribute('tabindex', '0');
  }
}
