"""The TFF computations of the suite, built once a process and used for every cluster and every seed."""

import collections
import copy
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.federated import client_work as client_work_lib
from tff_cluster.federated import evaluations, fed_avg, optimizers

_T = TypeVar('_T')
_building = threading.RLock()  # One property builds another one.


class _BuiltOnce(Generic[_T]):
  """A property that is computed at its first use, for an object and all that share what it has built."""

  def __init__(self, build: Callable[['Computations'], _T]):
    self._build = build
    self.__doc__ = build.__doc__

  def __get__(self, owner: 'Computations', kind: type) -> _T:
    name = self._build.__name__
    with _building:
      if name not in owner.built:
        owner.built[name] = self._build(owner)
    return cast(_T, owner.built[name])


class Computations:
  """Everything that runs in the worker; each computation is built when it is first used, and once.

  Attributes:
    model: The model that they train.
    local: How clients train.
    server: How the server steps.
    built: What was built so far, by name.
  """

  def __init__(
    self,
    model: client_work_lib.Model,
    local: optimizers.Local,
    server: optimizers.Server = optimizers.MEAN,
    aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  ):
    """Takes what determines the computations.

    Args:
      model: The model.
      local: How clients train.
      server: How the server steps; default: the model becomes the mean (McMahan 2017).
      aggregator: How updates are aggregated; default: the mean weighted by rows (McMahan 2017). Any of
        TFF's weighted factories fits.
    """
    self.model = model
    self.built: dict[str, object] = {}
    self.local = local
    self.server = server
    self._aggregator = aggregator
    self._variants: dict[optimizers.Local, Computations] = {}

  def with_weights(self, weights: Sequence[np.ndarray]) -> 'Computations':
    """Returns these computations for a model of the same architecture with other initial weights; what is built is shared.

    No computation holds weights: the worker is sent them.
    """
    other = copy.copy(self)
    other.model = dataclasses.replace(self.model, weights=tuple(np.asarray(w, np.float32) for w in weights))
    return other

  def varied(
    self, proximal_mu: float | None = None, weighs_rows: bool = False, brings_anchor: bool = False
  ) -> 'Computations':
    """Returns these computations for clients that train in another way, see optimizers.Local; they are built once, too."""
    mu = self.local.proximal_mu if proximal_mu is None else proximal_mu
    local = dataclasses.replace(
      self.local, proximal_mu=mu, weighs_rows=weighs_rows, brings_anchor=brings_anchor
    )
    if local == self.local:
      return self
    with _building:
      if local not in self._variants:
        self._variants[local] = Computations(self.model, local, self.server, self._aggregator)
    return self._variants[local].with_weights(self.model.weights)

  @property
  def alone(self) -> 'Computations':
    """These computations without aggregator and optimizer of the server: those of a client that trains for itself."""
    if self.is_mean:
      return self
    return self._alone.with_weights(self.model.weights)

  @_BuiltOnce
  def _alone(self) -> 'Computations':
    return Computations(self.model, self.local)

  @property
  def adds_up_chunks(self) -> bool:
    """Whether a round is a mean, which is added up chunk by chunk; other aggregators take every client's update."""
    return self._aggregator is None

  @property
  def is_mean(self) -> bool:
    """Whether after a round the model is the mean of the clients': nothing else is done with updates or mean."""
    return self.adds_up_chunks and self.server.is_mean

  @_BuiltOnce
  def learning_process(self) -> tff.templates.IterativeProcess:
    """FedAvg. One process serves all clusters: each cluster is one state."""
    return fed_avg.build_fed_avg(self.initialize, self.client_results, self.finish_each)

  def several_rounds(self, count: int) -> tff.Computation:
    """A round of each of so many models in one call; see fed_avg.build_several_rounds."""
    with _building:
      if (computation := self._of_several.get(count)) is None:
        computation = self._of_several[count] = fed_avg.build_several_rounds(self.model, self.local, count)
    return computation

  @_BuiltOnce
  def _of_several(self) -> dict[int, tff.Computation]:
    return {}

  @_BuiltOnce
  def initialize(self) -> tff.Computation:
    """() -> state@SERVER, before the first round."""
    result_type = self.client_results.type_signature.result.member
    return fed_avg.build_initialize(self.model, self.server, result_type, self._aggregator)

  @_BuiltOnce
  def totals(self) -> tff.Computation:
    """({weights}@SERVER, {client data}@CLIENTS) -> <sum=<update, weight>, counts>@SERVER, a round's sums over clients.

    `update` is the sum of updates (before minus after) times their weights; chunks are added up as in a round.
    """
    return fed_avg.build_totals(self.model, self.local)

  @_BuiltOnce
  def finish_mean(self) -> tff.Computation:
    """(state@SERVER, {totals}@CLIENTS, a client a chunk) -> <state, metrics>: the rest of a round of learning_process."""
    totals_type = self.totals.type_signature.result.member
    return fed_avg.build_finish_mean(
      self.model, self.server, totals_type, self.initialize.type_signature.result
    )

  @_BuiltOnce
  def add_totals(self) -> tff.Computation:
    """({totals}@CLIENTS) -> {totals}@SERVER, their sum, one after the other."""

    @tff.federated_computation(tff.types.FederatedType(self.totals.type_signature.result.member, tff.CLIENTS))
    def add_totals(totals):
      return tff.federated_sum(totals)

    return add_totals

  @_BuiltOnce
  def client_results(self) -> tff.Computation:
    """({weights}@SERVER, {client data}@CLIENTS) -> <result, counts>@CLIENTS: a round of learning_process up to its sums."""
    client_result = client_work_lib.build_client_result(self.model, self.local)
    weights_type, data_type = client_result.type_signature.parameter

    @tff.federated_computation(
      tff.types.FederatedType(weights_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
    )
    def client_results(weights, data):
      return tff.federated_map(client_result, (tff.federated_broadcast(weights), data))

    return client_results

  @_BuiltOnce
  def finish_each(self) -> tff.Computation:
    """(state@SERVER, {client results}@CLIENTS) -> <state, metrics>: the rest of a round, for any aggregator."""
    return fed_avg.build_finish_each(
      self.model,
      self.server,
      self.client_results.type_signature.result.member,
      self.initialize.type_signature.result,
      self._aggregator,
    )

  @_BuiltOnce
  def local_updates(self) -> tff.Computation:
    """({weights}@SERVER, {client data}@CLIENTS) -> {float32[features]}@CLIENTS.

    What each client's weights became minus what they were, times its scale, flattened in the order of the
    weights; NaN where it is not finite.
    """
    local_update = self._local_update

    @tff.federated_computation(*self._round_types)
    def local_updates(weights, data):
      return tff.federated_map(local_update, (tff.federated_broadcast(weights), data))

    return local_updates

  @_BuiltOnce
  def local_sketches(self) -> tff.Computation:
    """({weights}@SERVER, {projection}@SERVER, {client data}@CLIENTS) -> {float32[dimension]}@CLIENTS.

    Each client projects its update before it sends it: feature f is added, with sign signs[f], to entry
    buckets[f] (clustering.sketch draws both).
    """
    projection_type = tff.types.tensorflow_to_type(
      collections.OrderedDict(
        buckets=tf.TensorSpec([None], tf.int32),
        signs=tf.TensorSpec([None], tf.int8),
        dimension=tf.TensorSpec([], tf.int32),
      )
    )
    local_update = self._local_update

    @tff.tensorflow.computation(local_update.type_signature.result, projection_type)
    def project(update, projection):
      signed = update * tf.cast(projection['signs'], tf.float32)
      return tf.math.unsorted_segment_sum(signed, projection['buckets'], projection['dimension'])

    @tff.federated_computation(
      self._round_types[0], tff.types.FederatedType(projection_type, tff.SERVER), self._round_types[1]
    )
    def local_sketches(weights, projection, data):
      updates = tff.federated_map(local_update, (tff.federated_broadcast(weights), data))
      return tff.federated_map(project, (updates, tff.federated_broadcast(projection)))

    return local_sketches

  @_BuiltOnce
  def evaluate(self) -> tff.Computation:
    """({weights}@SERVER, {x, y}@CLIENTS) -> {counts int32[3, classes], loss_sum float32}@CLIENTS; see class_counts.Scores."""
    return evaluations.build_evaluate(self.model)

  @_BuiltOnce
  def evaluate_each(self) -> tff.Computation:
    """({x, y, weights}@CLIENTS) -> as `evaluate`, where every client brings the model that it measures."""
    return evaluations.build_evaluate_each(self.model)

  @_BuiltOnce
  def row_losses(self) -> tff.Computation:
    """({weights, stacked [models, ...]}@SERVER, {x, y}@CLIENTS) -> {float32[models, rows]}@CLIENTS, each row's cross-entropy."""
    return evaluations.build_row_losses(self.model)

  @_BuiltOnce
  def predict(self) -> tff.Computation:
    """({weights}@SERVER, {x}@CLIENTS) -> {float32[rows, classes]}@CLIENTS, the model's probabilities."""
    return evaluations.build_predict(self.model)

  @_BuiltOnce
  def _local_update(self) -> tff.Computation:
    update_fn = client_work_lib.build_client_update(self.model, self.local)
    data_type = tff.types.tensorflow_to_type(client_work_lib.client_data_spec(self.model, self.local))

    @tff.tensorflow.computation(self.model.weights_type, data_type)
    def local_update(weights, data):
      update, _, _, _, finite = update_fn(weights, data)
      flat = tf.concat([tf.reshape(-u, [-1]) for u in update], axis=0)
      # A zero update would pass for a client that has nothing to learn.
      return tf.where(finite, flat, tf.fill(tf.shape(flat), float('nan')))

    return local_update

  @property
  def _round_types(self) -> tuple[tff.Type, tff.Type]:
    data_type = tff.types.tensorflow_to_type(client_work_lib.client_data_spec(self.model, self.local))
    return (
      tff.types.FederatedType(self.model.weights_type, tff.SERVER),
      tff.types.FederatedType(data_type, tff.CLIENTS),
    )
