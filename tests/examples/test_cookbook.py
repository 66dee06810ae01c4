"""docs/cookbook.md has the text of the examples."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SOURCES = ("py", "java", "js", "go")
# A line with the file's name, then its text.
BLOCK = re.compile(r"^`(examples/[^`]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_cookbook_has_the_text_of_each_source_file_of_the_examples() -> None:
    printed = dict(BLOCK.findall((ROOT / "docs" / "cookbook.md").read_text()))
    files = [path for ending in SOURCES for path in EXAMPLES.rglob(f"*.{ending}")]
    sources = {
        str(path.relative_to(ROOT)): path.read_text()
        for path in files
        if "node_modules" not in path.parts
    }
    assert sorted(printed) == sorted(sources)
    for name, text in sources.items():
        assert printed[name] == text, f"copy the text of {name} to docs/cookbook.md"
