"""A preload for Dask workers that are unlike others: TFF_CLUSTER_TEST_ODD says how (slow, versions, instructions)."""

import os
import time

from tff_cluster.base import environment
from tff_cluster.engine import dask_worker

ODD = os.environ['TFF_CLUSTER_TEST_ODD'].split(',')


def dask_setup(worker):
  about = dict(environment.about_worker())
  if 'versions' in ODD:
    about['packages'] = about['packages'] | {'tensorflow-federated': '0.86.0'}
  if 'instructions' in ODD:
    about['instructions'] = ['sse4_1']
  environment.about_worker = lambda: about
  if 'slow' in ODD:
    computed = dask_worker._computed

    def slowly(*asked):
      time.sleep(0.5)
      return computed(*asked)

    dask_worker._computed = slowly
