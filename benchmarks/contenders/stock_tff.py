"""TFF as its tutorials use it: build_weighted_fed_avg, from_keras_model, shuffle, repeat and batch, default context.

Its default context starts a worker of its own, which it leaves running at exit; whoever starts this
program ends its process group (common.Contender does).
"""

import time

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from benchmarks import turns
from tff_cluster.models import build


def main() -> None:
  conversation, flags = turns.Turns(), turns.arguments()
  with np.load(flags.rows_file) as rows:
    x, y = rows['x'], rows['y']
  count = y.shape[1]

  def as_dataset(k: int) -> tf.data.Dataset:
    data = tf.data.Dataset.from_tensor_slices((x[k] / np.float32(255), y[k]))
    return data.shuffle(count).repeat(flags.local_epochs).batch(flags.batch_size)

  datasets = [as_dataset(k) for k in range(len(y))]

  def model_fn() -> tff.learning.models.VariableModel:
    return tff.learning.models.from_keras_model(
      build.build('mnist_cnn', x.shape[2:], 10, flags.seed),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=datasets[0].element_spec,
    )

  process = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(flags.learning_rate),
    server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
  )
  state = process.initialize()

  def run_round() -> float:
    nonlocal state
    start = time.perf_counter()
    state = process.next(state, datasets).state
    return time.perf_counter() - start

  def accuracy() -> float:
    model = build.build('mnist_cnn', x.shape[2:], 10, flags.seed)
    process.get_model_weights(state).assign_weights_to(model)
    logits = model.predict(x.reshape(-1, *x.shape[2:]) / np.float32(255), batch_size=250, verbose=0)
    return float(np.mean(logits.argmax(axis=1) == y.ravel()))

  conversation.ready(parameters=sum(int(np.size(w)) for w in process.get_model_weights(state).trainable))
  conversation.serve(run_round, accuracy)


if __name__ == '__main__':
  main()
