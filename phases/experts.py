"""Combines the outputs of experts by FedEx and by other rules, in one file for anybody's experts. Trains nothing.

  python -m phases.experts --outputs_file=X.npz --output_dir=D

X.npz holds outputs float[experts, samples, classes] (probabilities) and, if wanted, labels int[samples] and
start_weights float[experts, classes] (default: 1 / experts). Writes D/predictions.npz, an int array [samples] for each
of fedex, mean, vote, confidence (and oracle, where labels are given) with FedEx's last weights, and D/experts.json:
accuracies, agreement between rules, and how far FedEx depends on the order of the samples. Files of these names that
are there with other content are refused.
"""

import io
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import run_claim
from tff_cluster.storage import files, output_files, output_folders

if TYPE_CHECKING:
  from tff_cluster.aggregation import expert_comparison


def define_flags() -> None:
  flags.define('experts', 'output_dir')


def main() -> None:
  options = parse.section_from_flags(flags.ExpertsOptions)
  folder = parse.output_dir_from_flags()
  if options.outputs_file is None:
    raise InputError('--outputs_file=FILE is required: an .npz with outputs [experts, samples, classes]')
  run_claim.check_no_run(folder, 'outputs_file')
  from tff_cluster.aggregation import expert_comparison, expert_outputs

  given = expert_outputs.read_expert_outputs(options.outputs_file)
  output_folders.lock(folder)
  predictions, weights = expert_comparison.predict(given)
  document = expert_comparison.compare(given, predictions, options.seed, options.num_shuffles)
  arrays = npz(predictions | {'weights': weights})
  output_files.check(folder, ['predictions.npz'], lambda there: there == arrays)
  output_files.check(folder, ['experts.json'], lambda there: there == files.json_text(document))
  files.save_json(folder / 'experts.json', document, seal=False)
  files.write_file(folder / 'predictions.npz', arrays)
  print_table(document)
  for name in ('predictions.npz', 'experts.json'):
    print(folder / name)


def npz(arrays: dict[str, np.ndarray]) -> bytes:
  """Returns a file of the arrays and nothing beside them, for those who read it without this package; equal arrays give equal files."""
  content = io.BytesIO()
  np.savez(content, **arrays)
  return content.getvalue()


def print_table(document: 'expert_comparison.Comparison') -> None:
  """Prints a line for each rule, and one on the order of the samples."""
  sizes = ('experts', 'samples', 'classes')
  print(', '.join(f'{getattr(document, f"num_{size}")} {size}' for size in sizes))
  from tff_cluster.aggregation import rules
  from tff_cluster.aggregation.rule import SUBJECT

  subject = rules.with_role(SUBJECT).name
  print(f'{"rule":<12}{"accuracy":>10}{f"as {subject}":>10}')
  for rule, shares in document.agreement.items():
    accuracy = '-' if document.accuracy is None else f'{document.accuracy[rule]:.2%}'
    print(f'{rule:<12}{accuracy:>10}{shares[subject]:>10.2%}')
  order = document.order_sensitivity
  line = f'{subject} in {order.num_shuffles} other orders: {order.changed:.2%} of the samples change'
  if order.accuracy is not None:
    line += f', accuracy {min(order.accuracy):.2%} to {max(order.accuracy):.2%}'
  print(line)


if __name__ == '__main__':
  program.run(main, define_flags)
