"""Formats the metadata of an empty data directory, as `kafka-storage format` does.

As `format --standalone` of Kafka 4.4 it writes the snapshot of offset 0, which has this node as the
only voter, and the feature levels, which become the log's first records when it is opened. Kafka
4.3 reads these from `bootstrap.checkpoint` and does not look for them in the snapshot. So with a
metadata.version that Kafka 4.3 knows, both files are written as that Kafka writes them, and 4.4
reads them, too.

An existing `bootstrap.checkpoint` is kept: `kafka-storage format` of Kafka 4.3 wrote it for a
quorum of static voters that has not started yet. The log manager writes meta.properties. Kafka:
Formatter, DynamicVoters.
"""

from collections.abc import Mapping, Sequence
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
from odradek.storage.files import TEMPORARY_SUFFIX, Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .broker_registration import Endpoint
from .features import METADATA_VERSION, bootstrap_records, levels_at_format
from .metadata_snapshot import snapshot_bytes
from .quorum import QuorumMember, sole_voter_records

_FIRST_VERSION_OF_44 = 31
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
    """Whether the data directory has a metadata log, or at least its first snapshot.

    An interrupted format leaves a directory with temporary files at most.
    """
    directory = metadata_log_directory(data_directory)
    if not files.is_directory(directory):
        return False
    return any(
        name != PARTITION_METADATA and not name.endswith(TEMPORARY_SUFFIX)
        for name in files.list_directory(directory)
    )


def has_first_records(files: Files, data_directory: Path) -> bool:
    """Whether formatting has written the feature levels and the first users, or Kafka has."""
    has_bootstrap = files.exists(data_directory / BOOTSTRAP_CHECKPOINT)
    return has_bootstrap or is_formatted(files, data_directory)


def format_metadata(
    files: Files,
    data_directory: Path,
    me: QuorumMember,
    now_ms: int,
    users: Sequence[JournalRecord] = (),
    levels: Mapping[str, int] | None = None,
) -> None:
    """Format a data directory that has no metadata log yet. Safe to repeat after a crash.

    `users` are the records of the first SCRAM users. `levels` are those of the features, else those
    of the newest metadata.version. Where bootstrap.checkpoint exists, it has both, and these are
    ignored.
    """
    levels = levels or levels_at_format()
    first_records = (*bootstrap_records(levels), *users)
    codec = MetadataRecordCodec.of_cluster()
    log_directory = metadata_log_directory(data_directory)
    files.make_directory(log_directory)
    bootstrap = data_directory / BOOTSTRAP_CHECKPOINT
    has_bootstrap = files.exists(bootstrap)
    if levels[METADATA_VERSION] < _FIRST_VERSION_OF_44 and not has_bootstrap:
        content = snapshot_bytes([], first_records, codec, last_contained_ms=0, now_ms=now_ms)
        files.atomic_write(bootstrap, content)
        has_bootstrap = True
    snapshot = snapshot_bytes(
        sole_voter_records(me),
        () if has_bootstrap else first_records,
        codec,
        last_contained_ms=now_ms,
        now_ms=now_ms,
    )
    files.atomic_write(log_directory / metadata_snapshot_file(0, 0), snapshot)
