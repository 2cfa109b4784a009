"""The atlas in a real browser: pictures, sorting, clicks, keys, the address and paper, without an error in its console."""

import base64
import json
import re

import pytest

from tests.made_up import atlas_runs
from tests.made_up import browser as browsers
from tests.report.wcag import contrast
from tff_cluster.base import words
from tff_cluster.report.atlas import page
from tff_cluster.scorecard.contenders import CLIENT_ROUNDS, ROUNDS

pytestmark = pytest.mark.skipif(
  browsers.find() is None, reason=f'needs one of {", ".join(browsers.NAMES)} on PATH'
)
IDS = atlas_runs.strange_ids(14)
SHOWN = [words.client(name) for name in IDS]
CLIQUES, BIPARTITION, PLANTED, IFCA = 3, 4, 5, 6
# Boxes that hold more than they show.
_CUT_OFF = """['html', '#contenders', '#costs', '.blocks', 'aside'].filter((name) => {
  const e = document.querySelector(name);
  return e.scrollWidth > e.clientWidth + 1 || (name !== 'html' && e.scrollHeight > e.clientHeight + 1);
})"""
# Texts that leave their pictures.
_OUTSIDE = """Array.from(document.querySelectorAll('.view svg text')).filter((e) => {
  const [a, b] = [e.getBoundingClientRect(), e.ownerSVGElement.getBoundingClientRect()];
  return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
}).map((e) => e.textContent)"""
_NO_NUMBER = '/NaN|undefined|Infinity/.test(document.querySelector("main").innerHTML)'
# A4 without its margins of 13 mm, at 96 pixels an inch.
PAPER = (695, 1024, 'print')


@pytest.fixture(scope='module')
def driven(tmp_path_factory):
  with browsers.running(tmp_path_factory.mktemp('browser')) as found:
    yield found


@pytest.fixture(autouse=True)
def no_faults(driven):
  driven.faults.clear()
  yield
  assert driven.faults == []


def _write(runs, arrays, folder, alarms=()):
  """Returns the document of an atlas and its page."""
  document, _ = atlas_runs.document(runs, arrays, alarms)
  return document, page.write(document, 'digits', f'{len(document["runs"][0]["clients"])} clients', folder)


@pytest.fixture(scope='module')
def atlas(tmp_path_factory):
  # Two rounds after Phase 1 leave the overlapping cliques with other accuracies at equal client-rounds.
  runs, arrays = atlas_runs.make(3, client_ids=IDS)
  del arrays[2]
  document, path = _write(runs, arrays, tmp_path_factory.mktemp('atlas'), ('<b>bold</b> groups',))
  return document, path.as_uri()


@pytest.fixture
def opened(driven, atlas):
  driven.open(atlas[1])
  return driven


def _count(browser, selector):
  return browser.evaluate(f'document.querySelectorAll({json.dumps(selector)}).length')


def _of_each(browser, selector, what):
  """Returns this of each element, `e`."""
  return browser.evaluate(f'Array.from(document.querySelectorAll({json.dumps(selector)}), (e) => {what})')


def _texts(browser, selector):
  return _of_each(browser, selector, 'e.textContent')


def _set(browser, element, value, event):
  browser.evaluate(
    f"(() => {{const e = document.getElementById('{element}'); e.value = {json.dumps(value)}; "
    f"e.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()"
  )


def _select(browser, **chosen):
  for name, value in chosen.items():
    _set(browser, f'choose-{name}', value, 'change')


def _column(browser, title, table='#contenders'):
  """Returns the cells of a column, top to bottom."""
  titles = [found.replace('\u00ad', '') for found in _texts(browser, f'{table} th')]
  return _texts(browser, f'{table} td:nth-child({titles.index(title) + 1})')


def _times_in(groups, client):
  return sum(client in members for members in groups or ())


def _strands(run, contender):
  """Returns how many strands there are, by a count of each client's nodes: strands of a pair of stages are the larger count's."""
  measured, total = run['contenders'][contender], 0
  for client in range(len(run['clients'])):
    nodes = [_times_in(run['groups'][0]['members'], client), 1]
    if measured['clusters']:
      nodes += [1] * len(measured['stages']) + [_times_in(measured['clusters'], client)]
    if contender == 0:
      nodes.append(1)
    total += sum(max(pair) for pair in zip(nodes, [*nodes[1:], 1], strict=True))
  return total


def test_all_pictures_have_their_marks_and_texts_stay_in_them(opened, atlas):
  run = atlas[0]['runs'][0]
  assert _count(opened, '#contenders tbody tr') == 7
  assert _count(opened, '#matrix g.client') == 14 * 6
  for contender in range(7):
    _select(opened, contender=contender)
    assert _count(opened, '#map g.client') == 14
    assert _count(opened, '#flow .strand') == _strands(run, contender)
    times = [_times_in(run['contenders'][contender]['clusters'], client) for client in range(14)]
    wedges = _of_each(
      opened, '#map g.client', '[Number(e.dataset.client), e.querySelectorAll(".wedge").length]'
    )
    assert dict(wedges) == {client: count if count > 1 else 0 for client, count in enumerate(times)}
    assert contender != PLANTED or max(times) > 1
    assert opened.evaluate(_OUTSIDE) == [] and not opened.evaluate(_NO_NUMBER)


def test_a_heading_sorts_and_turns_round(opened, atlas):
  means = [measured['budgets'][ROUNDS]['mean'] for measured in atlas[0]['runs'][0]['contenders']]
  names = [contender['name'] for contender in atlas[0]['contenders']]
  falling = sorted(range(7), key=lambda i: -means[i])
  assert _column(opened, 'contender') == names
  opened.click('#contenders th button', 2)
  assert _column(opened, 'contender') == [names[i] for i in falling]
  assert _column(opened, 'mean') == [words.percent(means[i]) for i in falling]
  assert _of_each(opened, '#contenders th', 'e.getAttribute("aria-sort")')[2] == 'descending'
  opened.press('Enter')
  assert _column(opened, 'contender') == [names[i] for i in falling[::-1]]
  assert _of_each(opened, '#contenders th', 'e.getAttribute("aria-sort")')[2] == 'ascending'
  # FedAvg has no difference to itself; it stays below, whichever way.
  at = _texts(opened, '#contenders th').index('− FedAvg')
  for _ in range(2):
    opened.click('#contenders th button', at)
    assert _column(opened, 'contender')[-1] == names[0]
  # The costs sort by themselves.
  assert _of_each(opened, '#costs th', 'e.getAttribute("aria-sort")')[1] == 'none'
  opened.click('#costs th button', 1)
  assert _of_each(opened, '#costs th', 'e.getAttribute("aria-sort")')[1] == 'descending'
  spent = [measured['budgets'][ROUNDS]['client_rounds'] for measured in atlas[0]['runs'][0]['contenders']]
  assert _column(opened, 'client-rounds', '#costs') == [f'{value:,}' for value in sorted(spent, reverse=True)]
  opened.click('#contenders tbody tr', 0)
  assert _count(opened, '#contenders tr.current') == 1


def test_a_click_on_the_map_fills_the_card_and_marks_the_client(opened, atlas):
  run, client = atlas[0]['runs'][0], 9
  _select(opened, contender=CLIQUES)
  opened.click(f'#map g.client[data-client="{client}"]')
  assert _texts(opened, '#card-heading') == [f'Client {SHOWN[client]}']
  assert _texts(opened, '#card-rows') == [f'{sum(run["labels"][client])} training rows']
  near = [SHOWN[other] for other in run['geometry']['weights']['neighbours'][client]]
  assert _texts(opened, '#card-neighbours button') == near
  for contender, measured in enumerate(run['contenders']):
    part = f'[data-contender-card="{contender}"]'
    for budget in (ROUNDS, CLIENT_ROUNDS):
      own, reference = (m['budgets'][budget]['accuracy'][client] for m in (measured, run['contenders'][0]))
      gain = words.signed(100 * (own - reference)) if contender else 'reference'
      assert _texts(opened, f'{part} tr[data-budget="{budget}"] td.n') == [words.percent(own), gain]
    mine = [members for members in measured['clusters'] or [] if client in members]
    others = [SHOWN[k] for members in mine for k in [k for k in members if k != client][:12]]
    assert _texts(opened, f'{part} .members button') == others
  bars = _of_each(opened, '.label-bar', 'Number(e.getAttribute("height"))')
  labels = run['labels'][client]
  shares = [count / sum(labels) for count in labels]
  assert [bar / sum(bars) for bar in bars] == pytest.approx(shares, abs=0.01)
  assert _count(opened, '#map g.client.chosen') == 1 and _count(opened, '#matrix g.client.chosen') == 6
  strands = _count(opened, f'.strand[data-client="{client}"]')
  assert _count(opened, '#flow .strand.chosen') == strands > 0
  opened.click('#card-neighbours button')
  assert _texts(opened, '#card-heading') == [f'Client {near[0]}']


def test_the_harm_map_has_the_differences(opened, atlas):
  run = atlas[0]['runs'][0]
  base = run['contenders'][0]['budgets'][ROUNDS]['accuracy']
  values, client = run['contenders'][CLIQUES]['budgets'][ROUNDS]['accuracy'], 7
  told = _texts(opened, f'#matrix g.client[data-client="{client}"] title')[CLIQUES - 1]
  gain = words.signed(100 * (values[client] - base[client]))
  assert told == f'{SHOWN[client]}, cliques: {words.percent(values[client])}, {gain} points'
  groups, main = run['groups'][0], {}
  for k in range(14):
    shares = [
      dict(zip(*pair, strict=True)).get(k, 0)
      for pair in zip(groups['members'], groups['shares'], strict=True)
    ]
    main[k] = shares.index(max(shares))
  order = _of_each(opened, '#matrix g.client', 'Number(e.dataset.client)')[:14]
  assert order == sorted(range(14), key=lambda k: (main[k], k))


def test_the_card_has_the_clients_way_over_the_rounds(opened, atlas):
  way = atlas[0]['runs'][0]['contenders'][IFCA]['way']
  client = next(k for k, turns in enumerate(way['clients']) if not turns[0][1])
  _select(opened, contender=IFCA)
  opened.click(f'#map g.client[data-client="{client}"]')
  turns = way['clients'][client]
  ends = [*(at - 1 for at, _ in turns[1:]), way['last']]
  spans = [
    (at, end, way['names'][models[0]] if models else 'not seen')
    for (at, models), end in zip(turns, ends, strict=True)
  ]
  told = '; '.join(f'{at}–{end}: {name}' if at < end else f'{at}: {name}' for at, end, name in spans)
  assert len(turns) > 1 and _texts(opened, '.way-words') == [f'By round: {told}']
  widths = _of_each(opened, '.way rect', 'Number(e.getAttribute("width"))')
  assert widths == pytest.approx([340 * (end + 1 - at) / way['last'] for at, end, _ in spans], abs=0.01)
  colours = _of_each(opened, '.way rect', 'getComputedStyle(e).fill')
  expected = [atlas[0]['palette'][way['colours'][models[0]]] if models else '#FFFFFF' for _, models in turns]
  assert colours == [f'rgb({", ".join(map(str, bytes.fromhex(colour[1:])))})' for colour in expected]
  titles = _texts(opened, '#flow text.stage')
  stages = atlas[0]['runs'][0]['contenders'][IFCA]['stages']
  assert titles == [
    'planted “mixture”', 'start', *(f'round {stage["round"]}' for stage in stages), 'final clusters', 'against FedAvg'
  ]  # fmt: skip
  assert any(text.startswith('not seen: ') for text in _texts(opened, '#flow text.node-name'))


def test_shares_fill_the_circles_and_stand_on_the_card(driven, tmp_path):
  runs, arrays = atlas_runs.make(1, 4, groups=2, truth='none', personalized={}, methods=('kmeans',))
  (clustering,) = runs[0][1]['clusterings']
  ids = runs[0][1]['population']['client_ids']
  clustering |= {
    'clusters': [ids, ids],
    'overlapping': True,
    'shares': [[0.75, 0.5, 1.0, 0.25], [0.25, 0.5, 1e-4, 0.75]],
  }
  _, path = _write(runs, arrays, tmp_path)
  driven.open(f'{path.as_uri()}#client=c00')
  wedges = _of_each(driven, '#map g.client', 'e.querySelectorAll(".wedge").length')
  assert wedges == [2, 2, 0, 2]  # A share that nobody would see leaves a whole circle.
  assert [text[:17] for text in _texts(driven, '.members')] == [' cluster 0 (75%) ', ' cluster 1 (25%) ']
  assert not driven.evaluate(_NO_NUMBER)


def test_keys_reach_and_choose_clients(opened):
  opened.evaluate("document.querySelector('#search').focus()")
  for _ in range(60):
    opened.press('Tab')
    if opened.evaluate("document.activeElement.closest('#map') !== null"):
      break
  assert opened.evaluate('document.activeElement.dataset.client') == '0'
  for key in ('ArrowRight', 'ArrowRight', 'Enter'):
    opened.press(key)
  assert _texts(opened, '#card-heading') == [f'Client {SHOWN[2]}']
  opened.press('Tab')
  assert opened.evaluate("document.activeElement.closest('#matrix') !== null")
  assert opened.evaluate('document.activeElement.dataset.client') == '2'
  opened.press('ArrowDown')
  assert opened.evaluate('document.activeElement.dataset.client') == '2'


def test_seed_budget_and_reference_change_the_numbers(opened, atlas):
  _select(opened, seed=1, budget=CLIENT_ROUNDS)
  found = atlas[0]['runs'][1]['contenders']
  at = [measured['budgets'][CLIENT_ROUNDS] for measured in found]
  assert at[CLIQUES]['mean'] != found[CLIQUES]['budgets'][ROUNDS]['mean']
  assert _column(opened, 'mean') == [words.percent(one['mean']) for one in at]
  for name in ('client_rounds', 'models_down', 'models_up', 'rows_trained', 'rows_forward', 'passes'):
    title = name.replace('client_rounds', 'client-rounds').replace('_', ' ')
    assert _column(opened, title, '#costs') == [f'{one[name]:,}' for one in at]
  for name in ('bytes_down', 'bytes_up'):
    assert _column(opened, name.replace('_', ' '), '#costs') == [words.size(one[name]) for one in at]
  gains = [words.signed(100 * (one['mean'] - at[0]['mean'])) for one in at]
  assert _column(opened, '− FedAvg')[1:] == gains[1:]
  _select(opened, reference=1)
  gains = [words.signed(100 * (one['mean'] - at[1]['mean'])) for one in at]
  assert _column(opened, '− alone') == [gains[0], '–', *gains[2:]]
  assert _column(opened, 'harmed') == [words.percent(one['harmed_local']) for one in at]
  assert _texts(opened, '#matrix text.row-name.current title') == ['kmeans']
  # A seed without distances says so and has the rest.
  _select(opened, seed=2)
  expected = 'This run (seed 2) has no distances between all of its clients, so there is no map.'
  assert _texts(opened, '#map-words') == [expected]
  assert _count(opened, '#map g.client') == 0 and _count(opened, '#matrix g.client') == 14 * 6
  opened.click('#matrix g.client')
  assert _count(opened, '#card-neighbours') == 0 and _count(opened, '.label-bar') == 10


def test_the_address_brings_a_view_back(opened):
  _select(opened, seed=1, budget=CLIENT_ROUNDS, reference=1, contender=BIPARTITION)
  _set(opened, 'search', 'a b&client=1#%', 'input')
  before = _texts(opened, '#setting')
  assert before == [
    'Seed 1, at equal client-rounds, differences to every client alone; pictures of bipartition; client “a b&client=1#%”.'
  ]
  card = _texts(opened, '#card')
  opened.reload()
  assert _texts(opened, '#setting') == before and _texts(opened, '#card') == card
  opened.evaluate("window.location.hash = '#seed=7&budget=none&against=x&contender=toString&client=nobody'")
  opened.evaluate('new Promise((done) => setTimeout(done, 50))')
  assert _texts(opened, '#setting')[0].endswith('pictures of bipartition; no client chosen.')


def test_strange_ids_are_text(opened):
  assert _count(opened, 'b') == 0 and _count(opened, 'img') == 0 and _count(opened, 'script') == 2
  for client, name in enumerate(atlas_runs.STRANGE):
    opened.click(f'#map g.client[data-client="{client}"]')
    assert _texts(opened, '#card-heading') == [f'Client {words.client(name)}']
    assert opened.evaluate("document.getElementById('search').value") == name
  assert '<b>bold</b> groups' in _texts(opened, '.alarm')[0]


def test_a_screen_begins_with_the_map_and_paper_has_all_but_the_controls(opened):
  names = ('h1', '#controls', '#map', '#matrix', '#flow', '.lead', '#contenders', '#costs')
  # A laptop's screen shows the map without scrolling.
  with opened.screen(1300, 800):
    places = [top for name in names for top in _of_each(opened, name, 'e.getBoundingClientRect().top')]
  assert places == sorted(places) and places[2] < 400
  _select(opened, contender=CLIQUES)
  opened.click('#map g.client[data-client="9"]')
  with opened.screen(*PAPER):
    for name in (*names, '#card'):
      (display,) = _of_each(opened, name, 'getComputedStyle(e).display')
      assert (display == 'none') == (name == '#controls')
    assert opened.evaluate(_CUT_OFF) == []
  printed = base64.b64decode(opened.call('Page.printToPDF', preferCSSPageSize=True)['data'])
  assert printed.startswith(b'%PDF') and len(re.findall(rb'/Type\s*/Page\b', printed)) >= 3


def _rgb(text):
  return [int(value) for value in re.findall(r'[0-9]+', text)[:3]]


def _hex(channels):
  return '#' + ''.join(f'{round(value):02x}' for value in channels)


@pytest.mark.parametrize('media, scheme', [('', 'light'), ('', 'dark'), ('print', 'dark')])
def test_texts_and_marks_of_pictures_have_contrast_in_both_schemes_and_on_paper(opened, media, scheme):
  _select(opened, contender=CLIQUES)
  with opened.screen(1300, 900, media, scheme):
    (ground,) = (_rgb(found) for found in _of_each(opened, 'body', 'getComputedStyle(e).backgroundColor'))
    assert ground == ([255, 255, 255] if media or scheme == 'light' else [22, 25, 29])
    texts = _of_each(opened, '.view svg text:not(.cell-number)', 'getComputedStyle(e).fill')
    assert min(contrast(_hex(_rgb(text)), _hex(ground)) for text in texts) >= 4.5
    cells = _of_each(
      opened, 'g.client:has(.cell-number)',
      "[e.querySelector('rect'), e.querySelector('text')].map((part) => getComputedStyle(part)).flatMap((s) => [s.fill, s.fillOpacity])",
    )  # fmt: skip
    assert len({fill for fill, *_ in cells}) >= 2  # Better and worse.
    for fill, share, text, _ in cells:
      shown = [
        float(share) * value + (1 - float(share)) * below
        for value, below in zip(_rgb(fill), ground, strict=True)
      ]
      assert contrast(_hex(_rgb(text)), _hex(shown)) >= 4.5, (fill, share, text)
    if scheme == 'dark' and not media:
      circles = _of_each(
        opened,
        '#map circle[fill], #map .ring',
        'getComputedStyle(e)[e.classList.contains("ring") ? "stroke" : "fill"]',
      )
      assert min(contrast(_hex(_rgb(colour)), _hex(ground)) for colour in circles) >= 3


def test_a_phone_shows_pictures_that_can_be_read_and_scrolled_by_keys(driven, atlas):
  with driven.screen(390, 844):
    driven.open(atlas[1])
    box = "(([x]) => [x.clientWidth, x.scrollWidth])(document.querySelectorAll('#flow'))"
    shown, whole = driven.evaluate(box)
    assert shown < 390 < whole and driven.evaluate("document.querySelector('#flow').tabIndex") == 0
    sizes = _of_each(
      driven, '.view svg text', 'parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a'
    )
    # An upright text is turned: its scale is the other entry of the matrix.
    assert min(size for size in sizes if size > 1) >= 7.9
    # A thumb of 24 pixels finds each client on the map (WCAG 2.2, success criterion 2.5.8).
    halos = _of_each(driven, '#map .halo', '2 * e.r.baseVal.value * e.getScreenCTM().a')
    assert len(halos) == 14 and min(halos) >= 24
    driven.evaluate("document.querySelector('#flow').focus()")
    driven.press('ArrowRight')
    driven.evaluate('new Promise((done) => setTimeout(done, 300))')
    assert driven.evaluate("document.querySelector('#flow').scrollLeft") > 0


def test_the_name_of_a_field_begins_with_the_number_that_it_shows(opened):
  told = _of_each(
    opened, '#matrix g.client', '[e.getAttribute("aria-label"), e.querySelector("text").textContent]'
  )
  assert len(told) == 14 * 6 and all(name.startswith(f'{number}: ') for name, number in told)


def test_the_table_fits_a_screen_of_1300_pixels(driven, tmp_path):
  # Six clusterings under one name, long labels, two planted groupings and large numbers.
  labels = ('kmeans', 'kmeans:twin', 'kmeans:spectral', 'kmeans:agglomerative')
  names = (*labels, 'dynamic_distance:neighbourhoods_of_the_mean_distance')
  runs, arrays = atlas_runs.make(2, 20, methods=names, truth='overlapping', groups=5)
  for _, results in runs:
    first, *others = results['clusterings'][:4]
    for other in others:
      other |= {name: first[name] for name in ('clusters', 'evaluations', 'recovery', 'cost', 'equal_cost')}
    for clustering in results['clusterings']:
      clustering['cost'] = {name: 1000 * value for name, value in clustering['cost'].items()}
      own = {
        'round': 5,
        'cost': {'client_rounds': 100},
        'evaluation': clustering['evaluations']['own'],
        'validation_accuracy': 0.8,
      }
      clustering['equal_cost'] = clustering['equal_cost'] or own
  document, path = _write(runs, arrays, tmp_path)
  assert any(' = ' in contender['name'] for contender in document['contenders'])
  with driven.screen(1300, 900):
    driven.open(path.as_uri())
    assert driven.evaluate(_CUT_OFF) == [] and _count(driven, '#contenders td.n') > 30


def test_a_thousand_clients(driven, tmp_path):
  runs, arrays = atlas_runs.make(1, 1000, methods=('kmeans', *(f'kmeans:k{i}' for i in range(2))))
  _, path = _write(runs, arrays, tmp_path)
  driven.open(f'{path.as_uri()}#client=c700')
  assert _count(driven, '#map g.client') == 1000 and _count(driven, '#matrix g.client') == 4 * 1000
  assert 0 < _count(driven, '#flow .bundle') < 1000 and _count(driven, '#flow .own-strands .strand') >= 3
  assert _texts(driven, '#card-heading') == ['Client c700']
  assert driven.evaluate(_CUT_OFF) == ['.blocks']
  with driven.screen(*PAPER):
    assert driven.evaluate(_CUT_OFF) == []
  assert path.stat().st_size < 500_000


@pytest.mark.parametrize('clients', [1, 2])
def test_a_comparison_with_hardly_anything(driven, tmp_path, clients):
  runs, arrays = atlas_runs.make(1, clients, groups=1, truth='none', personalized={}, methods=())
  runs[0][1]['config']['data']['num_groups'] = 1
  _, path = _write(runs, arrays, tmp_path)
  driven.open(f'{path.as_uri()}#client=c00')
  assert _count(driven, '#map g.client.chosen') == 1 and _count(driven, '#contenders tbody tr') == 1
  # Phase 1, Phase 2 and the end.
  assert _count(driven, '#flow .strand') == 2 * clients
  assert _count(driven, '#card-neighbours li') == clients - 1
  assert not driven.evaluate(_NO_NUMBER)
