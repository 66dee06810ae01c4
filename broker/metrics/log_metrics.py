"""Metrics of partitions, their logs, the log directories, syncs and the log cleaner."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from odradek.coordinator.runtime.steps import stepping
from odradek.storage.log import PartitionLog

from .metric import Kind, Metric, Sample, gauge
from .observed import Observed


def _by_log(read_log: Callable[[PartitionLog], int]) -> Callable[[Observed], Iterator[Sample]]:
    def read(observed: Observed) -> Iterator[Sample]:
        for log in observed.broker.log_manager.logs():
            yield (log.topic, str(log.partition)), read_log(log)

    return read


def _log_gauge(name: str, help_: str, read_log: Callable[[PartitionLog], int]) -> Metric:
    labels = ("topic", "partition")
    return Metric(f"kafka_log_log_{name}", Kind.GAUGE, labels, help_, _by_log(read_log))


def partition_count(observed: Observed) -> int:
    """The partitions in the cluster's metadata."""
    return observed.broker.metadata.topics.partition_count()


def served_partition_count(observed: Observed) -> int:
    """The partitions whose log is open and online: this broker leads them."""
    logs = stepping(observed.broker.log_manager.logs(), observed.step)
    return sum(log.is_online for log in logs)


def offline_partition_count(observed: Observed) -> int:
    """The partitions whose log is offline or still being recovered.

    Partitions may be created between the two counts: then it is not below 0.
    """
    return max(0, partition_count(observed) - served_partition_count(observed))


def _uncleanable(observed: Observed) -> Iterator[Sample]:
    broker = observed.broker
    uncleanable = broker.maintenance.cleaner.status().uncleanable
    for directory in broker.log_manager.directories:
        yield (str(directory.path),), len(uncleanable.get(directory.path, ()))


def _ms_since_check(observed: Observed) -> float:
    checked_at_ms = observed.broker.maintenance.cleaner.status().checked_at_ms
    return -1 if checked_at_ms is None else observed.broker.clock.timer_ms() - checked_at_ms


def _recopy_percent(observed: Observed) -> float:
    last = observed.broker.maintenance.cleaner.status().last_round
    if last is None or not last.stats.bytes_read:
        return 0
    return 100 * last.stats.bytes_written / last.stats.bytes_read


def _last_round_seconds(observed: Observed) -> float:
    last = observed.broker.maintenance.cleaner.status().last_round
    return 0 if last is None else last.seconds


LOG_METRICS: list[Metric] = [
    _log_gauge("size", "Bytes of the log's segments.", lambda log: log.size_bytes),
    _log_gauge("logstartoffset", "The first offset.", lambda log: log.log_start_offset),
    _log_gauge("logendoffset", "The offset of the next record.", lambda log: log.log_end_offset),
    _log_gauge("numlogsegments", "Segments of the log.", lambda log: len(log.segments)),
    gauge(
        "kafka_server_replicamanager_partitioncount",
        "Partitions of this broker.",
        partition_count,
    ),
    gauge(
        "kafka_server_replicamanager_leadercount",
        "Partitions that this broker leads.",
        served_partition_count,
    ),
    gauge(
        "kafka_server_replicamanager_offlinereplicacount",
        "Partitions whose log is offline or still being recovered.",
        offline_partition_count,
    ),
    gauge(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Always 0, because there is one node.",
        lambda _: 0,
    ),
    gauge(
        "kafka_server_replicamanager_underminisrpartitioncount",
        "Always 0, because there is one node.",
        lambda _: 0,
    ),
    gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that have failed.",
        lambda observed: len(observed.broker.log_manager.offline),
    ),
    gauge(
        "odradek_full_log_directories",
        "Log directories with so little free space that records are refused.",
        lambda observed: len(observed.broker.disk_space.low),
    ),
    gauge(
        "odradek_logs_to_recover",
        "Logs that wait for their recovery.",
        lambda observed: len(observed.broker.log_manager.waiting()),
    ),
    Metric(
        "kafka_log_logflushstats_logflushrateandtimems",
        Kind.HISTOGRAM,
        (),
        "Milliseconds of each sync of a log.",
        lambda observed: [((), observed.traffic.syncs)],
    ),
    gauge(
        "kafka_log_logcleanermanager_max_dirty_percent",
        "Highest percentage of bytes still to be cleaned in a log, at the last check.",
        lambda observed: 100 * observed.broker.maintenance.cleaner.status().max_dirty_ratio,
    ),
    gauge(
        "kafka_log_logcleanermanager_time_since_last_run_ms",
        "Milliseconds since the cleaner last checked all logs; -1 before the first check.",
        _ms_since_check,
    ),
    Metric(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        Kind.GAUGE,
        ("logDirectory",),
        "Partitions that are not cleaned until a restart.",
        _uncleanable,
    ),
    gauge(
        "kafka_log_logcleaner_cleaner_recopy_percent",
        "Bytes that the last round of the cleaner has written, in percent of those it has read.",
        _recopy_percent,
    ),
    gauge(
        "kafka_log_logcleaner_max_clean_time_secs",
        "Duration of the last round of the cleaner, in seconds.",
        _last_round_seconds,
    ),
    gauge(
        "odradek_log_cleaner_rounds",
        "Logs that are being cleaned.",
        lambda observed: len(observed.broker.maintenance.cleaner.status().cleaning),
    ),
]
