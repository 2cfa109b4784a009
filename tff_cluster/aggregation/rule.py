"""What a rule of Phase 3 is: one function, whose parameters' names say what it is given.

A mixing rule makes models of the cluster models; a rule of predictions keeps them apart and combines what they predict; a
training rule has each client train its own model on. The built-in ones are in rules/, one file each; those of users, which mix
or predict, come through of_users.py. Nobody has to ask for a rule's name.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from tff_cluster.base import imports, words
from tff_cluster.base.errors import EnvironmentFault, InputError, argument

# What a rule can be to results and pages, so that these follow from the rules:
CLIENTS = 'clients'  # The models that clients use after Phase 2: the accuracy of a clustering is theirs.
EVERYBODY = 'everybody'  # The one model that stands for a clustering on the global test set.
PICTURE = 'picture'  # Drawn beside CLIENTS, client by client.
SUBJECT = 'subject'  # What pages on experts are about; the other rules of predictions stand beside it.
CEILING = 'ceiling'  # What no choice among the experts can surpass.
# Sums of a user's columns may be off by float32's rounding; they are then made exact.
_SLACK = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class Clusters:
  """What a mixing rule can ask for, by its parameters' names.

  Attributes:
    membership: float64[clusters, clients], 1 where the client is a member, else 0.
    shares: float64[clusters, clients], what each client has of each of its clusters: the shares of soft clusters, else the
      membership.
    best_validation: float64[clusters], highest accuracy that a cluster's model attained on its members' validation rows; of a
      method that alternates, that of the last round.
    train_rows: int64[clients], training rows of each client.
    validation_rows: int64[clients], its validation rows.
    measured: Measures the cluster models on validation rows; called once, by the first rule that asks.
  """

  membership: np.ndarray
  shares: np.ndarray
  best_validation: np.ndarray
  train_rows: np.ndarray
  validation_rows: np.ndarray
  measured: Callable[[], tuple[np.ndarray, np.ndarray]]

  @functools.cached_property
  def _validation(self) -> tuple[np.ndarray, np.ndarray]:
    return self.measured()

  @property
  def validation_accuracy(self) -> np.ndarray:
    """float64[clusters, clients], of each cluster's model on each client's validation rows."""
    return self._validation[0]

  @property
  def validation_loss(self) -> np.ndarray:
    """float64[clusters, clients], mean cross-entropy likewise; NaN or infinite where a model diverged."""
    return self._validation[1]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Rule:
  """What mixing rules and rules of predictions have in common.

  Attributes:
    name: What results call it, and `aggregation` those of predictions.
    words: What pages call it.
    function: What it does.
    position: Where it stands among the built-in rules on pages.
    roles: What it is to results and pages, of the roles above.
    path: The text of `aggregation`, of a user's rule.
    options: What the text gives beside that: values of parameters that have a default.
    code: Digest of a user's code, so that what it gave before it was changed is not taken for what it gives.
  """

  name: str
  words: str
  function: Callable[..., Any]
  position: int = 0
  roles: frozenset[str] = frozenset()
  path: str | None = None
  options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  code: str | None = None
  # Parameters that a function of this kind can have, each with what it is given.
  known: ClassVar[Mapping[str, str]] = MappingProxyType({})
  kind: ClassVar[str] = ''

  @property
  def takes(self) -> tuple[str, ...]:
    """The parameters that it is given something for."""
    return tuple(name for name in parameters(self.function) if name in self.known)

  @property
  def needs(self) -> tuple[str, ...]:
    """Those of them that it does not go without."""
    found = parameters(self.function)
    return tuple(name for name in self.takes if found[name].default is inspect.Parameter.empty)

  @property
  def called(self) -> str:
    """What messages call it."""
    return self.name if self.path is None else argument('aggregation', self.path)

  def check(self, options: Mapping[str, Any]) -> None:
    """Raises InputError where the values of options, whose names are known, are not what the rule allows."""

  def _result(self, given: Mapping[str, Any]) -> Any:
    """Returns what the function returns; one line of whatever a user's code raises, but for what the machine could not do."""
    if self.path is not None:
      # Copies, because a user's function may write into what it is given.
      given = {name: value if callable(value) else np.array(value) for name, value in given.items()}
    try:
      return self.function(**given, **self.options)
    except InputError as error:
      raise InputError(f'{self.called}: {error}') from error
    except (EnvironmentFault, MemoryError):
      raise
    except Exception as error:
      if not imports.is_path(self.path):
        raise
      raise InputError(f'{self.called} failed: {type(error).__name__}: {words.message_of(error)}') from error

  def _array(self, found: Any, expected: str) -> np.ndarray:
    """Returns what the function returned as an array of numbers."""
    try:
      array = np.asarray(found)
    except ValueError:  # Rows of several lengths.
      array = np.empty(0, object)
    if array.dtype.kind not in 'buif':
      raise InputError(f'{self.called} returned {type(found).__name__} without numbers; expected {expected}')
    return array


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MixingRule(Rule):
  """A rule that makes models: column c of its matrix holds the shares that the cluster models have in the c-th new model.

  Attributes:
    of_clusters: What the rule makes of each cluster's model, from their number: float64[clusters, clusters], columns sum
      to 1; None where it makes no model for a cluster.
  """

  of_clusters: Callable[[int], np.ndarray] | None = None
  known: ClassVar[Mapping[str, str]] = MappingProxyType(
    {
      'membership': 'float64[clusters, clients], 1 for members',
      'shares': 'float64[clusters, clients], shares of soft clusters',
      'best_validation': 'float64[clusters]',
      'validation_accuracy': 'float64[clusters, clients]',
      'validation_loss': 'float64[clusters, clients]',
      'validation_rows': 'int64[clients]',
      'train_rows': 'int64[clients]',
    }
  )
  kind: ClassVar[str] = 'mixing'

  def mixing(self, clusters: Clusters) -> np.ndarray:
    """Returns float64[clusters, clients], each client's model, or [clusters, 1], one model for everybody.

    Raises:
      InputError: if the function fails, or returns no such matrix.
    """
    count, clients = clusters.membership.shape
    expected = f'numbers [{count} clusters, {clients} clients], or [{count} clusters, 1] for one model'
    found = self._result({name: getattr(clusters, name) for name in self.takes})
    matrix = self._array(found, expected).astype(np.float64)
    if matrix.shape not in ((count, clients), (count, 1)):
      raise InputError(f'{self.called} returned shape {list(matrix.shape)}; expected {expected}')
    for wrong, what in ((~np.isfinite(matrix), 'a finite number'), (matrix < 0.0, 'at least 0')):
      if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
          f'{self.called} returned {matrix[row, column]:g} for cluster {row}, column {column}; every share must be {what}'
        )
    sums = matrix.sum(axis=0)
    if not np.allclose(sums, 1.0, rtol=0.0, atol=_SLACK):
      column = int(np.argmax(np.abs(sums - 1.0)))
      raise InputError(
        f'{self.called} returned shares that sum to {sums[column]:.6g} in column {column}; rows are clusters, columns are '
        'the new models (one a client), and every column must sum to 1'
      )
    # Built-in rules have the bits that they have.
    return matrix if self.path is None else matrix / sums


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PredictionRule(Rule):
  """A rule that predicts rows from what all cluster models give for them. The lowest class wins a tie.

  Its function returns int[rows], a class each. Probabilities are float64, finite and not negative.
  """

  known: ClassVar[Mapping[str, str]] = MappingProxyType(
    {
      'probabilities': 'float64[clusters, rows, classes]',
      'validation_probabilities': 'float64[clusters, validation rows, classes]',
      'validation_labels': 'int64[validation rows]',
      'own_clusters': 'bool[clusters], those that the client is in',
      'start_weights': 'float64[clusters, classes], of a file only',
      'labels': 'int64[rows], of experts only',
    }
  )
  kind: ClassVar[str] = 'prediction'
  # What can be given for the rows of a client: never their labels.
  of_clients: ClassVar[tuple[str, ...]] = (
    'probabilities',
    'validation_probabilities',
    'validation_labels',
    'own_clusters',
  )

  def can_do_with(self, given: Mapping[str, Any]) -> bool:
    """Tells whether all that it needs is among what is given (None: it is not known)."""
    return all(given.get(name) is not None for name in self.needs)

  def predict(self, given: Mapping[str, Any]) -> np.ndarray:
    """Returns the predictions int64[rows].

    Args:
      given: By name, see `known`; at least what the rule needs.

    Raises:
      InputError: if the function fails, or returns no such predictions.
    """
    _, rows, classes = np.shape(given['probabilities'])
    expected = f'a class from 0 to {classes - 1} for each of {rows} rows'
    found = self._result({name: given[name] for name in self.takes if given.get(name) is not None})
    predictions = self._array(found, expected)
    if predictions.shape != (rows,):
      raise InputError(f'{self.called} returned shape {list(predictions.shape)}; expected {expected}')
    if predictions.dtype.kind not in 'iu':
      raise InputError(f'{self.called} returned {predictions.dtype.name}; expected {expected}')
    wrong = predictions[(predictions < 0) | (predictions >= classes)]
    if len(wrong):
      raise InputError(f'{self.called} returned class {wrong[0]}; expected {expected}')
    return predictions.astype(np.int64)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TrainingRule(Rule):
  """A rule in which each client trains its own model on for itself, for as many rounds as its function returns.

  The function has an option `rounds`, the most that it may try.
  """

  known: ClassVar[Mapping[str, str]] = MappingProxyType(
    {'train': 'trains so many rounds, pulled so hard, and returns float64[rounds + 1] of validation accuracy'}
  )
  kind: ClassVar[str] = 'training'

  @property
  def most_rounds(self) -> int:
    """The most rounds that clients try."""
    return self.options.get('rounds', parameters(self.function)['rounds'].default)

  def check(self, options: Mapping[str, Any]) -> None:
    """Raises InputError where the function fails, which is called without training anything, or takes no `rounds`."""
    if 'rounds' not in parameters(self.function):
      raise InputError('a rule that trains needs a parameter rounds, the most that clients try')
    try:
      found = self.function(train=lambda rounds, proximal_mu=0.0: np.zeros(rounds + 1), **options)
    except InputError:
      raise
    except Exception as error:
      raise InputError(f'it fails: {type(error).__name__}: {words.message_of(error)}') from error
    _number_of_rounds('it', found, dataclasses.replace(self, options=options).most_rounds)

  def stop(self, train: Callable[[int, float], np.ndarray]) -> int:
    """Returns after how many rounds clients stop; see rules/fine_tuned.py.

    Raises:
      InputError: if the function fails, or returns no number of rounds from 0 to most_rounds.
    """
    return _number_of_rounds(self.called, self._result({'train': train}), self.most_rounds)


def _number_of_rounds(called: str, found: Any, most: Any) -> int:
  """Returns what a rule that trains returned; raises InputError where it is no number of rounds that it may take."""
  if isinstance(most, bool) or not isinstance(most, int) or most < 1:
    raise InputError(f'rounds={most}: must be a whole number, at least 1')
  if isinstance(found, bool) or not isinstance(found, (int, np.integer)) or not 0 <= found <= most:
    raise InputError(f'{called} returned {found!r}; expected a number of rounds, from 0 to {most}')
  return int(found)


def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
  """Returns the parameters of a function by name."""
  return inspect.signature(function).parameters
