"""Prints the result of `odradek pipeline stats --json`."""

from datetime import UTC, datetime

from odradek.pipeline.jobs.stats.hour_stats import HOUR_MS, HourStats
from odradek.pipeline.jobs.stats.job import StatsReport, TopicStats
from odradek.pipeline.jobs.stats.lag import GroupLag
from odradek.pipeline.jobs.stats.sketches import SizeSketch
from odradek.tools.tables import print_json

from .running import EXIT_DONE, EXIT_PROBLEMS


def show_json(report: StatsReport) -> int:
    """Print everything as one JSON object; returns the exit code."""
    shown = {
        "topics": [_topic(each) for each in report.topics],
        "groups": [_group(each) for each in report.groups],
        "problems": report.problems,
    }
    print_json(shown)
    return EXIT_PROBLEMS if report.problems else EXIT_DONE


def _topic(topic: TopicStats) -> dict[str, object]:
    return {
        "topic": topic.topic,
        "partitions": topic.partitions,
        "offsets": topic.offsets,
        "total": _sums(topic.total),
        "hours": [
            {"hour": instant(number * HOUR_MS) if number >= 0 else None, **_sums(hour)}
            for number, hour in sorted(topic.hours.items())
        ],
    }


def _sums(stats: HourStats) -> dict[str, object]:
    return {
        "records": stats.records,
        "batches": stats.batches,
        "markers": stats.markers,
        "storedBytes": stats.stored_bytes,
        "uncompressedBytes": stats.raw_bytes,
        "compressionRatio": round(stats.ratio, 3),
        "codecs": {
            name: {
                "batches": each.batches,
                "records": each.records,
                "storedBytes": each.stored_bytes,
                "uncompressedBytes": each.raw_bytes,
            }
            for name, each in sorted(stats.codecs.items())
        },
        "recordBytes": _sizes(stats.sizes),
        "batchBytes": _sizes(stats.batch_bytes),
        "batchRecords": _sizes(stats.batch_records),
        "keys": {
            "null": stats.null_keys,
            "distinct": stats.keys.distinct,
            "bytes": stats.key_bytes,
        },
        "values": {"null": stats.tombstones, "bytes": stats.value_bytes},
        "transactionalRecords": stats.transactional_records,
        "timestamps": {
            "first": instant(stats.first_ms),
            "last": instant(stats.last_ms),
            "logAppendTime": stats.log_append_time_records,
            "none": stats.untimed_records,
            "outOfOrder": stats.out_of_order_records,
        },
    }


def _sizes(sketch: SizeSketch) -> dict[str, object]:
    return {
        "min": sketch.smallest,
        "avg": round(sketch.average, 1),
        "max": sketch.largest,
        "p50": sketch.quantile(0.5),
        "p90": sketch.quantile(0.9),
        "p99": sketch.quantile(0.99),
    }


def _group(group: GroupLag) -> dict[str, object]:
    return {
        "group": group.group,
        "type": group.kind,
        "protocol": group.protocol or None,
        "members": group.members,
        "lag": group.lag,
        "lost": group.lost,
        "lastCommit": instant(group.last_commit_ms),
        "partitions": [
            {
                "topic": each.commit.topic,
                "partition": each.commit.partition,
                "committed": each.commit.offset,
                "start": each.bounds.start if each.bounds else None,
                "end": each.bounds.end if each.bounds else None,
                "lag": each.lag,
                "lost": each.lost,
                "committedAt": instant(each.commit.committed_ms),
                "metadata": each.commit.metadata or None,
            }
            for each in group.partitions
        ],
    }


def instant(timestamp_ms: int) -> str | None:
    """`2026-11-21T23:00:00Z`, in UTC; None for a negative timestamp or one beyond the year 9999."""
    if timestamp_ms < 0:
        return None
    try:
        found = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return found.isoformat(timespec="seconds").replace("+00:00", "Z")
