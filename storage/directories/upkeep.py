"""What is done to all logs from time to time, whoever decides when."""

import logging
from collections.abc import Callable, Iterable

from odradek.protocol.errors import ApiError
from odradek.storage.log import PartitionLog
from odradek.storage.retention import delete_old_segments

_logger = logging.getLogger(__name__)


def run_retention(
    logs: Iterable[PartitionLog], now_ms: int, is_wanted: Callable[[PartitionLog], bool]
) -> int:
    """Delete segments that the wanted logs need not keep; how many."""
    deleted = 0
    for log in logs:
        if log.is_online and is_wanted(log):
            try:
                deleted += delete_old_segments(log, now_ms)
            except ApiError as error:
                _logger.error("retention of %s: %s", log.name, error)
    return deleted


def logs_to_flush(logs: Iterable[PartitionLog], now_ms: int) -> list[PartitionLog]:
    """Logs that flush.ms wants synced now."""
    return [
        log for log in logs if log.is_online and now_ms - log.last_flush_ms >= log.config.flush_ms
    ]


def release_closed_segments(logs: Iterable[PartitionLog], max_open: int) -> None:
    """Let go of the files of closed segments when more than `max_open` are open."""
    opened = [
        segment for log in logs for segment in list(log.segments)[:-1] if segment.has_open_file
    ]
    if len(opened) > max_open:
        for segment in opened:
            segment.release_files()
