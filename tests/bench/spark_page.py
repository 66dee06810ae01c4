"""docs/performance.md: Spark with odradek beside Spark's own connector."""

from collections.abc import Mapping

from tests.bench.figures import ODRADEK, Figures, Results
from tests.bench.report import number
from tests.bench.spark_costs import MASTERS
from tests.docs.markdown import table

WORKLOADS = {
    "spark_reading": "read: topic, query",
    "spark_archiving": "archived: topic",
    "spark_writing": "written: rows, delivery",
}
_TEXT = """
## Beside Spark's connector

Apache Kafka holds the records, Spark moves them: with its own Kafka connector, and with odradek,
in turns in the same session. Each cell has odradek's thousands of records a second, then how many
times the connector's that is, then the same of records for each second of CPU (Spark, its Python
workers, and Kafka where it takes part). The cluster is a master and two workers of one core each,
on the same two cores as all else. The connector writes at least once only. Cores: {machine}.

"""
_RATE, _RATE_X, _CPU_X = "_odradek_krec_s", "_krec_s_x", "_krec_cpu_s_x"


def spark_section(results: Mapping[str, Results], machine: str) -> str:
    """A table for each workload that was kept; nothing if none was."""
    tables = [
        _table(head, results[name][ODRADEK]) for name, head in WORKLOADS.items() if name in results
    ]
    return _TEXT.format(machine=machine) + "\n".join(tables) if tables else ""


def _table(head: str, figures: Figures) -> str:
    first = f"{MASTERS[0]}_"
    works = [
        name.removeprefix(first).removesuffix(_RATE)
        for name in figures
        if name.startswith(first) and name.endswith(_RATE)
    ]
    rows = [
        (
            work.replace("_", ", ", 1).replace("_", " "),
            *(_cell(figures, each, work) for each in MASTERS),
        )
        for work in works
    ]
    return table((head, *MASTERS), rows)


def _cell(figures: Figures, master: str, work: str) -> str:
    label = f"{master}_{work}"
    rate, rate_x, cpu_x = (figures[label + end] for end in (_RATE, _RATE_X, _CPU_X))
    return f"{number(rate)} · {rate_x:.2f} · {cpu_x:.2f}"
