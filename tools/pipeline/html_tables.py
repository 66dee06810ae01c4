"""Tables of a page. Cells are HTML already; the first column is text, the others are numbers."""

from collections.abc import Sequence
from html import escape


def safe(text: str) -> str:
    """A name that somebody chose; what cannot be shown is replaced."""
    return escape("".join(each if each.isprintable() else "\ufffd" for each in text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Scrolls by itself where it is wider than the page."""
    head = "".join(f"<th>{name}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{inside}</table></div>'


def with_bar(text: str, value: float, most: float) -> str:
    """A number above a bar of its share of the largest."""
    share = 100 * value / most if most else 0
    return f'{text}<i class="bar" style="width:{share:.1f}%"></i>'


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they are, without those of which there is nothing to tell."""
    shown = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in pairs if text)
    return f"<dl>{shown}</dl>"
