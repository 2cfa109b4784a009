"""The clustering methods as scikit-learn estimators, made from the methods themselves: KMeans, Spectral, ...

An estimator is called like its method's class. Its parameters are the method's options and, where the method draws,
random_state, which stands for an experiment's seed: a number or, as everywhere in scikit-learn, None or a generator. Rows of X are
clients. After `fit` there are membership_ float64[clusters, clients], labels_ int64[clients] where clusters are disjoint,
threshold_ and linkage_ where the method has them, and what else it measured (K-means: inertia_; Bipartition: cross_similarity_,
similarity_gap_).
"""

import functools
import inspect
import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import methods
from tff_cluster.clustering.method import Evidence, Method
from tff_cluster.clustering.outcome import by_first_member
from tff_cluster.clustering.signatures import Signatures


def __getattr__(name: str) -> Any:
  if name in _estimators():
    return _estimators()[name]
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


@functools.cache
def _estimators() -> dict[str, type]:
  found = (estimator(method) for method in methods.METHODS.values() if method.of_vectors)
  return {each.__name__: each for each in found}


def estimator(method: Method[Any]) -> type:
  """Returns a method as a class of estimators.

  Where clusters overlap in general it is no ClusterMixin: then there are no labels, which scikit-learn demands of a
  clusterer.
  """
  declared = {name: field for name, field in method.fields().items() if not field.metadata.get('of_runs')}
  defaults = {name: field.default for name, field in declared.items()} | dict(method.estimator_defaults)
  if method.draws:
    defaults['random_state'] = 0
  place = inspect.Parameter.POSITIONAL_OR_KEYWORD
  parameters = [inspect.Parameter(name, place, default=default) for name, default in defaults.items()]
  signature = inspect.Signature([inspect.Parameter('self', place), *parameters])

  def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
    bound = signature.bind(self, *args, **kwargs)
    bound.apply_defaults()
    for name in defaults:
      setattr(self, name, bound.arguments[name])

  def fit(self: Any, X: np.ndarray, y: object = None) -> Any:
    """Clusters the rows of X, float[clients, features]; y is ignored."""
    X = validate_data(self, X, dtype=(np.float64, np.float32))
    given = {name: _as_option(declared[name], getattr(self, name)) for name in declared}
    evidence = Evidence(Signatures.numbered(X), _seed(getattr(self, 'random_state', 0)))
    try:
      outcome = method.cluster(method.read(given), evidence)
    except InputError as error:
      raise InputError(f'{error} (n_samples={len(X)})') from error
    found = {'membership': outcome.assignment.membership, **outcome.figures}
    if not outcome.assignment.is_overlapping:
      found['labels'] = by_first_member(outcome.assignment.labels)
    elif hasattr(self, 'labels_'):
      del self.labels_
    if 'distance_threshold' in declared:
      found['threshold'] = outcome.threshold
    if outcome.linkage is not None:
      found['linkage'] = outcome.linkage
    for name, value in found.items():
      setattr(self, f'{name}_', value)
    return self

  __init__.__signature__ = signature  # type: ignore[attr-defined]
  kind = type(method)
  bases = (BaseEstimator,) if method.overlaps else (ClusterMixin, BaseEstimator)
  words = f'`{method.name}` as a scikit-learn estimator; rows of X are clients.'
  content = {'__init__': __init__, 'fit': fit, '__doc__': words, '__module__': __name__}
  return type(kind.__name__, bases, content)


def _seed(random_state: Any) -> int:
  """Returns the seed that a random_state stands for; see sklearn.utils.check_random_state."""
  if isinstance(random_state, numbers.Integral):
    return int(random_state)
  return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _as_option(field: Any, value: Any) -> Any:
  """Returns a number as a Python one, or as the text that the option is on a command line."""
  if isinstance(value, np.generic):
    value = value.item()
  if fields_lib.plain_type(field)[0] is str and isinstance(value, (int, float)):
    return str(value)
  return value
