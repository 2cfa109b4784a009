"""Seconds of a client-round: ours and other packages, one round each in turn, each in an environment of its own.

Peers are installed below --cache_dir with pip when they are first measured. The last line of the output is one JSON
object:

  seconds_per_client_round  medians over rounds, ours first
  cpu_seconds_per_client_round  processor time, in the same form
  times_ours                seconds of each peer / seconds of ours: above 1 where ours is faster
  versions                  of each package and of the PyTorch that it runs on
  accuracy                  of each contender's model on the training rows at the end: they did the same work
  left_out                  {peer: why it could not be measured}
  load                      what ran on each core in the minute before: above 0.2 others disturb the timing
  setting                   what was trained
"""

import dataclasses
import os
import pathlib
import subprocess
import sys

from benchmarks import common
from tff_cluster.base.errors import EnvironmentFault, InputError

_TORCH = 'torch==2.13.0'


@dataclasses.dataclass(frozen=True)
class Peer:
  """A package to compare with.

  Attributes:
    requirement: What pip installs beside PyTorch.
    package: The name that its version is asked by.
    module: The contender.
    form: Form of the contender.
    launcher: Arguments of the interpreter before `-m module`.
  """

  requirement: str
  package: str
  module: str
  form: str = ''
  launcher: tuple[str, ...] = ()


def _torchrun(processes: int) -> tuple[str, ...]:
  return ('-m', 'torch.distributed.run', '--standalone', f'--nproc-per-node={processes}')


PEERS = {
  'fluke': Peer('fluke-fl', 'fluke-fl', 'benchmarks.peers.fluke_fl'),
  'flower': Peer('flwr[simulation]', 'flwr', 'benchmarks.peers.flower'),
  'pfl': Peer(
    'pfl[pytorch]', 'pfl', 'benchmarks.peers.pfl_research', 'torchrun', _torchrun(os.cpu_count() or 1)
  ),
  'pfl_single': Peer('pfl[pytorch]', 'pfl', 'benchmarks.peers.pfl_research', 'single'),
  'fedlab': Peer('fedlab', 'fedlab', 'benchmarks.peers.fedlab_standalone'),
}


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  common.add_setting_flags(parser)
  parser.add_argument(
    '--rounds', type=int, default=5, help='rounds that count, after a first; default: %(default)s'
  )
  parser.add_argument('--data_dir', help='folder with MNIST (as for phases.run_all); default: made-up rows')
  parser.add_argument(
    '--cache_dir',
    type=pathlib.Path,
    default=pathlib.Path('~/.cache/tff_cluster/peers'),
    help='where environments lie',
  )
  parser.add_argument('--peers', default=','.join(PEERS), help='which to measure; default: %(default)s')
  flags = parser.parse_args()
  names = [name for name in flags.peers.split(',') if name]
  unknown = [name for name in names if name not in PEERS]
  if unknown:
    raise InputError(f'--peers: no peer {unknown[0]!r}; known: {", ".join(PEERS)}')
  cache = flags.cache_dir.expanduser().resolve()
  return measure(common.setting_from(flags), flags.rounds, names, cache, flags.data_dir)


def measure(
  setting: common.Setting, rounds: int, names: list[str], cache: pathlib.Path, data_dir: str | None = None
) -> dict[str, object]:
  """Runs ours and the peers in turn and returns what the JSON line says.

  Args:
    setting: What to train.
    rounds: Rounds that count.
    names: Keys of PEERS.
    cache: Where the environments lie.
    data_dir: Folder with MNIST; None for made-up rows.

  Raises:
    InputError: if rounds is not positive.
    EnvironmentFault: if a contender ends after it was set up.
  """
  if rounds < 1:
    raise InputError(f'--rounds={rounds}: must be at least 1')
  load = common.load()
  left_out: dict[str, str] = {}
  versions: dict[str, str] = {}
  contenders: list[common.Contender] = []
  with common.rows_file(setting, data_dir) as rows, common.stopped_at_exit(contenders):
    contenders.append(common.Contender('ours', 'benchmarks.contenders.ours', setting, rows))
    parameters = {'ours': contenders[0].ready()['parameters']}
    for name in names:
      peer = PEERS[name]
      try:
        python = _environment(cache, peer)
        versions[name] = _versions(python, peer)
        contender = _start(name, peer, python, setting, rows)
      except EnvironmentFault as error:
        left_out[name] = str(error)
        print(f'{name} is left out: {error}', flush=True)
        continue
      contenders.append(contender)
      try:
        parameters[name] = contender.ready()['parameters']
        contender.round()
      except EnvironmentFault as error:
        left_out[name] = str(error)
        print(f'{name} is left out: {error}', flush=True)
        contenders.remove(contender)
        contender.stop()
    if len(set(parameters.values())) > 1:
      raise EnvironmentFault(f'the contenders train models of different sizes: {parameters}')
    times = common.interleaved(contenders, rounds, setting.clients, common.print_round(setting.clients))
    accuracy = {contender.name: round(contender.accuracy(), 4) for contender in contenders}
  each = {name: timing.seconds for name, timing in times.items()}
  return {
    'seconds_per_client_round': {name: round(value, 4) for name, value in each.items()},
    'cpu_seconds_per_client_round': {name: round(timing.cpu_seconds, 4) for name, timing in times.items()},
    'times_ours': {name: round(value / each['ours'], 3) for name, value in each.items() if name != 'ours'},
    'versions': versions,
    'accuracy': accuracy,
    'left_out': left_out,
    'load': load,
    'setting': dataclasses.asdict(setting) | {'rounds': rounds, 'data_dir': data_dir},
  }


def _start(
  name: str, peer: Peer, python: pathlib.Path, setting: common.Setting, rows: pathlib.Path
) -> common.Contender:
  return common.Contender(
    name,
    peer.module,
    setting,
    rows,
    python=python,
    form=peer.form,
    launcher=peer.launcher,
    environment={'FLWR_TELEMETRY_ENABLED': '0', 'RAY_USAGE_STATS_ENABLED': '0'},
  )


def _environment(cache: pathlib.Path, peer: Peer) -> pathlib.Path:
  """Returns the interpreter of a peer's environment, made when it is first asked for.

  Raises:
    EnvironmentFault: with pip's own last error.
  """
  folder = cache / peer.package
  python, made = folder / 'bin' / 'python', folder / 'made'
  if made.exists():
    return python
  print(f'installing {peer.requirement} below {folder} (once)', flush=True)
  for command in (
    [sys.executable, '-m', 'venv', '--clear', str(folder)],
    [str(python), '-m', 'pip', 'install', '--quiet', _TORCH, peer.requirement],
  ):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
      lines = [
        line for line in done.stderr.splitlines() if line.startswith('ERROR')
      ] or done.stderr.splitlines()
      raise EnvironmentFault(
        f'cannot install {peer.requirement}: {lines[-1] if lines else "pip said nothing"}'
      )
  made.touch()
  return python


def _versions(python: pathlib.Path, peer: Peer) -> str:
  code = f'import importlib.metadata as m; print(m.version({peer.package!r}), "on torch", m.version("torch"))'
  done = subprocess.run([str(python), '-c', code], capture_output=True, text=True)
  return done.stdout.strip() or 'unknown'


if __name__ == '__main__':
  sys.exit(main())
