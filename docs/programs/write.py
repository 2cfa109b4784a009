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


def main() -> None:
  for each in (answer_picture, comparison_csv_page, flags_page, gallery, phases_picture, results_json_page):
    for path in each.write():
      print(path)


if __name__ == '__main__':
  main()
