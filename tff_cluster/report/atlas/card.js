// The card of the chosen client: its data, planted groups, neighbours, clusters, and its accuracy under every contender.

const CARD = { width: 340, bars: 84, bar: 130, members: 12, way: 12, turns: 6 };

function goTo(client, label) {
  const button = html('button', { type: 'button', class: 'go', 'data-client': client }, label || clientName(client));
  return button;
}

function shares(counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.map((count) => (total ? count / total : 0));
}

function populationShares() {
  const total = new Array(run().classes).fill(0);
  for (const counts of run().labels) counts.forEach((count, label) => { total[label] += count; });
  return shares(total);
}

function histogram(client) {
  const [own, all] = [shares(run().labels[client]), populationShares()];
  const highest = Math.max(...own, ...all, 1e-9);
  const step = CARD.width / own.length;
  const high = (share) => (CARD.bars * share) / highest;
  const bars = own.map((share, label) => {
    const count = run().labels[client][label];
    const bar = svg('rect', {
      x: (label * step + 1).toFixed(1), y: (CARD.bars - high(share)).toFixed(1), width: Math.max(step - 2, 0.8).toFixed(1), height: high(share).toFixed(1),
      fill: BETTER, class: 'label-bar', 'data-label': label,
    });
    bar.append(svg('title', {}, `label ${label}: ${plural(count, 'row')}, ${percent(share)} here, ${percent(all[label])} of all clients’ rows`));
    return bar;
  });
  const lines = all.map((share, label) => svg('rect', {
    x: (label * step).toFixed(1), y: (CARD.bars - high(share) - 1).toFixed(1), width: step.toFixed(1), height: 2, fill: INK,
  }));
  const every = Math.ceil(own.length / 20);
  const names = own.map((_, label) => (label % every ? null : text((label * step + step / 2).toFixed(1), CARD.bars + 13, label, { class: 'column-name' })));
  return picture('Labels of this client’s rows', CARD.width, CARD.bars + 18, ...bars, ...lines, ...names.filter((name) => name));
}

function dataPart(client) {
  const rows = run().labels.map((counts) => counts.reduce((sum, count) => sum + count, 0));
  const middle = rows.reduce((sum, count) => sum + count, 0) / rows.length;
  return [
    html('h3', {}, 'Its data'),
    html('p', {}, html('strong', { id: 'card-rows' }, plural(rows[client], 'training row')), `; a client has ${plain(middle, 1)} on average. `
      + 'Bars are the shares of its labels, lines those of all clients.'),
    histogram(client),
  ];
}

function groupsPart(client) {
  if (!run().groups.length) return [];
  const lines = run().groups.map((grouping) => {
    const parts = groupsOf(client, grouping).map(([group, share]) => `group ${group}${share < 1 ? ` (${percent(share, 0)})` : ''}`);
    return html('p', {}, `“${grouping.name}”: ${parts.join(', ') || 'none'}`);
  });
  return [html('h3', {}, 'Planted'), ...lines];
}

function neighboursPart(client) {
  const geometry = geometryOf(chosen.contender);
  if (!geometry || !geometry.positions[client]) return [];
  const items = geometry.neighbours[client].map((other, i) => html('li', {}, goTo(other), ` ${geometry.distances[client][i]}`));
  const note = `By distance of ${geometry.name}; two clients are ${geometry.mean} apart on average.`;
  return [html('h3', {}, 'Nearest neighbours'), html('p', { class: 'note' }, note), html('ol', { class: 'neighbours', id: 'card-neighbours' }, ...items)];
}

function membersLine(contender, cluster, client) {
  const others = measured(contender).clusters[cluster].filter((member) => member !== client);
  const mark = svg('svg', { width: 12, height: 12, viewBox: '-6 -6 12 12', 'aria-hidden': 'true' }, ...pie(5, [[clusterColour(contender, cluster), 1]]));
  const own = clusterShare(contender, cluster, client);
  const some = others.slice(0, CARD.members).map((other) => goTo(other));
  const rest = others.length - some.length;
  return html(
    'div', { class: 'members' }, mark, ` cluster ${cluster} `, own === null ? null : `(${percent(own, 0)}) `, others.length ? 'with ' : 'alone', ...some, rest ? ` and ${rest} more` : null,
  );
}

// A client's models over the rounds: where it went, as a strip and in words.
function wayPart(contender, client) {
  const { way } = measured(contender);
  if (!way) return [];
  const turns = way.clients[client];
  const rounds = way.last - way.first + 1;
  const parts = turns.map(([from, models], i) => {
    const to = i + 1 < turns.length ? turns[i + 1][0] - 1 : way.last;
    return { from, to, models, words: `${from === to ? from : `${from}–${to}`}: ${models.map((model) => way.names[model]).join(' and ') || 'not seen'}` };
  });
  const marks = parts.flatMap(({ from, to, models, words }) => (models.length ? models : [-1]).map((model, i, all) => {
    const mark = svg('rect', {
      x: ((CARD.width * (from - way.first)) / rounds).toFixed(2), width: ((CARD.width * (to - from + 1)) / rounds).toFixed(2),
      y: ((CARD.way * i) / all.length).toFixed(2), height: (CARD.way / all.length).toFixed(2), fill: model < 0 ? 'var(--page)' : modelColour(contender, model),
      'data-model': model,
    });
    mark.append(svg('title', {}, `round ${words}`));
    return mark;
  }));
  const strip = svg('svg', { viewBox: `0 0 ${CARD.width} ${CARD.way}`, width: CARD.width, height: CARD.way, class: 'way', 'aria-hidden': 'true' }, ...marks);
  const some = parts.slice(-CARD.turns);
  const told = `By round: ${some.length < parts.length ? `${plural(parts.length - some.length, 'change')} before, then ` : ''}${some.map(({ words }) => words).join('; ')}`;
  return [strip, html('div', { class: 'note way-words' }, told)];
}

function accuracyLine(contender, client, budget) {
  const value = accuracy(contender, client, budget);
  const reference = accuracy(chosen.reference, client, budget);
  const gain = difference(contender, client, budget);
  const colour = contender === chosen.reference ? INK : gain > 0 ? BETTER : gain < 0 ? WORSE : GREY;
  const bar = svg('svg', { viewBox: `0 0 ${CARD.bar} 10`, width: CARD.bar, height: 10, 'aria-hidden': 'true' },
    svg('rect', { width: CARD.bar, height: 10, fill: 'var(--track)' }),
    svg('rect', { width: (CARD.bar * value).toFixed(1), height: 10, fill: colour }),
    svg('rect', { x: (CARD.bar * reference - 1).toFixed(1), width: 2, height: 10, fill: INK }));
  const words = contender === chosen.reference ? 'reference' : signed(gain);
  return html(
    'tr', { 'data-budget': budget, class: budget === chosen.budget ? null : 'other-budget' }, html('td', {}, DATA.budgets[budget]),
    html('td', {}, bar), html('td', { class: 'n' }, percent(value)), html('td', { class: 'n' }, words),
  );
}

function contenderPart(contender, client) {
  const own = clustersOf(contender);
  const groups = own ? own[client].map((cluster) => membersLine(contender, cluster, client)) : [];
  const lines = Object.keys(DATA.budgets).map((budget) => accuracyLine(contender, client, budget));
  const isChosen = contender === chosen.contender;
  return html(
    'div', { class: isChosen ? 'contender current' : 'contender', 'data-contender-card': contender },
    html('h4', {}, contenderName(contender), html('span', { class: 'note' }, ` ${kindsOf(contender)}`)),
    ...groups, ...wayPart(contender, client), html('table', { class: 'accuracies' }, html('tbody', {}, ...lines)),
  );
}

function drawCard() {
  const { client } = chosen;
  document.getElementById('card-heading').textContent = client < 0 ? 'Client' : `Client ${clientName(client)}`;
  if (client < 0) {
    show('card', html('p', { class: 'note' }, 'No client is chosen. Click one in a picture, or type its id above.'));
    return;
  }
  const note = `Differences in points to ${contenderName(chosen.reference)}, whose accuracy is the line in each bar.`;
  show(
    'card', html('div', { class: 'facts' }, ...[dataPart(client), groupsPart(client), neighboursPart(client)].map((part) => html('div', {}, ...part))),
    html('h3', {}, 'Under every contender'), html('p', { class: 'note' }, note),
    html('div', { class: 'contenders' }, ...DATA.contenders.map((_, contender) => contenderPart(contender, client))),
  );
}
