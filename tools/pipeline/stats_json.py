"""Prints the result of `odradek pipeline stats --json`."""

from datetime import UTC, datetime

from odradek.pipeline.jobs.stats.job import StatsReport, TopicStats
from odradek.pipeline.jobs.stats.lag import GroupLag
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
    sums = topic.sums
    return {
        "topic": topic.topic,
        "partitions": topic.partitions,
        "offsets": topic.offsets,
        "records": sums.records,
        "transactionalRecords": sums.transactional_records,
        "markers": sums.markers,
        "batches": sums.batches,
        "storedBytes": sums.stored_bytes,
        "codecs": {
            name: {
                "batches": each.batches,
                "records": each.records,
                "storedBytes": each.stored_bytes,
            }
            for name, each in sorted(sums.codecs.items())
        },
        "firstBatch": instant(sums.first_ms),
        "lastRecord": instant(sums.last_ms),
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
