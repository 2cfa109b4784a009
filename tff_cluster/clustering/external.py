"""Clustering methods that a user brings by import path: an own `Method`, or any scikit-learn clusterer or mixture.

An estimator gets the constructor's arguments that were given, and as random_state, where it has one, a seed that follows
from the experiment's. It sees the clients' vectors, or with metric=precomputed their distances; with affinity=precomputed,
which scikit-learn means as similarities, the largest distance minus theirs.

Departures and choices: scikit-learn calls rows that are in no cluster -1; here every client needs a model, so each of them
is a cluster of its own. What has predict_proba makes overlapping clusters: a client is in all that it belongs to with
membership_threshold or more, and always in the one that it belongs to most. Newcomers go where the estimator, fitted again
to the same vectors, predicts them, and where it predicts nothing to the cluster with the nearest mean.
"""

import contextlib
import copy
import dataclasses
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tff_cluster.base import fields as fields_lib
from tff_cluster.base import imports
from tff_cluster.base.errors import InputError, argument, shown
from tff_cluster.base.fields import option
from tff_cluster.base.words import first_line, message_of
from tff_cluster.clustering import number_of_clusters
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import METRICS, OnSignatures
from tff_cluster.clustering.outcome import Joined, Outcome

# Of a membership_threshold that is not given; at more than a half a client has one cluster.
_MEMBERSHIP = 0.5
# Arguments that tell an estimator the number of clusters; the first that it has does.
_NUMBERS = ('n_clusters', 'n_components')


# By import path what was found there, and the method that was made of it.
_made: dict[str, tuple[Any, Method[Any]]] = {}


def load(path: str) -> Method[Any]:
  """Returns the method of an import path: an object or class derived from Method, or a clusterer of scikit-learn's kind.

  It is the same one until its module is imported anew.

  Raises:
    InputError: if it cannot be imported, or is neither.
  """
  found = imports.load('clustering', path)
  if path not in _made or _made[path][0] is not found:
    _made[path] = found, _method_of(path, found)
  return _made[path][1]


def _method_of(path: str, found: Any) -> Method[Any]:
  if isinstance(found, type) and issubclass(found, Method):
    try:
      found = found()
    except Exception as error:
      raise InputError(
        f'{argument("clustering", path)}: {found.__name__}() fails: {first_line(error, type(error).__name__)}; a method is made '
        'without arguments'
      ) from error
  if isinstance(found, Method):
    if not dataclasses.is_dataclass(found.options_type):
      raise InputError(f'{argument("clustering", path)}: its options_type is no dataclass')
    if not found.trains and type(found).cluster is Method.cluster:
      raise InputError(
        f'{argument("clustering", path)}: {type(found).__name__} overrides neither cluster nor rounds'
      )
    # The path is its name: one of the built-in ones could be the same, or be this very object.
    found = copy.copy(found)
    found.name = path  # type: ignore[misc]
    return found
  kind = getattr(found, '_estimator_type', 'clusterer')
  # scikit-learn takes a method back by a property that raises (FeatureAgglomeration clusters columns).
  is_taken_back = isinstance(inspect.getattr_static(found, 'fit_predict', None), property)
  if (
    isinstance(found, type)
    and hasattr(found, 'fit_predict')
    and not is_taken_back
    and kind != 'outlier_detector'
  ):
    return Estimator(path, found)
  raise InputError(
    f'{argument("clustering", path)}: expected a clusterer or mixture of scikit-learn (a class with fit_predict), or a '
    f'tff_cluster.clustering.method.Method, found {shown(getattr(found, "__name__", type(found).__name__))}'
  )


@dataclasses.dataclass(frozen=True)
class Options(OnSignatures):
  """What is told beside the constructor's own arguments."""

  distances: str | None = option(
    None, 'Distances that metric=precomputed gets; default: l2.', choices=METRICS
  )
  membership_threshold: float | None = option(
    None,
    'Clients are in all clusters that predict_proba gives them with so much; default: 0.5.',
    above=0.0,
    at_most=1.0,
  )
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_OURS = {field.name: field for field in dataclasses.fields(Options) if field.name != 'arguments'}


class Estimator(Method[Options]):
  """A class of scikit-learn's kind as a method."""

  options_type = Options

  def __init__(self, path: str, kind: type):
    self.name = path  # type: ignore[misc]
    self.title = kind.__name__
    self._kind = kind
    self._defaults = {
      name: parameter.default
      for name, parameter in inspect.signature(kind).parameters.items()
      if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    # Of one that has both, components are no clusters.
    self._number = next((name for name in _NUMBERS if name in self._defaults), None)
    self.draws = 'random_state' in self._defaults  # type: ignore[misc]
    self.overlaps = hasattr(kind, 'predict_proba')  # type: ignore[misc]

  def fields(self) -> dict[str, dataclasses.Field]:
    """Returns our options, and the constructor's arguments, whose values nobody has declared."""
    declared = dict(_OURS)
    if not self.overlaps:
      del declared['membership_threshold']
    own = {
      name: dataclasses.field(metadata={'help': ''}) for name in self._defaults if name != 'random_state'
    }
    return declared | {name: field for name, field in own.items() if name not in declared}

  def value_from_text(self, name: str, text: str) -> Any:
    """Reads one of our options as declared, an argument as a number, true, false, none or text."""
    if name in _OURS:
      return fields_lib.value_from_text(_OURS[name], text)
    return imports.plain_value(text)

  def read(self, given: Mapping[str, Any]) -> Options:
    """Returns the options; the constructor's arguments are what the estimator itself checks when it is fitted."""
    known = self.fields()
    for name, value in given.items():
      if name == 'random_state' and self.draws:
        raise InputError(
          f'random_state={shown(value)}: it follows from the seed of the experiment; leave it out'
        )
      if name not in known:
        raise InputError(f'unknown key {name!r} of {self.name}; known: {", ".join(known)}')
      if (isinstance(value, float) and not math.isfinite(value)) or isinstance(value, (list, dict)):
        raise InputError(f'{name}={shown(value)}: expected a number, true, false, none or text')
    ours = {name: value for name, value in given.items() if name in _OURS}
    options = fields_lib.section_from_json(Options, ours)
    for name in ours:
      fields_lib.check_value(_OURS[name], getattr(options, name))
    arguments = {name: value for name, value in given.items() if name not in ours}
    if options.distances is not None and 'precomputed' not in arguments.values():
      raise InputError(f'distances={options.distances} applies to metric=precomputed only')
    return dataclasses.replace(options, arguments=arguments)

  def parameters(self, options: Options) -> dict[str, Any]:
    """Returns what was given, and the signature."""
    ours = {'distances': options.distances, 'membership_threshold': options.membership_threshold}
    told = {name: value for name, value in ours.items() if value is not None}
    return {'signature': options.signature, **told, **options.arguments}

  def told_number(self, options: Options) -> int | None:
    """Returns the number of clusters that the estimator is told, by an argument or its default; None where it finds one."""
    name = self._number
    count = None if name is None else options.arguments.get(name, self._defaults[name])
    return int(count) if isinstance(count, int) else None

  def check_experiment(
    self, options: Options, num_clients: int, cohort_fraction: float, words: str = ''
  ) -> None:
    """Raises InputError where the estimator is told more clusters than there are clients, by an argument or its default."""
    count = self.told_number(options)
    if count is not None:
      number_of_clusters.check_num_clusters(
        count, num_clients, words, f'{argument("clustering", self.name)}: {self._number}'
      )

  def for_clients(self, options: Options, num_clients: int) -> Options:
    """Returns the options for fewer clients."""
    count = self.told_number(options)
    if count is None or count <= num_clients:
      return options
    return dataclasses.replace(options, arguments={**options.arguments, str(self._number): num_clients})

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters that the estimator finds."""
    _, rows, notes = self._fitted(options, evidence)
    return Outcome(ClusterAssignment(np.stack(list(rows.values())), evidence.client_ids), notes=notes)

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns what the estimator predicts; the cluster with the nearest mean where it predicts none that is there.

    Raises:
      InputError: where the estimator, fitted again, finds other clusters.
    """
    from tff_cluster.clustering import newcomer_rules

    if not hasattr(self._kind, 'predict') or 'precomputed' in options.arguments.values():
      return newcomer_rules.nearest_mean(newcomers)
    assert newcomers.known is not None and newcomers.arriving is not None
    model, rows, _ = self._fitted(options, newcomers.known)
    vectors = newcomers.arriving.vectors
    with self._told('prediction'):
      new = self._rows(options, model, vectors, np.asarray(model.predict(vectors)))
    label_of = {tuple(np.flatnonzero(row)): label for label, row in rows.items()}
    clusters = [tuple(members) for members in newcomer_rules.members(newcomers)]
    if not set(clusters) <= set(label_of):
      raise InputError(
        f'{argument("clustering", self.name)} found other clusters when it was fitted again, so nobody can join them: it draws without '
        'random_state, or was changed'
      )
    joined = np.stack([new.get(label_of[cluster], np.zeros(len(vectors))) > 0.0 for cluster in clusters])
    nowhere = ~joined.any(axis=0)
    if nowhere.any():
      joined[:, nowhere] = newcomer_rules.nearest_mean(newcomers).membership[:, nowhere]
    return Joined(joined, nowhere)

  def _fitted(
    self, options: Options, evidence: Evidence
  ) -> tuple[Any, dict[Any, np.ndarray], tuple[str, ...]]:
    """Returns the fitted estimator, float64[clients] of members for each label that has some, and notes.

    Of labels with the same members the first is left.
    """
    import threadpoolctl

    arguments = dict(options.arguments)
    if self.draws:
      arguments['random_state'] = evidence.integer_seed('estimator', self.name)
    # Some estimators write into what they are given.
    vectors = np.array(self._input(options, evidence))
    with (
      self._told('fit'),
      threadpoolctl.threadpool_limits(limits=1),
      warnings.catch_warnings(record=True) as heard,
    ):
      warnings.simplefilter('always')
      model = self._kind(**arguments)
      labels = np.asarray(model.fit_predict(vectors))
      if labels.shape != (len(vectors),) or labels.dtype.kind not in 'iu':
        raise InputError(
          f'{argument("clustering", self.name)} returned labels of shape {labels.shape}, type {labels.dtype.name}; '
          f'expected {len(vectors)} whole numbers, one a client'
        )
      rows = {}
      members = set()
      for label, row in self._rows(options, model, vectors, labels).items():
        if row.any() and row.tobytes() not in members:
          members.add(row.tobytes())
          rows[label] = row
    alone = np.flatnonzero(labels == -1)
    if len(alone) and not self.overlaps:
      del rows[-1]
      rows |= {('alone', k): np.eye(1, len(labels), k)[0] for k in alone}
    notes = [f'{self.title} found {len(rows)} clusters']
    if len(alone):
      notes.append(
        f'{len(alone)} of {len(labels)} clients are in no cluster of {self.title}; each is a cluster of its own'
      )
    told = dict.fromkeys(
      ' '.join(str(each.message).split()) for each in heard if each.category is not DeprecationWarning
    )
    return model, rows, (*notes, *(f'{self.title} warns: {text}' for text in list(told)[:3]))

  def _input(self, options: Options, evidence: Evidence) -> np.ndarray:
    """Returns what the estimator is fitted to, float[clients, features] or float64[clients, clients]."""
    if 'precomputed' not in options.arguments.values():
      return evidence.signatures.vectors
    distances = evidence.signatures.distances(options.distances or 'l2')
    return distances.max() - distances if options.arguments.get('affinity') == 'precomputed' else distances

  def _rows(
    self, options: Options, model: Any, vectors: np.ndarray, labels: np.ndarray
  ) -> dict[Any, np.ndarray]:
    """Returns float64[vectors], 1 for members, for each label."""
    if self.overlaps:
      shares = np.asarray(model.predict_proba(vectors))
      member = shares >= (options.membership_threshold or _MEMBERSHIP)
      member[np.arange(len(shares)), shares.argmax(axis=1)] = True
      return {k: member[:, k].astype(np.float64) for k in range(member.shape[1])}
    return {int(label): (labels == label).astype(np.float64) for label in np.unique(labels)}

  @contextlib.contextmanager
  def _told(self, what: str) -> Iterator[None]:
    """Makes one line of whatever a user's code raises."""
    try:
      yield
    except InputError:
      raise
    except Exception as error:
      raise InputError(
        f'{argument("clustering", self.name)}: its {what} failed: {type(error).__name__}: {message_of(error)}'
      ) from error
