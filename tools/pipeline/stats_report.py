"""Prints the result of `odradek pipeline stats`: tables of topics, of hours, and of groups."""

from odradek.pipeline.jobs.stats.hour_stats import HOUR_MS, HourStats
from odradek.pipeline.jobs.stats.job import StatsPlan, StatsReport, TopicStats
from odradek.pipeline.jobs.stats.lag import GroupLag, PartitionLag
from odradek.tools.tables import number, print_each, print_json, show_table, size

from .running import EXIT_DONE, EXIT_PROBLEMS
from .stats_json import instant

_COLUMNS = (
    "records",
    "stored",
    "raw",
    "ratio",
    "codecs",
    "batches",
    "rec/batch",
    "size min",
    "avg",
    "p50",
    "p99",
    "max",
    "keys",
    "null keys",
    "tombstones",
    "txn",
    "out of order",
)


def show_report(report: StatsReport, title: str, *, hours: bool) -> int:
    """Print the tables; returns the exit code."""
    rows = [
        (each.topic, number(each.partitions), *_cells(total))
        for each, total in ((each, each.total) for each in report.topics)
    ]
    show_table(title, ("topic", "partitions", *_COLUMNS), rows)
    if hours:
        for topic in report.topics:
            _show_hours(topic)
    if report.groups:
        _show_groups(report.groups)
    print_each("problem", report.problems)
    return EXIT_PROBLEMS if report.problems else EXIT_DONE


def _show_hours(topic: TopicStats) -> None:
    rows = [(hour_text(number), *_cells(stats)) for number, stats in sorted(topic.hours.items())]
    if rows:
        show_table(f"{topic.topic}, by hour (UTC)", ("hour", *_COLUMNS), rows)


def hour_text(number: int) -> str:
    """An hour since 1970 as `2026-11-21 23:00`."""
    found = instant(number * HOUR_MS)
    return "no timestamp" if found is None else found[:16].replace("T", " ")


def _cells(stats: HourStats) -> tuple[str, ...]:
    sizes = stats.sizes
    return (
        number(stats.records),
        size(stats.stored_bytes),
        size(stats.raw_bytes),
        f"{stats.ratio:.2f}",
        ", ".join(sorted(stats.codecs)),
        number(stats.batches),
        f"{stats.batch_records.average:.1f}",
        number(sizes.smallest),
        f"{sizes.average:.0f}",
        number(sizes.quantile(0.5)),
        number(sizes.quantile(0.99)),
        number(sizes.largest),
        number(stats.keys.distinct),
        number(stats.null_keys),
        number(stats.tombstones),
        percent(stats.transactional_records, stats.records),
        percent(stats.out_of_order_records, stats.records),
    )


def percent(part: int, whole: int) -> str:
    """`12 %`; an empty text for 0, `<1 %` below 1 %."""
    if not part or not whole:
        return ""
    share = 100 * part / whole
    return "<1 %" if share < 1 else f"{share:.0f} %"


def _show_groups(groups: list[GroupLag]) -> None:
    rows = [
        (
            each.group,
            each.kind,
            number(each.members),
            number(len(each.partitions)),
            f"{each.lag:,}",
            number(each.lost),
            instant(each.last_commit_ms) or "",
        )
        for each in groups
    ]
    header = ("group", "type", "members", "partitions", "lag", "lost", "last commit")
    show_table("groups", header, rows)
    lags = [
        (f"{group}: {each.commit.topic}-{each.commit.partition}", *lag_cells(each))
        for group, each in lagging(groups)
    ]
    if lags:
        columns = ("group and partition", "committed", "start", "end", "lag", "lost")
        show_table("partitions with lag", columns, lags)


def lagging(groups: list[GroupLag]) -> list[tuple[str, PartitionLag]]:
    """Return the partitions that a group has not read to the end, with the group's name."""
    return [
        (group.group, each)
        for group in groups
        for each in group.partitions
        if each.lag is None or each.lag or each.lost
    ]


def lag_cells(lag: PartitionLag) -> tuple[str, ...]:
    """The committed offset, the start and end of the partition, the lag and the lost offsets."""
    shown = ["gone"] * 3 if lag.bounds is None else [f"{each:,}" for each in (*lag.bounds, lag.lag)]
    return f"{lag.commit.offset:,}", *shown, number(lag.lost)


def show_plan(plan: StatsPlan, *, as_json: bool) -> int:
    """Print what would be read; returns the exit code."""
    topics: dict[str, list[int]] = {}
    for each in plan.selected:
        sums = topics.setdefault(each.partition.topic, [0, 0, 0])
        sums[0] += 1
        sums[1] += each.bounds.end - each.bounds.start
        sums[2] += each.log_bytes
    if as_json:
        names = ("partitions", "offsets", "logBytes")
        shown = [
            {"topic": topic, **dict(zip(names, sums, strict=True))}
            for topic, sums in topics.items()
        ]
        print_json({"topics": shown})
        return EXIT_DONE
    rows = [
        (topic, number(count), number(offsets), size(log_bytes))
        for topic, (count, offsets, log_bytes) in topics.items()
    ]
    show_table("would be read", ("topic", "partitions", "offsets", "size"), rows)
    return EXIT_DONE
