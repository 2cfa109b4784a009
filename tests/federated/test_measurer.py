"""What is sent where models are measured."""

import types

import numpy as np

from tff_cluster.federated.measurer import Measurer


class Recorder:
  """Stands in for workers: keeps the jobs, and answers with the first number of each row."""

  def __init__(self):
    self.jobs, self.result_bytes = [], []

  def each(self, computation, shared, jobs, result_bytes=0):
    self.jobs.append(jobs)
    self.result_bytes.append(result_bytes)
    return ([row[:1] for row in job.rows['x']] for job in jobs)


def test_rows_that_several_models_predict_have_one_name_for_all_of_them():
  workers = Recorder()
  population = types.SimpleNamespace(num_classes=50)
  measurer = Measurer(population, types.SimpleNamespace(predict=None), workers)
  x = np.arange(3_000, dtype=np.float32).reshape(1_000, 3)
  for model in (1.0, 2.0):
    assert (measurer.predict((np.float32(model),), x) == x[:, :1]).all()
  first, second = ([job.key() for job in jobs] for jobs in workers.jobs)
  assert first == second and len(set(first)) == len(first) > 1
  measurer.predict((np.float32(1),), x + 1)
  assert not set(first) & {job.key() for job in workers.jobs[-1]}
  # What comes back counts in the size of a message: a float32 for each class of a piece's rows.
  assert set(workers.result_bytes) == {4 * 50 * len(workers.jobs[0][0].rows['x'])}
