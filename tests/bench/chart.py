"""Draws a chart of odradek beside Apache Kafka: `python -m tests.bench.chart`.

It takes minutes, and Java. Both get the same requests in turns, from one client. The machine must
have nothing else to do. Kafka is warmed up by rounds that do not count.
"""

import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from tests.bench import fixture, over_the_wire
from tests.bench.two_brokers import Figures, in_turns, running
from tests.support.broker_process import BrokerProcess

PICTURE = Path(__file__).parents[2] / "docs" / "beside-kafka.svg"
ROUNDS = 3
SHARE = 4  # of the work of each workload
WIDTH, LEFT, BAR_WIDTH = 780, 330, 330
ROW, BAR, TOP = 46, 15, 34
COLOURS = {"odradek": "#3f51b5", "kafka": "#9e9e9e"}


class Row(NamedTuple):
    """One comparison. `better` says which of two values is the better one: lower or higher."""

    text: str
    unit: str
    better: str
    odradek: float
    kafka: float


def main() -> None:
    """Measure, and write the picture."""
    with tempfile.TemporaryDirectory(prefix="chart-") as scratch:
        PICTURE.write_text(drawn(measured(Path(scratch))))


def measured(scratch: Path) -> list[Row]:
    """The rows of the chart. Raises KeyError where Apache Kafka cannot run."""
    first = fixture.first_record(scratch, ROUNDS, 1)
    print(first, flush=True)
    reset = fixture.reset(scratch, ROUNDS, 1)
    print(reset, flush=True)
    with running(scratch, {"log.retention.ms": "-1"}, {}) as brokers:
        idle = {name: broker.memory_bytes() / 2**20 for name, broker in brokers.items()}
        load = in_turns(brokers, ROUNDS, _load)
    print(idle, load, flush=True)
    tiny, large, fetched = "requests_per_s", "produce_MB_per_s", "fetch_MB_per_s"
    return [
        Row(
            "from nothing to the first acknowledged record",
            "s",
            "lower",
            first["odradek_s"],
            first["kafka_s"],
        ),
        Row(
            "20 topics and 5 groups emptied between tests",
            "ms",
            "lower",
            reset["odradek_ms"],
            reset["kafka_admin_ms"],
        ),
        Row("memory of the idle broker", "MB", "lower", idle["odradek"], idle["kafka"]),
        *(
            Row(text, unit, "higher", load[f"odradek_{name}"], load[f"kafka_{name}"])
            for text, unit, name in (
                ("one client: Produce of one record", "per s", tiny),
                ("one client: Produce of 6 times 16 KiB", "MB/s", large),
                ("one client: Fetch of 2 MiB", "MB/s", fetched),
            )
        ),
    ]


def _load(broker: BrokerProcess) -> Figures:
    """What one connection moves."""
    return {
        "requests_per_s": over_the_wire.produce_tiny_batches(broker, SHARE)["requests_per_s"],
        "produce_MB_per_s": over_the_wire.produce_six_partitions(broker, SHARE)["MB_per_s"],
        "fetch_MB_per_s": over_the_wire.fetch_warm(broker, SHARE)["MB_per_s"],
    }


def drawn(rows: Sequence[Row]) -> str:
    """The picture: two bars for each row, as long as their values are beside each other."""
    height = TOP + ROW * len(rows) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (name, text) in enumerate((("odradek", "odradek"), ("kafka", "Apache Kafka 4.3"))):
        left = LEFT + number * 100
        parts.append(
            f'<rect x="{left}" y="9" width="11" height="11" fill="{COLOURS[name]}"/>'
            f'<text x="{left + 17}" y="19" fill="#333333">{text}</text>'
        )
    for number, row in enumerate(rows):
        top = TOP + number * ROW
        parts.append(
            f'<text x="{LEFT - 12}" y="{top + 14}" text-anchor="end" fill="#222222">'
            f"{escape(row.text)}</text>"
            f'<text x="{LEFT - 12}" y="{top + 30}" text-anchor="end" font-size="11"'
            f' fill="#777777">{row.better} is better</text>'
        )
        longest = max(row.odradek, row.kafka)
        for place, (name, value) in enumerate((("odradek", row.odradek), ("kafka", row.kafka))):
            y = top + place * (BAR + 2)
            width = max(2.0, BAR_WIDTH * value / longest)
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}"'
                f' fill="{COLOURS[name]}"/><text x="{LEFT + width + 6:.1f}" y="{y + 12}"'
                f' fill="#222222">{_number(value)} {row.unit}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _number(value: float) -> str:
    """Two significant digits below 10, whole numbers from there."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


if __name__ == "__main__":
    main()
