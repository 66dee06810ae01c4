"""Draws small SVG charts: columns side by side, and one bar divided into shares.

They need no script, font or other file. Each shape has a tooltip with its value.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .html_tables import escaped

_WIDTH, _HEIGHT = 720, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 10, 26
_MAX_LABELS = 8
_COLOURS = 6  # CSS classes s0 to s5


class Column(NamedTuple):
    """One column, or one share. `label` is the text on the axis if there is room for it."""

    label: str
    value: float
    tooltip: str


class Axis(NamedTuple):
    """The axis of values."""

    end: Callable[[float], float]  # from the largest value to the axis's upper end
    amount: Callable[[float], str]  # from a value to its text


def columns(title: str, shown: Sequence[Column], axis: Axis) -> str:
    """A chart of columns side by side."""
    top = axis.end(max((each.value for each in shown), default=0))
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = [_svg_start(title, _HEIGHT)]
    for step in range(5):
        y = _TOP + height * (4 - step) / 4
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        )
        text = escaped(axis.amount(top * step / 4))
        parts.append(
            f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:g}" text-anchor="end">{text}</text>'
        )
    pitch = width / max(len(shown), 1)
    every = math.ceil(len(shown) / _MAX_LABELS)
    for number, each in enumerate(shown):
        x, drawn = _LEFT + number * pitch, height * each.value / top
        drawn = max(drawn, 1.0) if each.value else 0.0
        parts.append(
            f'<rect class="s0" x="{x + pitch * 0.08:.2f}" y="{_TOP + height - drawn:.2f}" '
            f'width="{pitch * 0.84:.2f}" height="{drawn:.2f}">'
            f"<title>{escaped(each.tooltip)}</title></rect>"
        )
        if number % every == 0:
            middle = x + pitch / 2
            parts.append(
                f'<text class="axis" x="{middle:.1f}" y="{_HEIGHT - 8}" '
                f'text-anchor="middle">{escaped(each.label)}</text>'
            )
    return "".join([*parts, "</svg>"])


def shares(title: str, shown: Sequence[Column]) -> str:
    """One bar divided in proportion to the values, with a legend below."""
    total = sum(each.value for each in shown) or 1.0
    parts = [_svg_start(title, 52)]
    x = 0.0
    for number, each in enumerate(shown):
        width = _WIDTH * each.value / total
        parts.append(
            f'<rect class="s{number % _COLOURS}" x="{x:.2f}" y="4" height="20" '
            f'width="{max(width - 1, 0.5):.2f}"><title>{escaped(each.tooltip)}</title></rect>'
        )
        x += width
    x = 0.0
    for number, each in enumerate(shown):
        parts.append(
            f'<rect class="s{number % _COLOURS}" x="{x:g}" y="35" width="10" height="10"/>'
        )
        parts.append(f'<text class="legend" x="{x + 14:g}" y="44">{escaped(each.tooltip)}</text>')
        x += 24 + 6.4 * len(each.tooltip)
    return "".join([*parts, "</svg>"])


def _svg_start(title: str, height: int) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escaped(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">'
    )


def decimal_end(largest: float) -> float:
    """The axis end for decimal values: 1, 2, 4 or 8 times a power of ten, at or above `largest`."""
    if largest <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= largest * 0.999)


def binary_end(largest: float) -> float:
    """The axis end for bytes: a power of two at or above `largest`, and at least 4.

    The axis has five marks; below 4 they would be fractions of bytes.
    """
    return 2.0 ** math.ceil(math.log2(max(largest, 4)))
