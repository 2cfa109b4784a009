"""What phases.disturb found, made up."""

from tff_cluster.studies.disturbance import document as documents
from tff_cluster.studies.disturbance.document import HalfLost, Row

COMMAND = 'python -m phases.disturb --repeats=2'


def row(label, disturbance, value, scores, **others):
  given = {
    'label': label, 'method': 'kmeans', 'title': 'k-means', 'signature': 'updates', 'parameters': {'num_clusters': 3},
    'disturbance': disturbance, 'value': value, 'undisturbed': 1.0, 'mean': sum(scores) / len(scores),
    'low': min(scores), 'high': max(scores), 'scores': scores, 'clusters': [3] * len(scores),
  }  # fmt: skip
  return Row(**given | others)


WARD = {
  'method': 'hierarchical', 'title': 'hierarchical, ward', 'parameters': {'linkage': 'ward'}, 'signature': 'weights', 'undisturbed': 0.75,
}  # fmt: skip
ROWS = [
  row('a', 'noise', 0.0, [1.0]),
  row('a', 'noise', 0.5, [0.25, 0.0], clusters=[2, None]),
  *(row('a', 'nearest', bits, scores) for bits, scores in ((8, [1.0]), (1, [0.125]))),
  *(row('a', 'random', bits, scores) for bits, scores in ((8, [1.0, 1.0]), (1, [0.625, 0.75]))),
  *(row('b', 'noise', z, scores, **WARD) for z, scores in ((0.0, [0.75]), (0.5, [-0.125, 0.25]))),
  *(row('b', 'nearest', bits, scores, **WARD) for bits, scores in ((8, [0.75]), (1, [0.5]))),
  *(row('b', 'random', bits, scores, **WARD) for bits, scores in ((8, [0.75, 0.75]), (1, [0.125, 0.25]))),
]
LOST = [
  HalfLost('a', 'noise', 1.0, kept=0.0, lost=0.5),
  HalfLost('a', 'nearest', 1.0, kept=8, lost=1),
  HalfLost('a', 'random', 1.0, kept=1, lost=None),
  HalfLost('b', 'noise', 0.75, kept=0.0, lost=0.5),
  HalfLost('b', 'nearest', 0.75, kept=1, lost=None),
  HalfLost('b', 'random', 0.75, kept=8, lost=1),
]
KINDS = ('updates', 'weights')
DOCUMENT = documents.Document(
  clients=6, seed=4, repeats=2, rows=ROWS, half_lost=LOST, truth=documents.Truth('group', 3), sketch_dimension=None,
  signatures=[documents.Sent(kind, 1000, 4000, 1.0, documents.Norms(0.5, 1.0, 2.0), 3, clip_norm_given=False) for kind in KINDS],
  compression=[documents.Packed(kind, bits, size) for kind in KINDS for bits, size in ((8, 1160), (1, 152))],
  left_out=[documents.LeftOut('cfl', 'it trains while it clusters')],
  privacy=[documents.Release(0.0, None, 1e-5), documents.Release(0.5, 1234.5, 1e-5)], command=COMMAND,
)  # fmt: skip
