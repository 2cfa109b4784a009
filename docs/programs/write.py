"""Writes all pages and pictures of docs/ that are made from the code.

  python -m docs.programs.write

Run it after a change of options, results, methods, or of the demo's numbers (`make docs`); tests hold the pages to the code.
"""

from docs.programs import (
  answer_picture,
  comparison_csv_page,
  flags_page,
  gallery,
  phases_picture,
  results_json_page,
)

_MADE = {
  answer_picture.PICTURE: lambda: answer_picture.draw(answer_picture.rows()),
  comparison_csv_page.PAGE: comparison_csv_page.page,
  flags_page.PAGE: flags_page.page,
  phases_picture.PICTURE: phases_picture.draw,
  results_json_page.PAGE: results_json_page.page,
}


def main() -> None:
  for path, make in _MADE.items():
    path.write_text(make())
    print(path)
  print(*gallery.write(), sep='\n')


if __name__ == '__main__':
  main()
