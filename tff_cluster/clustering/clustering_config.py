"""One clustering of an experiment: which method, what it is called, and the options that were given."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from tff_cluster.base import fields as fields_lib
from tff_cluster.base import imports
from tff_cluster.base.errors import InputError, argument, shown
from tff_cluster.clustering import methods
from tff_cluster.clustering.method import Method
from tff_cluster.clustering.method_options import SIGNATURES

# Names of clusterings become names of files, with a few words before and behind; 255 bytes is what file systems allow.
_LONGEST_NAME = 100


@dataclasses.dataclass(frozen=True, init=False)
class ClusteringConfig:
  """A method with its options. Making one imports and checks nothing; `check` and `options` do.

  Attributes:
    method: A name, or an import path package.module:attribute.
    name: What results call the clustering; None: the method's name.
    given: The options that are not at their default, by name.
  """

  method: str
  name: str | None
  given: tuple[tuple[str, Any], ...]

  def __init__(self, method: str = 'dynamic_distance', name: str | None = None, **given: Any):
    object.__setattr__(self, 'method', method)
    object.__setattr__(self, 'name', name)
    known = methods.METHODS[method].fields() if isinstance(method, str) and method in methods.METHODS else {}
    plain = {key: fields_lib.as_declared(known[key], v) if key in known else v for key, v in given.items()}
    kept = {k: v for k, v in plain.items() if not (k in known and fields_lib.is_default(known[k], v))}
    object.__setattr__(self, 'given', tuple(sorted(kept.items(), key=lambda pair: pair[0])))

  @property
  def label(self) -> str:
    return self.name or self.method.rpartition(':')[2]

  @property
  def rule(self) -> Method[Any]:
    """The method; InputError where there is none of this name."""
    return methods.find(self.method)

  @property
  def code(self) -> str | None:
    """Digest of the module of a user's method; None of a built-in one, and where no text of it is at hand."""
    return imports.code_of(imports.load('method', self.method)) if imports.is_path(self.method) else None

  @property
  def signature(self) -> str:
    """What is clustered; of methods that cluster no vectors, what pictures show."""
    field = self.rule.fields().get('signature')
    return str(dict(self.given).get('signature', SIGNATURES[0] if field is None else field.default))

  @functools.cached_property
  def options(self) -> Any:
    """The method's options, typed and checked; InputError where they are wrong."""
    known = self.rule.fields()
    for key, _ in self.given:
      if key not in known and (others := methods.with_option(key)):
        raise InputError(does_not_apply(key, self.method, others))
    return self.rule.read(dict(self.given))

  @property
  def parameters(self) -> dict[str, Any]:
    """All options by name, as results have them."""
    return self.rule.parameters(self.options)

  def check(self) -> None:
    """Raises InputError where method, name or an option is wrong."""
    for key, value in (('method', self.method), ('name', self.name)):
      if not isinstance(value, str) and (value is not None or key == 'method'):
        raise InputError(f'{argument(key, shown(value))}: expected text')
    if self.name is not None and not self.name.replace('_', '').replace('-', '').isalnum():
      raise InputError(f'name={self.name!r}: a clustering name has letters, digits, "-" and "_" only')
    if self.name is not None and len(self.name.encode()) > _LONGEST_NAME:
      raise InputError(
        f'name={self.name!r}: a clustering name has at most {_LONGEST_NAME} bytes (a letter beyond ASCII has several)'
      )
    _ = self.options

  def changed(self, **changes: Any) -> 'ClusteringConfig':
    """Returns this clustering with another name, or with other options."""
    return ClusteringConfig(**{'method': self.method, 'name': self.name, **dict(self.given), **changes})

  def words(self) -> dict[str, Any]:
    """Returns what results say of the clustering, so that no reader has to know its method.

    Returns:
      label, method, title, parameters (all options by name), told (the number of clusters that the method was told, or
      null), dial (the option that the overlap dial turns, or null), basis (what clusters were found on), approach (what a
      run of such clusterings is called), one_cluster (what one cluster of all clients means) and oracle (bool).
    """
    rule, options = self.rule, self.options
    return {
      'label': self.label,
      'method': self.method,
      'title': rule.title_of(options),
      'parameters': rule.parameters(options),
      'told': rule.told_number(options),
      'dial': rule.dial,
      'basis': rule.basis(options),
      'approach': rule.approach,
      'one_cluster': rule.one_cluster,
      'oracle': rule.oracle,
    }

  def to_json(self) -> dict[str, Any]:
    """Returns method, name where there is one, and the options that are not at their default."""
    return {'method': self.method, **({} if self.name is None else {'name': self.name}), **dict(self.given)}

  @classmethod
  def from_json(cls, value: Any) -> 'ClusteringConfig':
    """Reads what `to_json` wrote; nothing is checked but that it is an object."""
    if not isinstance(value, Mapping):
      raise InputError(f'a section of the configuration must be a JSON object, found {shown(value)}')
    if 'self' in value:
      raise InputError("unknown field 'self' in the configuration")
    if not isinstance(value.get('method', ''), str):
      raise InputError(f'method of a clustering must be a text, found {shown(value["method"])}')
    if not isinstance(value.get('name', ''), str | None):
      raise InputError(f'name of a clustering must be a text, found {shown(value["name"])}')
    return cls(**value)


def does_not_apply(option: str, method: str, others: list[str]) -> str:
  """Returns the message for an option that belongs to other methods."""
  return f'{argument(option)} does not apply to {argument("method", method)}; it applies to method {" or ".join(others)}'
