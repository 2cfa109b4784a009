"""Several runs: one after the other, side by side in processes of this machine, or as tasks of a Dask cluster."""

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tff_cluster.base import environment
from tff_cluster.base.words import plural
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment import run_claim
from tff_cluster.phases import cost_estimates, cross_validation, main_job, run_experiment, session
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import artifacts, travel
from tff_cluster.studies import run_on_worker, run_process, runs_here

if TYPE_CHECKING:
  import distributed


def run_all(
  planned: Sequence[cost_estimates.Run],
  store: Path,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  runs_in_parallel: int = 1,
) -> list[main_job.Done]:
  """Does runs, or what is left of them, and returns their results in order.

  Nothing is trained, or made, where one of their folders cannot be had.

  On a cluster each run is a task, that starts again from what is at home where its worker is lost. A run that this process
  stops waiting for is lost from where it was, but for what it has put into a store that its worker shares.

  Args:
    planned: The runs.
    store: Folder of the artifacts that they share.
    progress: Where progress is shown.
    machine: The machine, or the cluster.
    runs_in_parallel: Runs side by side on this machine, each in a process of its own; 1: one after the other, in this one;
      0: see runs_here.how_many.

  Raises:
    As run_experiment.run_experiment does, of the first run that fails.
  """
  claims = claimed(planned, store)
  answers = _elsewhere(planned, claims, store, progress, machine, runs_in_parallel)
  here = dataclasses.replace(
    machine, scheduler=None, scheduler_file=None, tls_ca=None, tls_cert=None, tls_key=None
  )
  done = []
  for number, run in enumerate(planned):
    if number in answers:
      ran = answers[number]
      done.append(main_job.Done(results_lib.read(run.folder.results), ran.asked, ran.trained))
      continue
    with progress.run(run.name, number + 1, len(planned)):
      done.append(
        run_experiment.run_experiment(
          run.config, run.folder.root, str(store), progress, here, export_models=False
        )
      )
  return done


def claimed(planned: Sequence[cost_estimates.Run], store: Path) -> list[run_claim.Claim]:
  """Claims the folders of runs, see run_claim.claim_output_dirs; `run_all` does so, and who wants to know earlier."""
  return run_claim.claim_output_dirs([(run.folder.root, run.config.validated()) for run in planned], store)


def _elsewhere(
  planned: Sequence[cost_estimates.Run],
  claims: Sequence[run_claim.Claim],
  store: Path,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine,
  runs_in_parallel: int,
) -> dict[int, run_process.Answer]:
  """Does the runs that are not finished in other processes, where there are several or a cluster; returns answers by position."""
  at_once = runs_here.how_many(planned, machine, runs_in_parallel)
  if machine.cluster is None and at_once < 2:
    return {}
  left = {
    number: claim
    for number, claim in enumerate(claims)
    if claim.adds or not cross_validation.is_done(claim.folder, claim.config)
  }
  if machine.cluster is not None:
    return _on_cluster(left, store, progress, machine) if left else {}
  names = [run.name for run in planned]
  return runs_here.do(names, left, at_once, progress, machine)


def _on_cluster(
  left: Mapping[int, run_claim.Claim],
  store: Path,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine,
) -> dict[int, run_process.Answer]:
  """Does runs on a cluster, and puts what they leave into their folders; returns what came of them by position."""
  from tff_cluster.engine import cluster, cluster_connection

  for claim in left.values():
    session.prepare(claim)
  found: dict[int, run_process.Answer] = {}
  with (
    travel.marked(store) as mark,
    cluster_connection.client(machine) as client,
    progress.phase(f'{plural(len(left), "run")} on the cluster', len(left)),
  ):
    share = max(sum(client.nthreads().values()) // len(left), 1)
    waiting: dict[distributed.Future, int] = {}
    for number, claim in left.items():
      asked = run_on_worker.Asked(
        travel.contents(claim.folder.root),
        mark,
        share,
        environment.about_worker()['packages'],
      )
      name = f'{claim.folder.root.name}-{uuid.uuid4()}'
      waiting[client.submit(run_on_worker.run, asked, key=name, pure=False)] = number
    for future, ran in cluster.as_completed(client, waiting, machine):
      number = waiting[future]
      _take_home(ran, left[number].folder.root, artifacts.Store(store))
      # What is wanted no more is not done again where its worker leaves, and takes no memory there.
      future.release()
      if ran.answer.fault is not None:
        raise ran.answer.fault
      found[number] = ran.answer
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
