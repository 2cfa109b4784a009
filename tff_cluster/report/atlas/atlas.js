// Draws the views, and draws again what a choice changes.

const DRAW = [drawControls, drawTables, drawMap, drawMatrix, drawFlow, drawCard];

function drawAll() {
  for (const draw of DRAW) draw();
  markChosen();
  letKeysScroll();
}

// Keys must reach what is to be scrolled.
function letKeysScroll() {
  for (const box of document.querySelectorAll('.view, .blocks')) {
    const isCutOff = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (isCutOff) box.setAttribute('tabindex', '0');
    else box.removeAttribute('tabindex');
  }
}

// Changes what is chosen, `{run, budget, reference, contender, client}` or some of them.
function choose(change) {
  const id = chosen.client < 0 ? null : run().clients[chosen.client];
  const onlyClient = Object.keys(change).every((name) => name === 'client');
  const focused = document.activeElement && document.activeElement.id;
  Object.assign(chosen, change);
  // Seeds draw clients anew: who has the same id stays chosen.
  if ('run' in change && !('client' in change)) chosen.client = id === null ? -1 : run().clients.indexOf(id);
  if (onlyClient) {
    drawSetting();
    drawFlowOfClient();
    drawCard();
    markChosen();
  } else {
    drawAll();
  }
  writeHash();
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
}

function clientAt(event) {
  const mark = event.target.closest && event.target.closest('[data-client]');
  return mark ? Number(mark.dataset.client) : -1;
}

function onClick(event) {
  const client = clientAt(event);
  if (client >= 0) choose({ client });
}

// Arrows go from client to client in a picture; Enter or space chooses.
function onKey(event) {
  const mark = event.target.closest && event.target.closest('.client');
  if (!mark) return;
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    choose({ client: Number(mark.dataset.client) });
    return;
  }
  const all = [...mark.closest('.view').querySelectorAll('.client')];
  const wide = Number(mark.closest('svg').dataset.columns) || 1;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide };
  const next = Object.hasOwn(steps, event.key) ? all[all.indexOf(mark) + steps[event.key]] : null;
  if (!next) return;
  event.preventDefault();
  mark.setAttribute('tabindex', '-1');
  next.setAttribute('tabindex', '0');
  next.focus();
}

function onHover(event) {
  const client = clientAt(event);
  for (const old of document.querySelectorAll('.hovered')) old.classList.remove('hovered');
  if (client < 0) return;
  for (const mark of document.querySelectorAll(`[data-client="${client}"]`)) mark.classList.add('hovered');
}

function start() {
  // The first clustering is more to look at than FedAvg, which has one model for all.
  const first = DATA.contenders.findIndex(({ kind }) => kind === 'overlapping' || kind === 'disjoint');
  chosen.contender = Math.max(first, 0);
  readHash();
  drawAll();
  document.addEventListener('click', onClick);
  document.addEventListener('keydown', onKey);
  document.addEventListener('mouseover', onHover);
  document.getElementById('controls').addEventListener('submit', (event) => event.preventDefault());
  window.addEventListener('resize', letKeysScroll);
  window.addEventListener('hashchange', () => {
    readHash();
    drawAll();
  });
}

start();
