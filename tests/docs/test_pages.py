"""The generated pages are what the code says."""

from pathlib import Path

import pytest

from tests.docs.markdown import ROOT
from tests.docs.pages import MARK, PAGES


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_generated_page_is_up_to_date(file: Path) -> None:
    page = PAGES[file]
    assert file.read_text() == MARK + page(), "write it again with `python -m tests.docs`"
