"""docs/performance.md: what is measured and how, the targets, and the figures that were kept."""

from tests.bench import growth_chart, spark_page
from tests.bench.figures import KAFKA, ODRADEK
from tests.bench.growth import SIZES
from tests.bench.kept import Kept, Run, load
from tests.bench.report import HEAD, lines, number
from tests.bench.targets import TARGETS, in_words
from tests.bench.workloads import GROWTH, OWN, SHARED, TABLE, text_of
from tests.docs.markdown import code, table

_HOW = """\
# Performance

`make bench` measures odradek and Apache Kafka side by side, on the machine on which it runs. It
needs Java 17 and Maven, takes about 30 minutes, and asserts nothing. Of `python -m tests.bench` the
option `--only NAME,NAME` measures some of the workloads, `--list` names all, `--quick` does a fifth
of the work, and `--keep` writes the figures into this page and its pictures.

## How it is measured

- Both brokers run at the same time and are measured in turns, round by round, so that a slow moment
  of the machine hits both. A figure is the median of the rounds. A ratio is the median of the
  ratios of each round: odradek's figure divided by the other's.
- The first round does not count, because the JVM compiles its code in it. Kafka runs with the
  options of `kafka-server-start.sh` and 1 GB of heap.
- Both have the defaults of a single node. Nothing is synced before it is acknowledged, unless a
  workload says so.
- CPU is the user and system time of the broker's process and its children, for each GB or each
  record that was moved. Memory is their resident anonymous memory: the page cache does not count.
- Latencies are those that a client sees. The clients of `producer_perf`, `java_defaults` and
  `consumer_perf` are Kafka's own tools, those of `librdkafka_…` are librdkafka's. All others are
  hand-made and cost next to nothing.
- *bare* is a loop in Python (`tests/bench/bare_loop.py`) that only does what every broker has to
  do: receive, check CRC-32C and write, and send with `sendfile`. It shows what the machine allows.
- Clients and brokers share the cores of one machine.

## Workloads and targets

A target is a ratio to Kafka, or to *bare* where it says so.

"""
_AT_A_GLANCE = """
## Transactions, groups and Spark

Ratios of odradek to Kafka. Each line names its workloads, which `--only` measures.

"""
# What is measured, the figures in words, and the workloads.
_GLANCES = (
    (
        "transactions of one producer",
        "23 to 44 times as many per second, 0.14 of the CPU each",
        "transactions_one_partition transactions_with_offsets transactions_of_version_1",
    ),
    (
        "transactions of 200 producers at once",
        "0.64 as many per second, 1.2 of the CPU each",
        "transactions_of_200",
    ),
    (
        "memory per group member with its connection",
        "5.8 kB (Kafka: 14 to 17 kB)",
        "groups_of_one",
    ),
    (
        "heartbeats of 5,000 consumer groups of one member",
        "0.64 of the CPU",
        "consumer_groups_of_one",
    ),
    (
        "share consumers, one and ten of a partition",
        "1.6 to 1.7 times the throughput, 0.2 to 0.25 of the CPU",
        "share_consumer_perf share_consumers_of_10",
    ),
    (
        "Spark writing, exactly once",
        "1.27 to 1.56 times the speed of Spark's Kafka connector, which writes at least once",
        "spark_writing",
    ),
)
_SHORT = """
## What falls short, and why

- **The clients are the limit** of the throughput in `producer_perf`, `consumer_perf` and
  `librdkafka_…`: odradek uses at most a third of one core there, the client the rest of the
  machine.
- **The machine is the limit** of `one_at_a_time` and `fetch_warm`: their targets for CPU, and for
  the median of `one_at_a_time`, are below what the bare loop reaches. System calls and wake-ups
  are most of their time (docs/decisions.md has a profile).
- **CPU of large batches** (`producer_perf`, `produce_large_batches`): three fifths are what the
  bare loop needs, too: the kernel's copies of the bytes in and out, and the checksum.
  `consumer_perf` has smaller answers than `fetch_warm`, so requests weigh more.
- **Requests of one record** (`tail`, `tail_of_100`, `produce_200`, `produce_beside_idle`): a read,
  a write and a send, of which the send costs most, and about 6 µs of Python. Kafka's code runs
  compiled, and on both cores. odradek's one process is busy all the time with 100 producers or
  more, and is the limit. Which of the two brokers is faster differs by machine.
- **`produce_2000_partitions`**: a write for each record, about 2.5 µs, and more than that in Python
  to check it, to find its log and to answer. Much of it is waiting for memory, which two partitions
  do not share. Kafka needs 6.5 µs in all once the JVM has compiled its code.
- **`beside_writers`**: one event loop serves all. A request of 512 KiB takes about a millisecond
  of it, two thirds of that in the kernel's write, and a small request may have to wait for one of
  them. Kafka has eight threads for requests. In run 2 the loop also closed the files of removed
  segments, which took up to a second: the 99.9th percentile was 12 times Kafka's. Since then each
  is closed when its log gives it up.
- **After a kill**, a start recovers logs of up to 64 MiB together, the smallest first, before it
  answers; the others are recovered while those are served. With records of 1 KiB these are 600 logs
  and 60,000 batches. Each log's files are opened and its indexes made again, and the checksum of
  each batch is computed.
"""
_GROWTH = """
## Growth

Each number has a fresh pair of brokers with one round to warm up. So Kafka's JVM has compiled less
of its code than in the table above. Cores: {machine}.

![Throughput, CPU and memory by partitions and connections](growth.png)
"""
_OTHERS = """
## Other workloads

Measured by name (`--only`). Cores: {machine}.

"""
_FIRST_VERSION = """
## The first version

Ratios to Kafka on the same machine, before the work on speed: of a quiet run, and of a busy one in
brackets. Kafka's JVM had less time to compile its code there, which made it slower than above.

| workload | throughput | CPU | latency |
| --- | --- | --- | --- |
| `producer_perf` | 1.38 (1.33) | 0.36 (0.48) | |
| `java_defaults` | 1.23 (1.14) | 0.70 (0.69) | |
| librdkafka, records of 100 bytes | 1.35 (1.12) | 0.28 (0.49) | |
| `one_at_a_time` | | | p50 0.81 (0.78), p99 0.19 (0.15) |
| `consumer_perf` | 1.16 (1.40) | 0.44 (0.34) | |
| `fetch_warm` | 1.06 (1.11) | 0.98 (0.99) | |
| `start_empty` | | | 0.15 (0.18); memory 0.03 |
"""
_RUNS = """\
The values are those of the last run, the ratios those of each run. A target is met if the median of
the ratios meets it.

"""
_NO_FIGURES = "No figures of this version have been kept yet.\n"


def performance_page() -> str:
    """The page."""
    return _HOW + _workloads() + "\n## Figures\n\n" + _figures(load())


def _workloads() -> str:
    works = {**SHARED, **OWN}
    rows = [(code(name), text_of(works[name]), _targets(name)) for name in TABLE + GROWTH]
    return table(("workload", "what it does", "targets"), rows)


def _targets(workload: str) -> str:
    return ", ".join(
        f"{code(figure)} {in_words(figure, target)}" + ("" if other == KAFKA else f" ({other})")
        for other, of_workloads in TARGETS.items()
        for figure, target in of_workloads.get(workload, {}).items()
    )


def _figures(kept: Kept) -> str:
    if not kept.runs:
        return _NO_FIGURES
    names = kept.runs[0].machine
    about = table(
        ("run", *(str(number) for number in range(1, len(kept.runs) + 1))),
        [(name, *(run.machine[name] for run in kept.runs)) for name in names],
    )
    shown = [
        line.cells
        for name in TABLE
        for line in lines(name, *(run.results[name] for run in kept.runs))
    ]
    growth = _growth(kept.others) if growth_chart.is_measured(kept.others.results) else ""
    versions = sorted({run.kafka_version for run in (*kept.runs, kept.others)} - {""})
    beside = f"The figures were measured beside Apache Kafka {' and '.join(versions)}.\n"
    table_of_runs = f"{beside}{_RUNS}{about}\n{table(HEAD, shown)}"
    spark = spark_page.spark_section(kept.others.results, kept.others.machine.get("cores", ""))
    parts = (
        table_of_runs,
        _at_a_glance(),
        _SHORT,
        growth,
        _others(kept.others),
        spark,
        _FIRST_VERSION,
    )
    return "".join(parts)


def _at_a_glance() -> str:
    rows = [(what, said, ", ".join(map(code, names.split()))) for what, said, names in _GLANCES]
    return _AT_A_GLANCE + table(("what", "odradek", "workloads"), rows)


def _others(run: Run) -> str:
    """The kept workloads that are neither in the table, nor of growth, nor of Spark."""
    names = sorted(set(run.results) - set(GROWTH) - set(spark_page.WORKLOADS))
    if not names:
        return ""
    works = {**SHARED, **OWN}
    what = table(
        ("workload", "what it does"), [(code(name), text_of(works[name])) for name in names]
    )
    shown = [line.cells for name in names for line in lines(name, run.results[name])]
    return f"{_OTHERS.format(machine=run.machine['cores'])}{what}\n{table(HEAD, shown)}"


def _growth(run: Run) -> str:
    text = _GROWTH.format(machine=run.machine["cores"])
    results = run.results
    for workload, sizes_of in growth_chart.ROWS.items():
        rows = [
            [
                f"{title}, {broker}",
                *map(number, growth_chart.by_size(results[workload][broker], figure)),
            ]
            for figure, title in growth_chart.COLUMNS.items()
            for broker in (ODRADEK, KAFKA)
        ]
        text += "\n" + table((sizes_of, *(f"{size:,}" for size in SIZES)), rows)
    return text
