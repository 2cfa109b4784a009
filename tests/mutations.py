"""Faults planted on purpose, one at a time, and the tests that must find each: `python -m tests.mutations [--only=NAME]`.

Run by hand, never by `make test`: each fault costs a run of the test files that are named beside it. The program works on
a copy of this tree. A fault is found where a test of those files fails with it and passes without it.
"""

import argparse
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).parents[1]
_COPIED = (
  'tff_cluster',
  'phases',
  'benchmarks',
  'tests',
  'flags',
  'docs',
  'setup.cfg',
  'README.md',
  'BUILD.md',
)
_FAILED = 1  # Exit code of pytest where tests ran and some failed.


@dataclasses.dataclass(frozen=True)
class Fault:
  """A change of one place that makes the software wrong.

  Attributes:
    name: What --only takes.
    file: Path of the module below tff_cluster/.
    old: Text that occurs exactly once in it.
    new: What takes its place.
    seen: What a user would see.
    tests: Test files below tests/, any of which finds it.
  """

  name: str
  file: str
  old: str
  new: str
  seen: str
  tests: tuple[str, ...]


FAULTS = (
    # Clustering.
    Fault(
        'zero-vectors-apart', 'clustering/distances.py',
        'result[np.ix_(zero, zero)] = 0.0', 'pass',
        'clients whose updates are all zero are as far from each other as from anybody',
        ('clustering/test_distances.py',),
    ),
    Fault(
        'cancelled-distances', 'clustering/distances.py',
        'np.float32: 0.05,', 'np.float32: 0.0,',
        'distances of clients that are nearly alike are wrong by whole multiples',
        ('clustering/test_distances.py',),
    ),
    Fault(
        'mean-with-the-diagonal', 'clustering/thresholds.py',
        'np.clip(pairs.mean(), pairs.min(), pairs.max())', 'np.clip(distances.mean(), pairs.min(), pairs.max())',
        'the mean threshold counts the zero distances of clients to themselves and is too low',
        ('clustering/methods/test_dynamic_distance.py',),
    ),
    Fault(
        'link-only-below-the-threshold', 'clustering/methods/dynamic_distance.py',
        'links = distances <= (0.0 if threshold is None else threshold)', 'links = distances < (0.0 if threshold is None else threshold)',
        'clients exactly at the threshold are not linked',
        ('clustering/methods/test_dynamic_distance.py',),
    ),
    Fault(
        'neighbourhoods-without-a-centre', 'clustering/methods/dynamic_distance.py',
        '<= limit).all(axis=1)]', '<= limit).any(axis=1)]',
        'new clients join neighbourhoods whose centre they are not near',
        ('clustering/test_newcomer_rules.py',),
    ),
    Fault(
        'cut-at-the-wrong-height', 'clustering/methods/hierarchical.py',
        'float((low + heights[done]) / 2)', 'float(heights[done])',
        'asking a hierarchical clustering for a number of clusters cuts one merge too late',
        ('clustering/methods/test_hierarchical.py', 'clustering/test_replay.py'),
    ),
    Fault(
        'one-start-of-k-means', 'clustering/methods/kmeans.py',
        'n_init=_STARTS', 'n_init=1',
        'k-means ends in a poor optimum for many seeds',
        ('clustering/methods/test_kmeans.py',),
    ),
    Fault(
        'one-sided-neighbours', 'clustering/methods/spectral.py',
        'return 0.5 * (near + near.T)', 'return near',
        'spectral clustering works on a graph that is not symmetric',
        ('clustering/methods/test_spectral.py',),
    ),
    Fault(
        'bipartition-by-the-wrong-similarity', 'clustering/halves.py',
        'across = max(across, float(row[~same].max()))', 'across = max(across, float(row[~same].mean()))',
        'the similarity gap of a split is larger than it is, so that a guard lets it pass',
        ('clustering/methods/test_bipartition.py',),
    ),
    Fault(
        'split-again-at-once', 'clustering/methods/bipartition.py',
        'first_test = trained.round + options.rounds_before_split', 'first_test = trained.round + 1',
        'a new cluster is split again before it has trained rounds_before_split rounds',
        ('clustering/methods/test_bipartition.py', 'phases/test_recursion.py'),
    ),
    Fault(
        'diverged-clients-in-every-cluster', 'clustering/diverged_clients.py',
        'row = largest(assignment)', 'row = 0',
        'clients that diverged are put into the first cluster instead of the largest',
        ('clustering/test_diverged_clients.py',),
    ),
    # Scores of recovery.
    Fault(
        'omega-counts-pairs-with-oneself', 'clustering/recovery.py',
        'others[np.arange(len(shared)), start + np.arange(len(shared))] = False', 'pass',
        'the Omega index is not the adjusted Rand index where nothing overlaps',
        ('clustering/test_recovery.py',),
    ),
    Fault(
        'nmi-by-the-smaller-entropy', 'clustering/overlap_scores.py',
        'largest = max(of_a, of_b)', 'largest = min(of_a, of_b)',
        'overlapping NMI of a far too fine clustering is too high, above 1 at times',
        ('clustering/test_recovery.py',),
    ),
    Fault(
        'recall-is-precision', 'clustering/overlap_scores.py',
        'recall[rows] = _mean_share(both, belonging, counts)', 'recall[rows] = _mean_share(both, together, counts)',
        'BCubed recall of clusters that are too small is 1',
        ('clustering/test_recovery.py',),
    ),
    Fault(
        'rand-index-of-an-overlap', 'clustering/recovery.py',
        'overlapping = assignment.is_overlapping or bool((groups.sum(axis=0) > 1).any())',
        'overlapping = assignment.is_overlapping',
        'groups that overlap are compared as if each client had its first group only',
        ('clustering/test_recovery.py',),
    ),
    # Mixing and experts.
    Fault(
        'weighted-by-squares', 'aggregation/rules/weighted.py',
        'shares = scores / highest', 'shares = (scores / highest) ** 2',
        'the weighted average leans to the best clusters more than the paper says',
        ('aggregation/test_mixing.py',),
    ),
    Fault(
        'blended-the-other-way', 'aggregation/rules/blended.py',
        'return 0.5 * np.eye(num_clusters) + 0.5 / num_clusters', 'return 0.4 * np.eye(num_clusters) + 0.6 / num_clusters',
        'the blended evaluation has too much of the average in it',
        ('aggregation/test_mixing.py', 'golden/test_rohith2020.py'),
    ),
    Fault(
        'diverged-model-spreads', 'aggregation/mixing.py',
        'for model in np.flatnonzero(weights):\n    total += weights', 'for model in range(len(weights)):\n    total += weights',
        'one diverged cluster makes NaN of the models of clients that are not in it',
        ('aggregation/test_mixing.py',),
    ),
    Fault(
        'ties-of-votes', 'aggregation/rules/vote.py',
        'return np.where(most, outputs.mean(axis=0), -1.0).argmax(axis=1)', 'return most.argmax(axis=1)',
        'a tie of experts goes to the lowest class instead of the one that they are surer of',
        ('aggregation/test_experts.py',),
    ),
    # Rounds and trajectories.
    Fault(
        'clients-weigh-the-same', 'federated/client_work.py',
        "weight = tf.where(finite, data['weight'], 0.0)", 'weight = tf.where(finite, 1.0, 0.0)',
        'federated averaging ignores how many rows clients have',
        ('federated/test_training.py',),
    ),
    Fault(
        'chunks-in-one-sum', 'federated/chunked_sum.py',
        "tf.cond(sent['last'], end_of_chunk", "tf.cond(sent['last'] & False, end_of_chunk",
        'nothing that clients train reaches the sum, as no chunk ever ends',
        ('federated/test_chunked_sum.py',),
    ),
    Fault(
        'clients-of-the-first-model', 'federated/trainer.py',
        "'which': np.int32(position)", "'which': np.int32(0)",
        'where models train in one call, all clients train the first of them',
        ('federated/test_chunked_sum.py',),
    ),
    Fault(
        'bytes-not-scaled', 'federated/client_work.py',
        'return tf.cast(x, tf.float32) / 255.0 if', 'return tf.cast(x, tf.float32) if',
        'pictures reach the model as 0 to 255, and training diverges or crawls',
        ('federated/test_training.py',),
    ),
    Fault(
        'one-cohort-for-everybody', 'federated/trainer.py',
        "generator = seeding.generator(self.seed, 'cohort', names, round_number)",
        "generator = seeding.generator(self.seed, 'cohort', names)",
        'with a cohort fraction the same clients train in every round',
        ('federated/test_training.py',),
    ),
    Fault(
        'one-visit-order', 'federated/trainer.py',
        "'visit order', round_number, population", "'visit order', 1, population",
        'clients visit their rows in the same order in every round',
        ('federated/test_training.py',),
    ),
    Fault(
        'rate-of-round-1', 'federated/trainer.py',
        'rate = computations.local.rate(round_number)', 'rate = computations.local.rate(1)',
        'the learning rate never decays',
        ('federated/test_optimizers.py',),
    ),
    Fault(
        'no-anchor', 'federated/optimizers.py',
        'self.proximal_mu * (w - a) for g, w, a', 'self.proximal_mu * w for g, w, a',
        'FedProx pulls clients to zero instead of to the model of the round',
        ('federated/test_optimizers.py',),
    ),
    Fault(
        'server-forgotten', 'federated/fed_avg.py',
        'optimizer = server.build()', 'optimizer = optimizers.MEAN.build()',
        'the server follows the mean whatever optimizer was asked for',
        ('federated/test_optimizers.py',),
    ),
    Fault(
        'dropout-while-measuring', 'federated/keras_graph.py',
        'return copy(x, training=seed is not None or not self.draws)', 'return copy(x, training=True)',
        'a model is measured with dropout',
        ('federated/test_dropout.py',),
    ),
    Fault(
        'settings-name-nothing', 'federated/trajectory.py',
        "'settings': self.settings,", "'settings': None,",
        'a run with another learning rate is given the models of an earlier one from a shared store',
        ('federated/test_trajectory.py',),
    ),
    Fault(
        'kept-rounds-removed', 'storage/saved_rounds.py',
        "if saved < number and old.name.startswith('latest_'):", 'if saved < number:',
        'models of rounds that another run asked for are lost from a store',
        ('federated/test_trajectory.py',),
    ),
    Fault(
        'aggregator-forgotten', 'federated/trajectory.py',
        'same = len(kept) == len(fresh) and all(map(np.array_equal, kept, fresh))', 'same = True',
        'a cluster goes on from FedAvg though it started from other weights',
        ('federated/test_trajectory.py',),
    ),
    Fault(
        'equal-cost-one-round-late', 'phases/equal_cost.py',
        'Affordable(first_round + row, spent[row])', 'Affordable(first_round + row + 1, spent[row])',
        'a clustering is measured at equal cost after it spent more than FedAvg',
        ('phases/test_phase2.py',),
    ),
    Fault(
        'users-in-another-order', 'phases/evaluation.py',
        'select(\n    np.argsort(np.concatenate(users))\n  )', 'select(slice(None))',
        "accuracies stand beside other clients' names",
        ('phases/test_phase3.py',),
    ),
    Fault(
        'precision-is-recall', 'data/class_counts.py',
        'return _macro(counts, counts[1])', 'return _macro(counts, counts[0])',
        'macro precision shows macro recall',
        ('data/test_class_counts.py',),
    ),
    Fault(
        'keys-of-draws-as-text', 'base/seeding.py',
        'plain = [k if isinstance(k, str) else int(k) for k in keys]', 'plain = [str(k) for k in keys]',
        'two different draws, of client "1" and of round 1, come out alike',
        ('base/test_seeding.py',),
    ),
    # Store, files, locks and folders of runs.
    Fault(
        'writers-swept', 'storage/files.py',
        'if is_ours and filelock.lock_descriptor(descriptor, blocking=False):', 'if is_ours:',
        'of two programs that write the same file one fails',
        ('storage/test_files.py',),
    ),
    Fault(
        'written-in-place', 'storage/files.py',
        'os.replace(temporary, path)', "path.write_bytes(pathlib.Path(temporary).read_bytes())",
        'who reads a file while it is written anew gets a part of it',
        ('storage/test_files.py',),
    ),
    Fault(
        'arrays-unchecked', 'storage/files.py',
        'if found is None or found.tobytes().hex() != _checksum(arrays):', 'if found is None:',
        'changed numbers of a trained model are used without a word',
        ('storage/test_files.py',),
    ),
    Fault(
        'rows-unchecked', 'storage/files.py',
        "if not isinstance(expected, dict) or expected.get('sha256') != digests.of_arrays(array):",
        'if not isinstance(expected, dict):',
        'changed signatures of clients are clustered without a word',
        ('storage/test_files.py',),
    ),
    Fault(
        'seal-unchecked', 'storage/sealed_json.py',
        'if hashlib.sha256(body).hexdigest() != found[2].decode():', 'if not found[2]:',
        'a changed number in results.json is reported as measured',
        ('storage/test_sealed_json.py',),
    ),
    Fault(
        'set-aside-over-another', 'storage/files.py',
        "ending = next(e for e in endings if not any(os.path.lexists(f'{file}{e}') for file in files))", 'ending = next(endings)',
        'of two damaged files that were kept the first is lost',
        ('storage/test_files.py',),
    ),
    Fault(
        'permissions-widened', 'storage/files.py',
        'os.chmod(temporary, kept)', 'os.chmod(temporary, 0o644)',
        'a file that its owner had made private can be read by everybody once it is written anew',
        ('storage/test_files.py',),
    ),
    Fault(
        'foreign-files-pruned', 'storage/artifacts.py',
        'if not is_free or set(folder.iterdir()) != set(_own_files(folder)):', 'if not is_free:',
        "pruning a store takes an artifact apart in which somebody keeps files",
        ('storage/test_artifacts.py',),
    ),
    Fault(
        'any-folder-is-an-artifact', 'storage/artifacts.py',
        '[:24] == match[2]', '[:24] != \'\'',
        'a folder of a user that looks like an artifact is pruned',
        ('storage/test_artifacts.py',),
    ),
    Fault(
        'removed-folder-comes-back', 'storage/output_folders.py',
        'raise fault', 'return',
        'a run whose folder was removed while it worked writes half of it back',
        ('storage/test_output_folders.py',),
    ),
    Fault(
        'two-runs-in-a-folder', 'storage/output_folders.py',
        '      acquired.acquire()\n      return acquired', '      return acquired',
        'two programs work in one folder at a time and mix their files',
        ('storage/test_output_folders.py',),
    ),
    Fault(
        'another-experiment-goes-on', 'experiment/run_claim.py',
        'if same.digest != config.digest:', 'if False:',
        'a folder of another experiment is gone on with, and its results are lost or mixed',
        ('experiment/test_run_claim.py',),
    ),
    Fault(
        'foreign-run-folder', 'experiment/run_claim.py',
        'if (foreign := folder.foreign()) is not None:', 'if (foreign := None) is not None:',
        "somebody's results.json is written over",
        ('experiment/test_run_claim.py',),
    ),
    # Configuration and flags.
    Fault(
        'code-from-a-file', 'experiment/config_file.py',
        'if not allow_imports:', 'if allow_imports:',
        'a configuration file of a stranger runs code',
        ('cli/test_parse.py',),
    ),
    Fault(
        'digest-moves-with-the-data', 'experiment/config.py',
        'if key not in PLACES and', "if key != 'data_dir' and",
        'the same experiment on another machine counts as another one',
        ('experiment/test_config.py',),
    ),
    Fault(
        'bound-left-out', 'base/fields.py',
        "'at_most': ('at most', operator.le),", '',
        'a fraction above 1 is taken',
        ('base/test_fields.py', 'experiment/test_config.py'),
    ),
    Fault(
        'seed-twice', 'cli/parse.py',
        'if int(part) in seeds:', 'if part in seeds:',
        'a seed that is given twice counts as two, and intervals are too narrow',
        ('programs/test_wrong_flags.py',),
    ),
    # Verdicts, intervals and paired statistics.
    Fault(
        'one-sided-zero', 'scorecard/intervals.py',
        'if self.low is None or self.high is None or self.low <= 0.0 <= self.high:',
        'if self.low is None or self.high is None or self.low <= 0.0:',
        'a clustering that is worse than FedAvg is called undecided',
        ('scorecard/test_intervals.py', 'studies/test_comparison_verdicts.py'),
    ),
    Fault(
        'narrower-interval', 'scorecard/intervals.py',
        'Interval(drawn.mean, min(lows, default=None), max(highs, default=None))',
        'Interval(drawn.mean, max(lows, default=None), min(highs, default=None))',
        'intervals of few seeds are far too narrow',
        ('scorecard/test_intervals.py',),
    ),
    Fault(
        'spread-of-a-population', 'scorecard/intervals.py',
        'float(np.std(values, ddof=1)) / math.sqrt(count)', 'float(np.std(values)) / math.sqrt(count)',
        "Student's interval over three seeds is a fifth too narrow",
        ('scorecard/test_intervals.py',),
    ),
    Fault(
        'one-sided-power', 'scorecard/intervals.py',
        'scipy.special.stdtrit(count - 1, 1.0 - _TEST_LEVEL / 2)', 'scipy.special.stdtrit(count - 1, 1.0 - _TEST_LEVEL)',
        'a page asks for too few seeds',
        ('scorecard/test_intervals.py',),
    ),
    Fault(
        'not-paired', 'scorecard/paired_statistics.py',
        'one.accuracy[budget] - two.accuracy[budget] for one, two',
        'np.sort(one.accuracy[budget]) - np.sort(two.accuracy[budget]) for one, two',
        'differences are not of the same client: who is worse off is told wrongly',
        ('scorecard/test_paired_statistics.py',),
    ),
    Fault(
        'equal-cost-ignored', 'scorecard/contenders.py',
        'own, None if earlier is None else client_accuracy', 'own, own if earlier is not None else client_accuracy',
        'at equal cost the accuracy after all rounds is shown',
        ('scorecard/test_contenders.py',),
    ),
    Fault(
        'margin-one-sided', 'scorecard/units.py',
        'return published - self.margin, published + self.margin', 'return 0.0, published + self.margin',
        'a number far below the published one is called reproduced',
        ('scorecard/test_cells.py',),
    ),
    Fault(
        'undecided-is-reproduced', 'scorecard/cells.py',
        '  if remark:\n    return NOT_COMPARABLE', '  if False:\n    return NOT_COMPARABLE',
        'a number of a small experiment is called a reproduction of the paper',
        ('scorecard/test_cells.py',),
    ),
    Fault(
        'two-seeds-are-enough', 'scorecard/verdicts.py',
        'FEWEST_SEEDS = 3', 'FEWEST_SEEDS = 2',
        'a number of two seeds has a verdict',
        ('scorecard/test_verdicts.py',),
    ),
    Fault(
        'claim-without-its-rows', 'scorecard/verdicts.py',
        'wanted = len(places) if enough is None else enough', 'wanted = len(places) - places.count("not run") if enough is None else enough',
        'a claim about several rows is judged where one of them was not run',
        ('scorecard/test_verdicts.py', 'scorecard/test_claims.py'),
    ),
    Fault(
        'one-win-is-enough', 'scorecard/paired_verdicts.py',
        "wins = all(difference.side == 'above' for", "wins = any(difference.side == 'above' for",
        'overlap is said to beat every disjoint clustering though it beats one',
        ('studies/test_comparison_verdicts.py',),
    ),
    Fault(
        'one-model-is-overlap', 'scorecard/chosen_on_validation.py',
        'several or found', 'found',
        'a method whose clients all ended with one model stands for overlapping clusters',
        ('studies/test_comparison_verdicts.py',),
    ),
    Fault(
        'unclear-is-a-win', 'scorecard/paired_verdicts.py',
        "if difference.side == 'unclear' or p_value >= LEVEL:", 'if p_value >= LEVEL:',
        'an interval that holds zero is told as a verdict',
        ('scorecard/test_paired_verdicts.py',),
    ),
    # New clients, malicious clients, workers.
    Fault(
        'mean-without-its-spread', 'clustering/newcomer_rules.py',
        'squared.append(np.square(to_clients[rows]).mean(axis=0) - spread)',
        'squared.append(np.square(to_clients[rows]).mean(axis=0))',
        'new clients join a tight cluster instead of the one whose mean is nearest',
        ('clustering/test_newcomer_rules.py',),
    ),
    Fault(
        'regret-of-the-mean', 'phases/new_clients.py',
        'regret=(of_clusters.max(axis=0) - own)', 'regret=(of_clusters.mean(axis=0) - own)',
        'the regret of new clients is too small, below zero at times',
        ('phases/test_new_clients.py',),
    ),
    Fault(
        'honest-labels-turned', 'data/malicious.py',
        'of_malicious = np.repeat(malicious, split.counts)', 'of_malicious = np.repeat(malicious[::-1], split.counts)',
        'labels of honest clients are turned round',
        ('data/test_malicious_drawn.py',),
    ),
    Fault(
        'beside-oneself', 'phases/malicious_scores.py',
        'member[with_malicious][:, ~malicious]', 'member[with_malicious]',
        'the share of honest clients beside a malicious one counts the malicious ones',
        ('phases/test_malicious_scores.py',),
    ),
    Fault(
        'faulty-worker-trusted', 'engine/one_machine.py',
        'if self._worker.died_of is not None:', 'if False:',
        'after a fault of its memory a worker is started again, and wrong numbers are kept',
        ('engine/test_context.py',),
    ),
    Fault(
        'worker-hangs-for-ever', 'engine/one_machine.py',
        'if self._idle_ticks < self._patience:', 'if self._idle_ticks < 10 * self._patience:',
        'a run waits ten times as long as it was told to for a worker that hangs',
        ('engine/test_context.py',),
    ),
)  # fmt: skip


def occurrences(fault: Fault, root: pathlib.Path = ROOT) -> int:
  """Returns how often the text of a fault occurs in its file."""
  return (root / 'tff_cluster' / fault.file).read_text().count(fault.old)


def _first_failure(copy: pathlib.Path, tests: Sequence[str]) -> str | None:
  """Returns the first test that fails, as pytest names it; '' where none could be run, None where all pass."""
  command = [sys.executable, '-m', 'pytest', '-x', '-q', '-rfE', '-p', 'no:cacheprovider', *tests]
  done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
  if done.returncode == 0:
    return None
  failed = re.search(r'^(?:FAILED|ERROR) (tests/\S+::\w+)', done.stdout, re.M)
  return failed[1] if failed and done.returncode == _FAILED else ''


def _find(copy: pathlib.Path, fault: Fault) -> str:
  """Plants a fault in the copy, and takes it out again; returns what came of it."""
  path = copy / 'tff_cluster' / fault.file
  whole = path.read_text()
  path.write_text(whole.replace(fault.old, fault.new))
  try:
    failed = _first_failure(copy, [f'tests/{test}' for test in fault.tests])
  finally:
    path.write_text(whole)
  if not failed:
    return 'NOT found' if failed is None else 'NOT found (its tests could not be run)'
  return 'found' if _first_failure(copy, [failed]) is None else f'NOT found ({failed} fails without it)'


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    '--only', action='append', choices=[fault.name for fault in FAULTS], help='May be given several times.'
  )
  only = parser.parse_args().only
  faults = [fault for fault in FAULTS if only is None or fault.name in only]
  if gone := [fault.name for fault in faults if occurrences(fault) != 1]:
    print(f'no longer exactly once in its file: {", ".join(gone)}', file=sys.stderr)
    return 2
  missed = 0
  with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    for name in _COPIED:
      place = ROOT / name
      if place.is_dir():
        shutil.copytree(place, copy / name, ignore=shutil.ignore_patterns('__pycache__'))
      else:
        shutil.copy(place, copy / name)
    for fault in faults:
      started = time.monotonic()
      told = _find(copy, fault)
      missed += told != 'found'
      print(f'{told}: {fault.name}, {time.monotonic() - started:.0f} s', flush=True)
  print(f'{len(faults) - missed} of {len(faults)} faults found')
  return int(missed > 0)


if __name__ == '__main__':
  sys.exit(main())
