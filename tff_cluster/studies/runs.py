"""Several runs: one after the other on this machine, or side by side as tasks of a Dask cluster."""

import dataclasses
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tff_cluster.base import environment
from tff_cluster.base.words import plural
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import run_claim
from tff_cluster.phases import cost_estimates, main_job, run_experiment, session
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import artifacts, travel
from tff_cluster.studies import run_on_worker

if TYPE_CHECKING:
  import distributed


def run_all(
  planned: Sequence[cost_estimates.Run],
  store: Path,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
) -> list[main_job.Done]:
  """Does runs, or what is left of them, and returns their results in order.

  On a cluster each run is a task, that starts again from what is at home where its worker is lost. A run that this process
  stops waiting for is lost from where it was, but for what it has put into a store that its worker shares.

  Args:
    planned: The runs; experiments without folds.
    store: Folder of the artifacts that they share.
    progress: Where progress is shown.
    machine: The machine, or the cluster.

  Raises:
    As run_experiment.run_experiment does, of the first run that fails.
  """
  on_cluster = _on_cluster(planned, store, progress, machine) if machine.cluster is not None else {}
  done = []
  for number, run in enumerate(planned):
    with progress.run(run.name, number + 1, len(planned)):
      # Of what a cluster has done, this reads what came home.
      local = dataclasses.replace(
        machine, scheduler=None, scheduler_file=None, tls_ca=None, tls_cert=None, tls_key=None
      )
      found = run_experiment.run_experiment(
        run.config,
        run.folder.root,
        str(store),
        progress,
        local if on_cluster else machine,
        export_models=False,
      )
    if number in on_cluster:
      ran = on_cluster[number]
      found = dataclasses.replace(found, asked=ran.asked, trained=ran.trained)
    done.append(found)
  return done


def _on_cluster(
  planned: Sequence[cost_estimates.Run],
  store: Path,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine,
) -> dict[int, run_on_worker.Ran]:
  """Does the runs that are not finished on a cluster, and puts what they leave into their folders; returns them by position."""
  from tff_cluster.engine import cluster, cluster_connection

  claims = [
    run_claim.claim_output_dir(run.folder.root, run.config.validated(), str(store)) for run in planned
  ]
  left = [
    number
    for number, claim in enumerate(claims)
    if claim.adds or not main_job.is_done(claim.folder, claim.config)
  ]
  if not left:
    return {}
  for number in left:
    session.prepare(claims[number])
  found: dict[int, run_on_worker.Ran] = {}
  with (
    travel.marked(store) as mark,
    cluster_connection.client(machine) as client,
    progress.phase(f'{plural(len(left), "run")} on the cluster', len(left)),
  ):
    share = max(sum(client.nthreads().values()) // len(left), 1)
    waiting: dict[distributed.Future, int] = {}
    for number in left:
      asked = run_on_worker.Asked(
        travel.contents(claims[number].folder.root),
        mark,
        share,
        environment.about_worker()['packages'],
      )
      name = f'{claims[number].folder.root.name}-{uuid.uuid4()}'
      waiting[client.submit(run_on_worker.run, asked, key=name, pure=False)] = number
    for future, ran in cluster.as_completed(client, waiting, machine):
      number = waiting[future]
      _take_home(ran, claims[number].folder.root, artifacts.Store(store))
      if ran.fault is not None:
        raise ran.fault
      found[number] = ran
      progress.update()
  return found


def _take_home(ran: run_on_worker.Ran, root: Path, store: artifacts.Store) -> None:
  """Writes what a run has left: artifacts first, since the files of phases name them."""
  by_folder: dict[str, dict[str, bytes]] = {}
  for name, content in ran.artifacts.items():
    folder, _, file = name.partition('/')
    by_folder.setdefault(folder, {})[file] = content
  for folder, contents in by_folder.items():
    place = store.root / folder
    with store.working_on(place):
      travel.put(place, {name: each for name, each in contents.items() if not (place / name).exists()})
  travel.put(root, ran.files)
