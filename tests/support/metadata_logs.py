"""Real metadata logs, in directories of their own."""

from pathlib import Path

from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.kraft_log import KraftLog
from odradek.coordinator.metadata.metadata_format import format_metadata
from odradek.coordinator.metadata.quorum import QuorumMember
from odradek.coordinator.metadata.topic_creation import TopicRules
from odradek.protocol.primitives import METADATA_TOPIC_ID, uuid_from_text
from odradek.protocol.records.cluster_metadata import AccessControlEntryRecord
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from tests.support.partition_logs import UnsyncedFiles, open_log

FILES = UnsyncedFiles()
ME = QuorumMember(
    node_id=1, directory_id=bytes(15) + b"\xd1", endpoint=Endpoint("CONTROLLER", "localhost", 9093)
)
ACL = AccessControlEntryRecord(
    id=bytes(15) + b"\xac",
    resource_type=2,
    resource_name="t",
    pattern_type=3,
    principal="User:a",
    host="*",
    operation=3,
    permission_type=3,
)


def formatted(root: Path) -> Path:
    """A data directory of ours in `root`, with nothing in its metadata yet."""
    data = root / "data"
    data.mkdir()
    format_metadata(FILES, data, ME, now_ms=500)
    return data


def member_of(data: Path) -> QuorumMember:
    """To whom a data directory belongs."""
    lines = (data / "meta.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines if "=" in line)
    return QuorumMember(
        node_id=int(properties["node.id"]),
        directory_id=uuid_from_text(properties["directory.id"]),
        endpoint=ME.endpoint,
    )


def metadata_log(
    data: Path, *, files: Files = FILES, config: TopicConfig | None = None, clean: bool = False
) -> PartitionLog:
    """The log in a data directory, recovered unless it was closed (`clean`)."""
    return open_log(
        data,
        "__cluster_metadata",
        topic_id=METADATA_TOPIC_ID,
        config=config,
        files=files,
        clean=clean,
    )


def controller_of(kraft: KraftLog, *, default_partitions: int = 1) -> Controller:
    """A controller that accepts all configs of topics."""
    rules = TopicRules(
        node_id=kraft.me.node_id,
        directories=[kraft.me.directory_id],
        default_partitions=default_partitions,
        default_replication_factor=1,
        check_configs=lambda overrides: None,
    )
    return Controller(kraft, lambda: rules)
