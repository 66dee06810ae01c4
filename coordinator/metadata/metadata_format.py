"""Formats the metadata of an empty data directory, as `kafka-storage format` does.

It writes two snapshots, as `format --standalone` does: `bootstrap.checkpoint` with the feature
levels, which become the log's first records when it is opened, and the snapshot of offset 0 with
this node as the only voter. An existing `bootstrap.checkpoint` is kept: `kafka-storage format`
wrote it for a quorum of static voters that has not started yet. The log manager writes
meta.properties. Kafka: Formatter, DynamicVoters.
"""

from collections.abc import Sequence
from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.storage.filenames import (
    BOOTSTRAP_CHECKPOINT,
    PARTITION_METADATA,
    metadata_snapshot_file,
    partition_directory,
)
from odradek.storage.files import Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .broker_registration import Endpoint
from .features import bootstrap_records
from .metadata_snapshot import snapshot_bytes
from .quorum import QuorumMember, sole_voter_records

DEFAULT_ENDPOINT = Endpoint("CONTROLLER", "localhost", 9093)


def controller_endpoint(config: BrokerConfig) -> Endpoint:
    """Return the endpoint in the voter's record: the configured controller listener.

    odradek never opens it. If none is configured, it is that of the server.properties that Kafka
    ships; Kafka corrects the record at its start.
    """
    named = {name.upper() for name in config.controller_listener_names}
    for listener in config.all_listeners:
        if listener.name in named:
            return Endpoint(listener.name, listener.host or DEFAULT_ENDPOINT.host, listener.port)
    return DEFAULT_ENDPOINT


def metadata_log_directory(data_directory: Path) -> Path:
    """Return the directory of the metadata log in a data directory."""
    return data_directory / partition_directory(CLUSTER_METADATA_TOPIC, 0)


def is_formatted(files: Files, data_directory: Path) -> bool:
    """Whether the data directory has a metadata log, or at least its first snapshot."""
    directory = metadata_log_directory(data_directory)
    if not files.is_directory(directory):
        return False
    return any(name != PARTITION_METADATA for name in files.list_directory(directory))


def format_metadata(
    files: Files,
    data_directory: Path,
    me: QuorumMember,
    now_ms: int,
    users: Sequence[JournalRecord] = (),
) -> None:
    """Format a data directory that has no metadata log yet. Safe to repeat after a crash.

    `users` are the records of the first SCRAM users.
    """
    codec = MetadataRecordCodec.of_cluster()
    log_directory = metadata_log_directory(data_directory)
    files.make_directory(log_directory)
    bootstrap = data_directory / BOOTSTRAP_CHECKPOINT
    if not files.exists(bootstrap):
        records = (*bootstrap_records(), *users)
        content = snapshot_bytes([], records, codec, last_contained_ms=0, now_ms=now_ms)
        files.atomic_write(bootstrap, content)
    voters = snapshot_bytes(
        sole_voter_records(me), [], codec, last_contained_ms=now_ms, now_ms=now_ms
    )
    files.atomic_write(log_directory / metadata_snapshot_file(0, 0), voters)
