"""Which clustering of a kind validation rows choose: what somebody can take who must take one, and no test row had a say in it."""

from collections import Counter
from collections.abc import Sequence

from tff_cluster.base.words import plural, series
from tff_cluster.scorecard.contenders import ROUNDS, Contender, Measured


def choose(contenders: Sequence[Contender], kind: str, budget: str) -> Contender | None:
  """Returns the clustering of a kind that has the highest mean validation accuracy under each seed, of equal ones the first.

  Where all clients ended with one model, or more than half of them are alone in a cluster, there are no clusters to speak of,
  overlapping or not: such a clustering is chosen under a seed only if all of its kind are such. (The second half of this rule was
  made after its numbers were seen, in November 2026: Ward's threshold, the one parameter that validation rows choose within a run,
  left most clients of two digits alone, so that overlap was compared with training alone, which stands beside it anyway.)

  Args:
    contenders: The rows of a comparison, of the same seeds.
    kind: See contenders.KINDS.
    budget: A key of contenders.BUDGETS; validation rows are those after the last round that it pays.

  Returns:
    A contender that is another one under each seed, perhaps, and is named after them; None where there is none of the kind.
  """
  found = [contender for contender in contenders if contender.kind == kind]
  if not found:
    return None
  by_seed = []
  for k in range(len(found[0].runs)):
    several = [contender for contender in found if _puts_together(contender.runs[k])]
    by_seed.append(max(several or found, key=lambda contender: contender.runs[k].validation[budget]))
  return Contender(_named(by_seed), kind, tuple(contender.runs[k] for k, contender in enumerate(by_seed)))


def _puts_together(run: Measured) -> bool:
  """Tells whether clients have several models and at least half of them share theirs."""
  return run.client_models > 1 and 2 * run.singletons <= len(run.accuracy[ROUNDS])


def _named(by_seed: Sequence[Contender]) -> str:
  """Returns one name where it is the same under every seed, else each with the number of its seeds, the most frequent first."""
  counts = Counter(contender.name for contender in by_seed)
  if len(counts) == 1:
    return by_seed[0].name
  return series([f'{name} ({plural(count, "seed")})' for name, count in counts.most_common()])
