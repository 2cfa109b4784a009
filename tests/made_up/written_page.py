"""Reads a page that a program wrote, and fails where it is not well-formed or needs anything from outside but the files beside it."""

import base64
import hashlib
import html.parser
import pathlib
import re

_VOID = {'br', 'hr', 'img', 'meta', 'col'}
_BLOCKS = {'div', 'p', 'table', 'figure', 'section', 'ul'}
# What loads a file or runs a program, but for the one script of our own, which the page's policy names.
_FOREIGN = {'link', 'iframe', 'object', 'embed', 'base'}


class WrittenPage(html.parser.HTMLParser):
  """A page that is whole by itself.

  Attributes:
    text: All that is read on it.
    tags: Names of the elements, in their order.
    sources: What pictures and the like are loaded from; all of it lies within the page.
    cells: Text of the cells of tables (not of their heads); with '|' between its parts.
    lines: The number of cells, heads included, in each line of each table.
  """

  def __init__(self, path: pathlib.Path):
    super().__init__(convert_charrefs=True)
    self.text, self.tags, self.sources, self.cells, self.lines = '', [], [], [], []
    self._open, self._ids, self._links = [], [], []
    markup = path.read_text(encoding='utf-8')
    self.feed(markup)
    self.close()
    assert self._open == []
    assert len(set(self._ids)) == len(self._ids)
    for link in self._links:
      assert link[1:] in self._ids if link.startswith('#') else (path.parent / link).is_file(), link
    assert all(source.startswith('data:image/') for source in self.sources)
    assert not _FOREIGN & set(self.tags)
    assert not re.search(r'url\(|@import', markup)
    (script,) = re.findall('<script>(.*?)</script>', markup, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')
    (policy,) = re.findall('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', markup)
    assert policy.startswith('default-src &#39;none&#39;;')
    assert policy.endswith(f'script-src &#39;sha256-{digest}&#39;') and self.tags.count('script') == 1

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    assert len(attributes) == len(attrs), f'{tag}: an attribute twice'
    assert not ('p' in self._open and tag in _BLOCKS), f'{tag} in p'
    assert not ('span' in self._open and tag in _BLOCKS), f'{tag} in span'
    assert tag != 'img' or attributes.get('alt'), 'img without alt'
    self.tags.append(tag)
    if 'id' in attributes:
      self._ids.append(attributes['id'])
    if tag == 'a':
      self._links.append(attributes['href'])
    self.sources += [value for name, value in attrs if name in ('src', 'srcset', 'action', 'data')]
    if tag not in _VOID:
      self._open.append(tag)
    if tag == 'tr':
      self.lines.append(0)
    if tag in ('td', 'th'):
      self.lines[-1] += 1
    if tag == 'td':
      self.cells.append('')

  def handle_endtag(self, tag):
    assert self._open and self._open.pop() == tag, f'</{tag}> does not close what is open'

  def handle_data(self, data):
    if 'style' in self._open or 'script' in self._open:
      return
    self.text += data
    if 'td' in self._open:
      self.cells[-1] += f'|{data}' if self.cells[-1] else data
