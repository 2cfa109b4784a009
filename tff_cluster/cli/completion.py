"""What makes a shell complete `tff-cluster`: its commands, their flags, and the values of flags that have a few.

The script is made from the flags that the programs define. It is one function for bash, which zsh runs by its own bashcompinit.
"""

import importlib
import shlex
from collections.abc import Iterator, Mapping

from absl import flags

from tff_cluster.cli import help as help_text
from tff_cluster.cli import program
from tff_cluster.cli.commands import COMPLETION, SHELLS, Command
from tff_cluster.cli.flags import CLUSTERINGS
from tff_cluster.clustering import methods
from tff_cluster.experiment import preset

# Bash takes a word apart at each "=", zsh does not.
_SCRIPT = """{before}_tff_cluster() {{
  local line=${{COMP_LINE:0:$COMP_POINT}} candidates each
  local word=${{line##* }}
  case ${{COMP_WORDS[1]}} in
{cases}
    *) candidates={commands} ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then candidates={commands}; fi
  COMPREPLY=()
  for each in $candidates; do
    case $each in "$word"*) COMPREPLY+=("$each") ;; esac
  done
  if [ "${{#COMPREPLY[@]}}" -eq 0 ] && [ "${{word#--*=}}" != "$word" ]; then
    while IFS= read -r each; do COMPREPLY+=("${{word%%=*}}=$each"); done < <(compgen -f "${{word#*=}}")
  fi
  if [ -z "${{ZSH_VERSION-}}" ] && [ "${{word#--*=}}" != "$word" ]; then COMPREPLY=("${{COMPREPLY[@]#*=}}"); fi
}}
complete -o nospace -F _tff_cluster {called}
"""
_BEFORE = {'bash': '', 'zsh': 'autoload -U +X compinit bashcompinit && compinit && bashcompinit\n'}


def script(shell: str, called: str, commands: Mapping[str, Command]) -> str:
  """Returns the script for a shell of SHELLS.

  Args:
    called: The program that is completed.
    commands: Its subcommands by name.
  """
  cases = {name: list(candidates(command)) for name, command in commands.items()}
  cases[COMPLETION] = list(SHELLS)
  lines = [f'    {name}) candidates={shlex.quote(" ".join(found))} ;;' for name, found in cases.items()]
  names = shlex.quote(' '.join(cases))
  return _SCRIPT.format(before=_BEFORE[shell], cases='\n'.join(lines), commands=names, called=called)


def candidates(command: Command) -> Iterator[str]:
  """Yields what may stand behind a subcommand: its flags, those with a few values once for each value."""
  module = importlib.import_module(command.module)
  with program.defined(module.define_flags) as own:
    for name in own:
      yield from _forms(flags.FLAGS[name])
  yield from (f'--flagfile=flags/{path.name}' for path in sorted(preset.FOLDER.glob('*.flags')))
  yield from (f'--{name}' for name in help_text.FLAGS)


def _forms(flag: flags.Flag) -> Iterator[str]:
  if flag.boolean:
    yield from (f'--{flag.name}', f'--no{flag.name}')
    return
  choices = flag.parser.syntactic_help.split('|') if '|' in flag.parser.syntactic_help else []
  if flag.name == CLUSTERINGS.removesuffix('s'):
    choices = list(methods.METHODS)
  yield from (f'--{flag.name}={value.removesuffix("NAME")}' for value in choices or [''])
