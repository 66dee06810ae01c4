"""Markdown: tables to write, links and code blocks to read."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced code block."""

    file: Path
    language: str
    text: str


def documents() -> list[Path]:
    """Every markdown file that users read."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def examples() -> list[Block]:
    """The code blocks of all pages but the cookbook, whose files in examples/ have own tests."""
    return [
        block for file in documents() if file.name != "cookbook.md" for block in blocks_in(file)
    ]


def blocks_in(file: Path) -> list[Block]:
    """The fenced code blocks of a file, without the indentation of their fence."""
    return [
        Block(file, language, re.sub(f"^{indent}", "", body, flags=re.MULTILINE))
        for indent, language, body in _FENCE.findall(file.read_text())
    ]


def links_in(file: Path) -> list[str]:
    """The targets of the links of a file."""
    prose = _FENCE.sub("", file.read_text())
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose))


def anchors_in(file: Path) -> set[str]:
    """The names of the headings of a file, as mkdocs makes them."""
    prose = _FENCE.sub("", file.read_text())
    return {_anchor(heading) for heading in _HEADING.findall(prose)}


def _anchor(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def code(text: str) -> str:
    """Text as code; nothing for an empty text."""
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())
