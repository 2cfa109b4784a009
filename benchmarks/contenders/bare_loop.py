"""Federated averaging by hand: one process, no TFF, TensorFlow with two threads inside an op.

What makes it fast, each step measured (see README.md): the weights are variables that are updated in place
by the fused op; the loss takes logits in the fused op; the client's rows stay bytes until a batch of them is
used. Its forms are

  client  one tf.function over all steps of a client (the faster one, which is what is compared with)
  step    one tf.function a batch, called with NumPy arrays
"""

import time

import numpy as np
import tensorflow as tf

from benchmarks import turns
from tff_cluster.base import seeding
from tff_cluster.models import build


def main() -> None:
  conversation, flags = turns.Turns(), turns.arguments()
  tf.config.threading.set_intra_op_parallelism_threads(2)
  with np.load(flags.rows_file) as rows:
    x, y = rows['x'], rows['y']
  clients, count = y.shape
  model = build.build('mnist_cnn', x.shape[2:], 10, flags.seed)
  variables = model.trainable_variables
  rate = tf.constant(flags.learning_rate)
  size = flags.batch_size

  def step(batch_x: tf.Tensor, batch_y: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
      logits = model(tf.cast(batch_x, tf.float32) / 255.0, training=True)
      losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch_y, logits=logits)
      loss = tf.reduce_mean(losses)
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
      tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)

  # Not inlined into the loop: inside a loop's graph TensorFlow finds the fast pooling gradient by luck only.
  step_function = tf.function(step, reduce_retracing=True, experimental_attributes={'_noinline': True})

  @tf.function
  def client_function(client_x: tf.Tensor, client_y: tf.Tensor, order: tf.Tensor) -> None:
    for epoch in tf.range(tf.shape(order)[0]):
      for start in tf.range(0, count, size):
        visit = order[epoch, start : tf.minimum(start + size, count)]
        step_function(tf.gather(client_x, visit), tf.gather(client_y, visit))

  def train_client(k: int, order: np.ndarray) -> None:
    if flags.form == 'step':
      for visit in order:
        for start in range(0, count, size):
          step_function(x[k, visit[start : start + size]], y[k, visit[start : start + size]])
    else:
      client_function(x[k], y[k], order)

  average = [variable.numpy() for variable in variables]
  number = 0

  def run_round() -> float:
    nonlocal average, number
    begin, number = time.perf_counter(), number + 1
    total = [np.zeros_like(weights) for weights in average]
    for k in range(clients):
      rng = seeding.generator(flags.seed, 'visit order', number, k)
      order = np.stack([rng.permutation(count) for _ in range(flags.local_epochs)]).astype(np.int32)
      for variable, weights in zip(variables, average, strict=True):
        variable.assign(weights)
      train_client(k, order)
      for accumulated, variable in zip(total, variables, strict=True):
        accumulated += variable.numpy()
    # All clients have as many rows, so the mean weighted by rows is the plain one.
    average = [weights / clients for weights in total]
    return time.perf_counter() - begin

  def accuracy() -> float:
    model.set_weights(average)
    logits = model.predict(x.reshape(-1, *x.shape[2:]) / np.float32(255), batch_size=250, verbose=0)
    return float(np.mean(logits.argmax(axis=1) == y.ravel()))

  conversation.ready(parameters=model.count_params())
  conversation.serve(run_round, accuracy)


if __name__ == '__main__':
  main()
