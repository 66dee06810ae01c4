"""HTML tables and fact lists for the statistics page. Cells are HTML already, not escaped here.

The first column of a table is text, the others are numbers.
"""

from collections.abc import Sequence
from html import escape


def escaped(text: str) -> str:
    """Escape untrusted text, and replace characters that cannot be printed."""
    return escape("".join(each if each.isprintable() else "\ufffd" for each in text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls horizontally if it is wider than the page."""
    head = "".join(f"<th>{name}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{inside}</table></div>'


def with_bar(text: str, value: float, largest: float) -> str:
    """A number over a bar whose width is its share of `largest`."""
    share = 100 * value / largest if largest else 0
    return f'{text}<i class="bar" style="width:{share:.1f}%"></i>'


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """A list of names and texts; pairs with an empty text are left out."""
    shown = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in pairs if text)
    return f"<dl>{shown}</dl>"
