"""Shows who holds which rows, as a table and as a picture, before anyone trains.

  python -m phases.partition --flagfile=flags/demo.flags --output_dir=runs/partition

Prints the table and writes partition.csv and partition.svg/.png in --output_dir, in the place of
those of an earlier call.
"""

from tff_cluster.cli import flags, parse, program
from tff_cluster.phases import early_checks
from tff_cluster.storage import output_folders


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'output_dir', 'config_file', 'allow_imports')


def main() -> None:
  options = parse.run_options_from_flags()
  config = parse.experiment_config_from_flags(clusters=False)
  early_checks.check_data(config)
  folder = output_folders.lock(options.output_dir)
  from tff_cluster.data import populate
  from tff_cluster.studies import partition_pictures

  population = populate.build_population(config.data)
  written = partition_pictures.write_partition(population, folder)
  print(partition_pictures.partition_table(population))
  print(*written, sep='\n')


if __name__ == '__main__':
  program.run(main, define_flags)
