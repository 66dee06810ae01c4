"""Makes docs/metrics.md: `python -m odradek.broker.metrics.reference > docs/metrics.md`."""

import sys
from collections.abc import Iterable, Iterator

from odradek.broker.common.durations import BOUNDS_MS
from odradek.broker.common.traffic import TIMED_EVERY_MS

from .catalogue import CATALOGUE
from .metric import Kind, Metric
from .rendering import PROCESS

OPENING = f"""\
# Metrics

`odradek.http.listener=127.0.0.1:9404` in `server.properties` opens an HTTP server. It has no
authentication and no encryption, and it is off by default.

- `/metrics`: all metrics, in Prometheus' text format.
- `/healthz`: 200 while the process answers.
- `/readyz`: 200 if all logs are recovered, the coordinators serve all their partitions, no log
  directory has failed and the broker does not stop; otherwise 503, and a line for each reason.

The names and labels are those that the usual rules of the JMX exporter give to Apache Kafka's
MBeans, and those of kafka-exporter for the lag of groups. Metrics that neither has begin with
`odradek_`. Counters begin at 0 when the broker starts.

After these metrics come those that clients push: see [Metrics of clients](guides/telemetry.md).

A metric `kafka_server_brokertopicmetrics_*` has a series for each topic, and one without the label
`topic`, which counts all topics, also deleted ones. What a topic got after `/metrics` was last read
before its deletion is missing in it.

Every request is counted. Of those of one API and version that come within {TIMED_EVERY_MS} ms, the
first is timed and stands for the others.

A histogram has the series `_bucket`, `_count` and `_sum`. Its bounds are, in milliseconds:
{", ".join(f"{bound:g}" for bound in BOUNDS_MS)}.

`docker/grafana-dashboard.json` is a dashboard for Grafana, `docker/alert-rules.yml` has alerts for
Prometheus.

This page is made from the code: `python -m odradek.broker.metrics.reference`.
"""


NO_LABELS = "none"


def reference() -> str:
    """The text of docs/metrics.md."""
    sections = [_section(title, map(_row, metrics)) for title, metrics in CATALOGUE.items()]
    return "\n".join([OPENING, *sections, _section("The process", _process_rows())])


def _section(title: str, rows: Iterable[str]) -> str:
    head = f"## {title}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"{row}\n" for row in rows)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels or NO_LABELS} | {metric.help} |"


def _process_rows() -> Iterator[str]:
    """The metrics of prometheus-client about the process, which exist on Linux."""
    for family in PROCESS.collect():
        suffix = "_total" if family.type == Kind.COUNTER else ""
        yield f"| `{family.name}{suffix}` | {family.type} | {NO_LABELS} | {family.documentation} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
