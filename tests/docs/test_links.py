"""Links in the documentation lead somewhere, and files that it names exist."""

import re
from pathlib import Path

import pytest

from tests.bench.workloads import OWN, SHARED
from tests.docs.markdown import ROOT, anchors_in, documents, links_in

NAMED_FILE = re.compile(r"`((?:tests|docs|docker|protocol|broker)/[\w./-]*[\w-])/?`")
DOCUMENTS = documents()
NAME_OF = {file: str(file.relative_to(ROOT)) for file in DOCUMENTS}


@pytest.mark.parametrize("file", DOCUMENTS, ids=NAME_OF.get)
def test_links_lead_to_files_and_headings(file: Path) -> None:
    broken = [
        link for link in links_in(file) if "://" not in link and not _leads_somewhere(file, link)
    ]
    assert broken == []


def _leads_somewhere(file: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (file.parent / path).resolve() if path else file
    return target.exists() and (not anchor or anchor in anchors_in(target))


@pytest.mark.parametrize("name", ["compatibility/clients.md", "guarantees.md"])
def test_the_tests_that_a_page_names_exist(name: str) -> None:
    named = NAMED_FILE.findall((ROOT / "docs" / name).read_text())
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_the_workloads_that_the_page_of_figures_names_exist() -> None:
    text = (ROOT / "docs/performance.md").read_text()
    rows = text.partition("| workloads |")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)`", rows)
    assert named
    assert set(named) <= SHARED.keys() | OWN.keys()
