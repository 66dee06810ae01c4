"""Prints the result of `odradek pipeline stats`: tables of topics and of groups."""

from odradek.pipeline.jobs.stats.job import StatsPlan, StatsReport
from odradek.pipeline.jobs.stats.lag import GroupLag, PartitionLag
from odradek.tools.tables import number, print_each, print_json, show_table, size

from .running import EXIT_DONE, EXIT_PROBLEMS
from .stats_json import instant

_COLUMNS = (
    "topic",
    "partitions",
    "records",
    "transactional",
    "batches",
    "stored",
    "codecs",
    "first batch",
    "last record",
)


def show_report(report: StatsReport, title: str) -> int:
    """Print the tables; returns the exit code."""
    rows = [
        (
            each.topic,
            number(each.partitions),
            number(each.sums.records),
            number(each.sums.transactional_records),
            number(each.sums.batches),
            size(each.sums.stored_bytes),
            ", ".join(sorted(each.sums.codecs)),
            instant(each.sums.first_ms) or "",
            instant(each.sums.last_ms) or "",
        )
        for each in report.topics
    ]
    show_table(title, _COLUMNS, rows)
    if report.groups:
        _show_groups(report.groups)
    print_each("problem", report.problems)
    return EXIT_PROBLEMS if report.problems else EXIT_DONE


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
        (f"{group}: {each.commit.topic}-{each.commit.partition}", *_lag_cells(each))
        for group, each in _lagging(groups)
    ]
    if lags:
        columns = ("group and partition", "committed", "start", "end", "lag", "lost")
        show_table("partitions with lag", columns, lags)


def _lagging(groups: list[GroupLag]) -> list[tuple[str, PartitionLag]]:
    """Return the partitions that a group has not read to the end, with the group's name."""
    return [
        (group.group, each)
        for group in groups
        for each in group.partitions
        if each.lag is None or each.lag or each.lost
    ]


def _lag_cells(lag: PartitionLag) -> tuple[str, ...]:
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
