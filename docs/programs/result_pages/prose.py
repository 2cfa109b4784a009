"""Finds results that were typed into the prose of a template instead of read from a kept file.

The rule. Expressions, statements and comments of Jinja, code in backticks or fences, targets of links and paths are taken out of a
template. In what is left a digit may stand only in

* a year, a date, or the number of a table, figure, section, equation, algorithm, phase, claim, finding or seed;
* a setting: NAME = NUMBER with a name of the field (K = 4, T = 3.0, C = 0.2, n = 10, E = 1 and the like), whole where it counts;
* what a table shows: 95% intervals, clients at 99% (the target accuracy);
* a name: L1, L2, 2NN, CIFAR-10, D^test and other words that begin with a letter.

Every other digit is refused, and so are a number in words before a unit of results (half a point, two times, three of four, ten rows,
a third of the clients), a percentage or points in backticks or in a text that is assigned or shown, and an expression or assignment
that is a literal.
Printed numbers of a paper stand in `published('98.1%', 'Briggs et al. 2020, table IV')`, which names their source; what was run
is told by `made`.
"""

import re
from collections.abc import Iterator

_TAKEN_OUT = re.compile(r'{{.*?}}|{%.*?%}|{#.*?#}|^```.*?^```$|`[^`]*`|\]\([^)]*\)|<!--.*?-->', re.S | re.M)
_ALLOWED = re.compile(
  r'\b(?:19|20)\d\d(?:-\d\d-\d\d)?\b'
  r'|\b(?:[Ff]igures?|[Ss]ections?|[Ee]quations?|[Aa]lgorithms?) \d+(?:\.\d+)*(?:(?:, | and | to )\d+(?:\.\d+)*)*'
  r'|\b(?:[Tt]ables?|[Pp]hases?|[Cc]laims?|[Ff]indings?|[Ss]eeds?) \d+(?:(?:, | and | to )\d+)*(?!\.?\d)'
  r'|\b(?:K|n|E|B|S|M) = \d+(?:(?:, | and | or )\d+)*(?!\.?\d)'
  r'|\b(?:T|C|eta|eps_1|eps_2|z|lambda|gamma) = \d+(?:\.\d+)?(?:(?:, | and | or )\d+(?:\.\d+)?)*'
  r'|\b95% intervals?|\(95%\)|\bclients at \d+%'
  r'|\b2NN\b|\b[A-Za-z][A-Za-z_^-]*\d+\b'
)
_LITERAL = re.compile(r'{{-?\s*(?:[\'"]|[-+(\s]*\d)[^}]*}}|{%-?\s*set\s+\w+\s*=\s*[\'"(]*[-+]?\d[^%]*%}')

_COUNT = (
  'half|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|'
  'nineteen|twenty|thirty'
)
_PARTS = 'half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth'
_IN_WORDS = re.compile(
  rf'\b(?:(?:{_COUNT}) (?:an? )?(?:points?|times|percent|rows|runs|comparisons|claims|settings)|twice|thrice'
  rf'|(?:{_COUNT}) of (?:{_COUNT})|(?:an?|{_COUNT}) (?:{_PARTS})s? of (?:the|all) (?:clients|rows|runs|seeds|comparisons))\b',
  re.I,
)
# Of code in backticks, and of texts in statements and expressions of Jinja but what a paper prints; names of rows have quantiles, claims
# a margin.
_RESULT = re.compile(r'(?<!by )(?<![\d.])\d[\d.]*\s?(?:%(?! quantile)|points?\b|percent\b)')
_CODE = re.compile(r'`[^`\n]*`')
_TEXT = re.compile(r"""(?<!published\()(?:'[^'\n]*'|"[^"\n]*")""")


def typed_results(template: str) -> Iterator[tuple[int, str]]:
  """Yields line number and text of every number in a template's prose that is neither an expression nor allowed."""
  prose = _ALLOWED.sub(_blank, _TAKEN_OUT.sub(_blank, template))
  for number, line in enumerate(prose.splitlines(), 1):
    for found in (*re.finditer(r'\S*\d\S*', line), *_IN_WORDS.finditer(line)):
      yield number, found[0].strip('.,;:()')
  for found in (*_LITERAL.finditer(template), *_results_in_code(template)):
    yield template.count('\n', 0, found.start()) + 1, found[0]


def _results_in_code(template: str) -> Iterator[re.Match[str]]:
  """Yields percentages and points in backticks, and in texts of statements and expressions."""
  yield from (found for found in _CODE.finditer(template) if _RESULT.search(found[0]))
  for jinja in re.finditer(r'{[{%].*?[%}]}', template, re.S):
    for found in _TEXT.finditer(template, jinja.start(), jinja.end()):
      if _RESULT.search(found[0]):
        yield found


def _blank(found: re.Match[str]) -> str:
  """Returns as many lines as were taken out, so that line numbers stay."""
  return ' ' + '\n' * found[0].count('\n')
