// The controls, and the part of the address after #, which keeps what is chosen so that a view can be sent on.

function option(value, label, selected) {
  const made = html('option', { value }, label);
  made.selected = selected;
  return made;
}

function select(name, label, options, change) {
  const made = html('select', { id: `choose-${name}` }, ...options);
  made.addEventListener('change', () => change(made.value));
  return html('label', { for: `choose-${name}` }, label, made);
}

function searchBox() {
  const list = html('datalist', { id: 'all-clients' }, ...run().clients.map((id) => html('option', { value: id })));
  const box = html('input', { id: 'search', type: 'search', list: 'all-clients', placeholder: 'id', autocomplete: 'off' });
  const find = () => {
    const found = run().clients.indexOf(box.value);
    box.setCustomValidity(found < 0 && box.value ? 'no client has this id' : '');
    if (found >= 0 && found !== chosen.client) choose({ client: found });
  };
  box.addEventListener('input', find);
  return html('label', { for: 'search' }, 'Client', box, list);
}

function drawControls() {
  const names = DATA.contenders.map((contender) => contender.name);
  show(
    'controls',
    select('seed', 'Seed', DATA.runs.map((r, i) => option(i, r.seed, i === chosen.run)), (v) => choose({ run: Number(v) })),
    select(
      'budget', 'Budget',
      Object.entries(DATA.budgets).map(([key, label]) => option(key, label, key === chosen.budget)),
      (v) => choose({ budget: v }),
    ),
    select(
      'reference', 'Against', references().map((i) => option(i, names[i], i === chosen.reference)),
      (v) => choose({ reference: Number(v) }),
    ),
    select(
      'contender', 'Pictures of', names.map((name, i) => option(i, name, i === chosen.contender)),
      (v) => choose({ contender: Number(v) }),
    ),
    searchBox(),
  );
  drawSetting();
}

function drawSetting() {
  document.getElementById('search').value = chosen.client < 0 ? '' : run().clients[chosen.client];
  const client = chosen.client < 0 ? 'no client chosen' : `client ${clientName(chosen.client)}`;
  const sentence = `Seed ${run().seed}, at ${DATA.budgets[chosen.budget]}, differences to ${contenderName(chosen.reference)}`;
  document.getElementById('setting').textContent = `${sentence}; pictures of ${contenderName()}; ${client}.`;
}

// The address.

function writeHash() {
  const parts = new URLSearchParams({
    seed: run().seed, budget: chosen.budget, against: contenderName(chosen.reference), contender: contenderName(),
  });
  if (chosen.client >= 0) parts.set('client', run().clients[chosen.client]);
  const hash = `#${parts}`;
  if (hash !== window.location.hash) window.history.replaceState(null, '', hash);
}

// What the address does not say, or says wrongly, stays as it is.
function readHash() {
  const parts = new URLSearchParams(window.location.hash.slice(1));
  const names = DATA.contenders.map((contender) => contender.name);
  const at = DATA.runs.findIndex((r) => String(r.seed) === parts.get('seed'));
  if (at >= 0) chosen.run = at;
  if (Object.hasOwn(DATA.budgets, parts.get('budget') || '')) chosen.budget = parts.get('budget');
  const against = names.indexOf(parts.get('against'));
  if (references().includes(against)) chosen.reference = against;
  const contender = names.indexOf(parts.get('contender'));
  if (contender >= 0) chosen.contender = contender;
  chosen.client = parts.has('client') ? run().clients.indexOf(parts.get('client')) : -1;
}
