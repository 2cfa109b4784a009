"""Tables as LaTeX against one written by hand; and no text can be read as anything but text."""

import json
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tests.made_up import comparison_runs, finished_run
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.papers.catalogue import PUBLISHED
from tff_cluster.report import latex, report
from tff_cluster.report.pages import Cell, Table
from tff_cluster.studies.comparison import page as comparison_page

BY_HAND = r"""% Needs \usepackage{booktabs}.
\begin{table}
\centering
\caption{At 99\% \& more}
\begin{tabular}{lrp{0.3\linewidth}}
\toprule
clustering & gain & note \\
\midrule
k\_means \#1 & +1.5 (1.0 to 2.0) & \textbackslash{}input\{x\} costs \$5, \textasciitilde{}50\% more than a mean; \textless{}b\textgreater{} \\
{}[x] a & $-$0.5 &  \\
{}* & 3 & a~b $\to$ ``c'' -- d\textasciicircum{}2 \\
\bottomrule
\end{tabular}
\end{table}
"""


def test_characters_of_claims_can_be_set():
  said = ''.join(claim.words for each in PUBLISHED.values() for claim in each.claims)
  # Letters that LaTeX sets are those of Latin script.
  odd = {c for c in said if not c.isascii() and not (c.isalpha() and 'LATIN' in unicodedata.name(c))}
  assert odd | {'λ'} <= latex.ESCAPES.keys()
  assert latex.escaped('d₁ ≥ ε') == r'd$_1$ $\geq$ $\varepsilon$'


def test_a_table_is_what_one_writes_by_hand():
  rows = [
    ('k_means #1', Cell('+1.5', ('1.0 to 2.0', None, '')), '\\input{x} costs $5, ~50% more than a mean; <b>'),
    ('[x]\na', '−0.5', None),
    (Cell('*'), 3, 'a\xa0b → “c” – d^2'),
  ]
  empty = Table(('a',), [])
  table = Table(('clustering', 'gain', 'note'), rows, (1,), 'At 99% & more')
  assert latex.text([empty, table]) == BY_HAND


# What LaTeX makes of each escape, the other way round than the table of escapes.
_MEANS = {
  'textbackslash': '\\', 'textasciitilde': '~', 'textasciicircum': '^', 'textless': '<', 'textgreater': '>', 'textbar': '|',
}  # fmt: skip


@given(st.text('\\&%$#_{}~^<>|ab [*]'))
def test_no_text_is_a_command_and_all_of_it_is_set(given):
  escaped = latex.escaped(given)
  unescaped = re.sub(
    r'\\(text\w+)\{\}|\\([&%$#_{}])|([\\&%$#_{}~^<>|])',
    lambda found: _MEANS[found[1]] if found[1] else found[2] or f'BARE {found[3]}',
    escaped,
  )
  assert unescaped == given


def lines_of(path) -> int:
  """Returns how many lines the tables of a file have below their headers."""
  bodies = re.findall(r'\\midrule\n(.*?)\\bottomrule', path.read_text(), re.S)
  return sum(body.count('\\\\\n') for body in bodies)


def test_a_report_leaves_its_scorecard_for_latex(tmp_path, unrendered):
  finished_run.write_run(tmp_path)
  report.write_report(tmp_path)
  assert lines_of(tmp_path / 'scorecard.tex') == len(json.loads((tmp_path / 'scorecard.json').read_text()))


def test_a_comparison_leaves_its_contenders_for_latex(tmp_path, unrendered):
  accuracies = {FEDAVG: comparison_runs.noisy(0.8), 'kmeans': comparison_runs.noisy(0.9)}
  runs = comparison_runs.typed(comparison_runs.make(accuracies))
  comparison_page.write(runs, {}, tmp_path)
  # Two contenders, which cost the same: one table.
  assert lines_of(tmp_path / 'comparison.tex') == 2
  assert all(
    escaped in (tmp_path / 'comparison.tex').read_text() for escaped in ('kmeans', r'90.0\%', '+10.0')
  )
