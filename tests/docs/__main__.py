"""Writes the generated pages of the documentation."""

from tests.docs.pages import MARK, PAGES

for file, page in PAGES.items():
    file.write_text(MARK + page())
