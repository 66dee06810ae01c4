"""What the pictures of the documentation have in common."""

from collections.abc import Sequence
from html import escape

from tests.bench.figures import KAFKA, ODRADEK

COLOURS = {ODRADEK: "#3f51b5", KAFKA: "#9e9e9e"}


def picture(width: int, height: int, parts: Sequence[str]) -> str:
    """A whole file, with a white background."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="system-ui, sans-serif" font-size="13">'
    )
    return "\n".join(
        [head, f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *parts, "</svg>", ""]
    )


def legend(left: int, kafka_version: str) -> list[str]:
    """The colour of each broker. `kafka_version`: with which the figures were measured."""
    names = {ODRADEK: "odradek", KAFKA: f"Apache Kafka {kafka_version}"}
    return [
        f'<rect x="{left + number * 100}" y="9" width="11" height="11" fill="{COLOURS[name]}"/>'
        + text(left + number * 100 + 17, 19, shown, fill="#333333")
        for number, (name, shown) in enumerate(names.items())
    ]


def text(x: float, y: float, shown: str, *, fill: str = "#222222", more: str = "") -> str:
    """Text that begins at x; `more`: other attributes."""
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}"{more}>{escape(shown)}</text>'
