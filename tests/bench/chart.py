"""The README's chart of odradek beside Apache Kafka, drawn from the kept figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.figures import KAFKA, ODRADEK, Results
from tests.bench.svg import COLOURS, legend, picture, text
from tests.bench.targets import more_is_better

PICTURE = Path(__file__).parents[2] / "docs" / "beside-kafka.svg"
WIDTH, LEFT, BAR_WIDTH = 780, 330, 330
ROW, BAR, TOP = 46, 15, 34
AT_THE_END = ' text-anchor="end"'


class Row(NamedTuple):
    """One comparison: what it is called, its unit, and where the figure is found."""

    text: str
    unit: str
    workload: str
    figure: str


ROWS = (
    Row("from nothing to the first acknowledged record", "s", "first_record", "s"),
    Row("20 topics and 5 groups emptied between tests", "ms", "reset", "ms"),
    Row("memory of the idle broker", "MB", "start_empty", "memory_MB"),
    Row("one producer, one record at a time", "per s", "one_at_a_time", "per_s"),
    Row("Java producer, records of 1 KiB", "MB/s", "producer_perf", "MB_per_s"),
    Row("one consumer, Fetch of 2 MiB", "MB/s", "fetch_warm", "MB_per_s"),
)


def write(results: Mapping[str, Results], kafka_version: str) -> None:
    """Write the picture, if all of its figures were measured beside Apache Kafka."""
    if all(KAFKA in results.get(row.workload, {}) for row in ROWS):
        PICTURE.write_text(drawn(ROWS, results, kafka_version))


def drawn(rows: Sequence[Row], results: Mapping[str, Results], kafka_version: str) -> str:
    """The picture: two bars for each row, as long as their values are beside each other."""
    parts = legend(LEFT, kafka_version)
    for number, row in enumerate(rows):
        top = TOP + number * ROW
        better = "higher" if more_is_better(row.figure) else "lower"
        small = f'{AT_THE_END} font-size="11"'
        parts.append(text(LEFT - 12, top + 14, row.text, more=AT_THE_END))
        parts.append(text(LEFT - 12, top + 30, f"{better} is better", fill="#777777", more=small))
        values = {name: results[row.workload][name][row.figure] for name in (ODRADEK, KAFKA)}
        for place, (name, value) in enumerate(values.items()):
            y = top + place * (BAR + 2)
            width = max(2.0, BAR_WIDTH * value / max(values.values()))
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}"'
                f' fill="{COLOURS[name]}"/>'
            )
            parts.append(text(LEFT + width + 6, y + 12, f"{_number(value)} {row.unit}"))
    return picture(WIDTH, TOP + ROW * len(rows) + 8, parts)


def _number(value: float) -> str:
    """Two significant digits below 10, whole numbers from there."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"
