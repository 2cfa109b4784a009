"""What LaTeX sets in place of each character: for files that we write and for the buttons of a page."""

ESCAPES = {
  '\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_', '{': r'\{', '}': r'\}',
  '~': r'\textasciitilde{}', '^': r'\textasciicircum{}', '<': r'\textless{}', '>': r'\textgreater{}', '|': r'\textbar{}',
  '"': "''", '“': '``', '”': "''", '‘': '`', '’': "'", '–': '--', '—': '---', '…': r'\ldots{}', '\xa0': '~',
  '₁': '$_1$', '₂': '$_2$', 'ε': r'$\varepsilon$', 'λ': r'$\lambda$', '∇': r'$\nabla$', '∞': r'$\infty$', '°': r'$^\circ$',
  '−': '$-$', '→': r'$\to$', '×': r'$\times$', '±': r'$\pm$', '≥': r'$\geq$', '≤': r'$\leq$', '·': r'$\cdot$', '√': r'$\surd$',
}  # fmt: skip
# A column with a longer text than this is a paragraph, whose lines are broken.
LONGEST = 40
