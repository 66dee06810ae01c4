"""The picture of growth: throughput, CPU and memory by partitions and by connections."""

import math
from collections.abc import Mapping
from pathlib import Path

import vl_convert

from tests.bench.figures import KAFKA, ODRADEK, Figures, Results
from tests.bench.growth import SIZES
from tests.bench.report import number
from tests.bench.svg import COLOURS, legend, picture, text

PICTURE = Path(__file__).parents[2] / "docs" / "growth.png"
ROWS = {"growth_of_partitions": "partitions", "growth_of_connections": "connections"}
COLUMNS = {
    "per_s": "records per second",
    "cpu_us_each": "CPU µs per record",
    "memory_MB": "memory, MB",
}
PANEL_WIDTH, PANEL_HEIGHT = 200, 130
LEFT, TOP, BETWEEN_COLUMNS, BETWEEN_ROWS = 60, 60, 70, 70
WIDTH = LEFT + len(COLUMNS) * (PANEL_WIDTH + BETWEEN_COLUMNS)
HEIGHT = TOP + len(ROWS) * (PANEL_HEIGHT + BETWEEN_ROWS)
SMALL = ' font-size="11"'


def is_measured(results: Mapping[str, Results]) -> bool:
    """Whether both workloads were measured beside Apache Kafka."""
    return all(KAFKA in results.get(name, {}) for name in ROWS)


def write(results: Mapping[str, Results], kafka_version: str) -> None:
    """Write the picture, if its figures are there."""
    if is_measured(results):
        PICTURE.write_bytes(vl_convert.svg_to_png(drawn(results, kafka_version), scale=2))


def drawn(results: Mapping[str, Results], kafka_version: str) -> str:
    """A panel for each figure of each workload."""
    parts = legend(LEFT, kafka_version)
    for row, (workload, sizes_of) in enumerate(ROWS.items()):
        for column, (figure, title) in enumerate(COLUMNS.items()):
            x = LEFT + column * (PANEL_WIDTH + BETWEEN_COLUMNS)
            y = TOP + row * (PANEL_HEIGHT + BETWEEN_ROWS)
            curves = {name: by_size(results[workload][name], figure) for name in (ODRADEK, KAFKA)}
            parts += _panel(x, y, f"{title}, by {sizes_of}", curves)
    return picture(WIDTH, HEIGHT, parts)


def by_size(figures: Figures, figure: str) -> list[float]:
    """The values of a figure, one for each of SIZES."""
    return [figures[f"{size}_{figure}"] for size in SIZES]


def _panel(left: float, top: float, title: str, curves: Mapping[str, list[float]]) -> list[str]:
    """Curves above sizes on a logarithmic axis; values begin at 0."""
    bottom = top + PANEL_HEIGHT
    most = max(map(max, curves.values()))
    places = [left + PANEL_WIDTH * math.log(size) / math.log(SIZES[-1]) for size in SIZES]
    parts = [
        text(left, top - 10, title),
        f'<path d="M{left:g} {top:g}V{bottom:g}H{left + PANEL_WIDTH:g}" fill="none"'
        ' stroke="#777777"/>',
        text(left - 6, top + 10, number(most), more=f'{SMALL} text-anchor="end"'),
        text(left - 6, bottom, "0", more=f'{SMALL} text-anchor="end"'),
    ]
    for size, x in zip(SIZES, places, strict=True):
        parts.append(text(x, bottom + 15, f"{size:,}", more=f'{SMALL} text-anchor="middle"'))
    for name, values in curves.items():
        points = [
            f"{x:.1f},{bottom - PANEL_HEIGHT * value / most:.1f}"
            for x, value in zip(places, values, strict=True)
        ]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{COLOURS[name]}"'
            ' stroke-width="2"/>'
        )
    return parts
