"""What the metadata of an empty data directory begins with: the work of `kafka-storage format`.

Two snapshots, as `format --standalone` leaves them: `bootstrap.checkpoint` with the feature levels,
which become the log's first records when it is opened, and the snapshot of offset 0 with this node
as the only voter. A `bootstrap.checkpoint` that is there already stays: `kafka-storage format` made
it for a quorum of static voters, and that quorum has not met yet. meta.properties is the log
manager's. Kafka: Formatter, DynamicVoters.
"""

from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.record_codec import MetadataRecordCodec
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
from .quorum import QuorumMember, sole_voter

SHIPPED = Endpoint("CONTROLLER", "localhost", 9093)


def controller_endpoint(config: BrokerConfig) -> Endpoint:
    """What the voter's record names: the controller listener of the file, which is never opened.

    Without one, that of the server.properties that Kafka ships; Kafka corrects it at its start.
    """
    named = {name.upper() for name in config.controller_listener_names}
    for listener in config.all_listeners:
        if listener.name in named:
            return Endpoint(listener.name, listener.host or SHIPPED.host, listener.port)
    return SHIPPED


def metadata_log_directory(data_directory: Path) -> Path:
    """Where the metadata log lies in the data directory that has it."""
    return data_directory / partition_directory(CLUSTER_METADATA_TOPIC, 0)


def is_formatted(files: Files, data_directory: Path) -> bool:
    """Whether the data directory has a metadata log, or at least the snapshot it begins with."""
    directory = metadata_log_directory(data_directory)
    if not files.is_directory(directory):
        return False
    return any(name != PARTITION_METADATA for name in files.list_directory(directory))


def format_metadata(files: Files, data_directory: Path, me: QuorumMember, now_ms: int) -> None:
    """Prepare a data directory that has no metadata log yet. Safe to repeat after a crash."""
    codec = MetadataRecordCodec.of_cluster()
    log_directory = metadata_log_directory(data_directory)
    files.make_directory(log_directory)
    bootstrap = data_directory / BOOTSTRAP_CHECKPOINT
    if not files.exists(bootstrap):
        levels = bootstrap_records()
        content = snapshot_bytes([], levels, codec, last_contained_ms=0, now_ms=now_ms)
        files.atomic_write(bootstrap, content)
    voters = snapshot_bytes(sole_voter(me), [], codec, last_contained_ms=now_ms, now_ms=now_ms)
    files.atomic_write(log_directory / metadata_snapshot_file(0, 0), voters)
