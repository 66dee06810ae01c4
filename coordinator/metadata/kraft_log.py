"""Opens `__cluster_metadata-0` as Kafka's KRaft log.

At a start this node elects itself and begins a new epoch. The epoch is written to `quorum-state`,
and a LeaderChange control batch begins it in the log; later batches have it as their partition
leader epoch. A log without records then gets its first ones, which formatting has decided, inside a
metadata transaction. A transaction that was left open is aborted. After that the log is a
journal like any other.

Kafka: KafkaRaftClient, LeaderState.appendStartOfEpochControlRecords, ActivationRecordsGenerator.
"""

import logging
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.runtime.journal import Journal
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from odradek.storage.filenames import (
    is_unfinished_snapshot,
    metadata_snapshot_file,
    parse_metadata_snapshot_file,
)
from odradek.storage.files import Files
from odradek.storage.log import AppendOrigin, PartitionLog

from .cluster_metadata import ClusterMetadata
from .features import ELR_VERSION, METADATA_VERSION
from .joined_records import joined_records
from .metadata_reading import MetadataReading, check_reading, read_metadata
from .min_insync_replicas import elr_safety_records
from .quorum import Quorum, QuorumMember, epoch_start
from .quorum_state import QuorumState, write_quorum_state

_logger = logging.getLogger(__name__)

FIRST_VERSION_WITH_TRANSACTIONS = 13  # metadata.version 3.6-IV1
DAMAGED_SUFFIX = ".damaged"  # of a snapshot; Kafka ignores such a file


class KraftLog(Struct, frozen=True, kw_only=True):
    """The metadata log, open and led by this node.

    `default_min_insync_replicas` is that of the configuration file, or Kafka's default.
    """

    journal: Journal
    metadata: ClusterMetadata
    quorum: Quorum
    me: QuorumMember
    leader_epoch: int
    default_min_insync_replicas: int


def open_kraft_log(
    log: PartitionLog,
    files: Files,
    cluster_id: str,
    me: QuorumMember,
    *,
    now_ms: int,
    default_min_insync_replicas: int = 1,
    reading: MetadataReading | None = None,
) -> KraftLog:
    """Replay the metadata and become its leader. `reading`: its content, if it was read already.

    Nothing is written when it raises: NotSoleVoterError, UnsupportedMetadataError,
    CorruptJournalError, QuorumStateError. All that was written is on the disk when it returns.
    """
    if reading is None or reading.end_offset != log.log_end_offset:
        reading = read_metadata(files, log.directory, cluster_id)
    check_reading(reading, me)
    metadata, quorum = reading.metadata, reading.quorum
    _align_snapshots_and_log(log, files, reading, now_ms)
    epoch = 1 + max(reading.last_epoch, log.leader_epoch)
    codec = MetadataRecordCodec.of_cluster()
    journal = Journal(log, metadata, codec, start_offset=log.log_end_offset, join=joined_records)
    _begin_epoch(log, files, quorum, me, epoch, now_ms)
    first = reading.first_records
    journal.commit(_activation(metadata, first, default_min_insync_replicas), now_ms)
    log.flush(now_ms)
    if quorum.voters is not None:
        quorum = replace(quorum, voters_are_in_log=True)
    return KraftLog(
        journal=journal,
        metadata=metadata,
        quorum=quorum,
        me=me,
        leader_epoch=epoch,
        default_min_insync_replicas=default_min_insync_replicas,
    )


def _align_snapshots_and_log(
    log: PartitionLog, files: Files, reading: MetadataReading, now_ms: int
) -> None:
    """Rename or delete useless snapshots, and let the log end no earlier than the newest one.

    Damaged snapshots are renamed. Unfinished ones, and those before the log's start, are deleted.
    """
    for damaged in reading.damaged:
        path = log.directory / metadata_snapshot_file(*damaged)
        _logger.error(
            "%s is damaged: it is renamed to %s, the log still has its records",
            path,
            path.name + DAMAGED_SUFFIX,
        )
        files.rename(path, path.with_name(path.name + DAMAGED_SUFFIX))
    for file_name in files.list_directory(log.directory):
        name = parse_metadata_snapshot_file(file_name)
        is_old = name is not None and name.end_offset < reading.start_offset
        if is_old or is_unfinished_snapshot(file_name):
            files.remove(log.directory / file_name)
    if reading.next_offset > log.log_end_offset:
        _logger.error(
            "%s ends at offset %d, its newest snapshot at %d: the log continues there",
            log.directory,
            log.log_end_offset,
            reading.next_offset,
        )
        log.truncate_fully_and_start_at(reading.next_offset, now_ms)


def _begin_epoch(
    log: PartitionLog, files: Files, quorum: Quorum, me: QuorumMember, epoch: int, now_ms: int
) -> None:
    voters = (me.node_id,) if quorum.kraft_version == 0 else None
    won = QuorumState(leader_id=me.node_id, leader_epoch=epoch, voters=voters)
    write_quorum_state(files, log.directory, won)
    batch = build_batch(
        [record._replace(timestamp_ms=now_ms) for record in epoch_start(quorum, me)],
        is_control=True,
    )
    log.become_leader(epoch)
    log.append(batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)


def _activation(
    metadata: ClusterMetadata, first: Sequence[JournalRecord], min_insync_replicas: int
) -> Outcome[None]:
    """Return the first records that a new leader writes."""
    abort = AbortTransactionRecord(reason="Controller failover")
    records = [JournalRecord(abort)] if metadata.in_transaction else []
    if not metadata.is_bootstrapped:
        levels = _feature_levels(first)
        body = list(first)
        if levels.get(ELR_VERSION):
            body += elr_safety_records(metadata.configs, min_insync_replicas)
        if levels.get(METADATA_VERSION, 0) >= FIRST_VERSION_WITH_TRANSACTIONS:
            begin = JournalRecord(BeginTransactionRecord(name="Bootstrap records"))
            body = [begin, *body, JournalRecord(EndTransactionRecord())]
        records += body
    return Outcome(reply=None, records=tuple(records))


def _feature_levels(records: Sequence[JournalRecord]) -> dict[str, int]:
    return {
        record.value.name: record.value.feature_level
        for record in records
        if isinstance(record.value, FeatureLevelRecord)
    }
