"""Periodic work on all logs. The caller decides when."""

from collections.abc import Iterable

from odradek.storage.log import PartitionLog


def logs_to_flush(logs: Iterable[PartitionLog], now_ms: int) -> list[PartitionLog]:
    """List the online logs that were last synced at least flush.ms ago."""
    return [
        log for log in logs if log.is_online and now_ms - log.last_flush_ms >= log.config.flush_ms
    ]


def release_closed_segments(logs: Iterable[PartitionLog], max_open: int) -> None:
    """Close the files of all inactive segments if more than `max_open` of them have open files."""
    opened = [
        segment for log in logs for segment in list(log.segments)[:-1] if segment.has_open_file
    ]
    if len(opened) > max_open:
        for segment in opened:
            segment.release_files()
