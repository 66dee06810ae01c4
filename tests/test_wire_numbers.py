"""The numbers that are on the wire and on disk are those of Apache Kafka 4.4.

Names that only Kafka has (UNKNOWN, ANY) are left out where odradek does not use them.
"""

from enum import IntEnum

import pytest

from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.config.describe import ConfigSource
from odradek.config.key import ConfigType
from odradek.coordinator.metadata.acls import PatternType, Permission
from odradek.coordinator.metadata.config_changes import AlterOperation
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.elections import ElectionType
from odradek.coordinator.metadata.feature_updates import UpgradeType
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism
from odradek.coordinator.metadata.topics import LeaderRecoveryState
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.share_partitions.changes import AcknowledgeType
from odradek.coordinator.share_partitions.in_flight import RecordState
from odradek.coordinator.streams_groups.status import StatusCode
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.compression import CompressionType
from odradek.protocol.records.control import ControlRecordType

KAFKAS: dict[type[IntEnum], dict[str, int]] = {
    StatusCode: {
        "STALE_TOPOLOGY": 0,
        "MISSING_SOURCE_TOPICS": 1,
        "INCORRECTLY_PARTITIONED_TOPICS": 2,
        "MISSING_INTERNAL_TOPICS": 3,
        "SHUTDOWN_APPLICATION": 4,
        "ASSIGNMENT_DELAYED": 5,
        "MISSING_CLIENT_TAGS": 6,
    },
    RecordState: {
        "AVAILABLE": 0,
        "ACQUIRED": 1,
        "ACKNOWLEDGED": 2,
        "ARCHIVING": 3,
        "ARCHIVED": 4,
    },
    AcknowledgeType: {"GAP": 0, "ACCEPT": 1, "RELEASE": 2, "REJECT": 3, "RENEW": 4},
    UpgradeType: {"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3},
    ConfigResourceType: {
        "UNKNOWN": 0,
        "TOPIC": 2,
        "BROKER": 4,
        "BROKER_LOGGER": 8,
        "CLIENT_METRICS": 16,
        "GROUP": 32,
    },
    ScramMechanism: {"SHA_256": 1, "SHA_512": 2},
    PatternType: {"ANY": 1, "MATCH": 2, "LITERAL": 3, "PREFIXED": 4},
    Permission: {"DENY": 2, "ALLOW": 3},
    AclOperation: {
        "ALL": 2,
        "READ": 3,
        "WRITE": 4,
        "CREATE": 5,
        "DELETE": 6,
        "ALTER": 7,
        "DESCRIBE": 8,
        "CLUSTER_ACTION": 9,
        "DESCRIBE_CONFIGS": 10,
        "ALTER_CONFIGS": 11,
        "IDEMPOTENT_WRITE": 12,
        "CREATE_TOKENS": 13,
        "DESCRIBE_TOKENS": 14,
        "TWO_PHASE_COMMIT": 15,
    },
    ResourceType: {
        "TOPIC": 2,
        "GROUP": 3,
        "CLUSTER": 4,
        "TRANSACTIONAL_ID": 5,
        "DELEGATION_TOKEN": 6,
        "USER": 7,
    },
    AlterOperation: {"SET": 0, "DELETE": 1, "APPEND": 2, "SUBTRACT": 3},
    ElectionType: {"PREFERRED": 0, "UNCLEAN": 1},
    MemberState: {
        "STABLE": 0,
        "UNREVOKED_PARTITIONS": 1,
        "UNRELEASED_PARTITIONS": 2,
        "UNKNOWN": 127,
    },
    TransactionState: {
        "EMPTY": 0,
        "ONGOING": 1,
        "PREPARE_COMMIT": 2,
        "PREPARE_ABORT": 3,
        "COMPLETE_COMMIT": 4,
        "COMPLETE_ABORT": 5,
        "DEAD": 6,
        "PREPARE_EPOCH_FENCE": 7,
    },
    ConfigSource: {
        "TOPIC": 1,
        "DYNAMIC_BROKER": 2,
        "DYNAMIC_DEFAULT_BROKER": 3,
        "STATIC_BROKER": 4,
        "DEFAULT": 5,
        "BROKER_LOGGER": 6,
        "CLIENT_METRICS": 7,
        "GROUP": 8,
    },
    ConfigType: {
        "BOOLEAN": 1,
        "STRING": 2,
        "INT": 3,
        "SHORT": 4,
        "LONG": 5,
        "DOUBLE": 6,
        "LIST": 7,
        "CLASS": 8,
        "PASSWORD": 9,
    },
    LeaderRecoveryState: {"RECOVERED": 0, "RECOVERING": 1},
    CompressionType: {"NONE": 0, "GZIP": 1, "SNAPPY": 2, "LZ4": 3, "ZSTD": 4},
    ControlRecordType: {
        "ABORT": 0,
        "COMMIT": 1,
        "LEADER_CHANGE": 2,
        "SNAPSHOT_HEADER": 3,
        "SNAPSHOT_FOOTER": 4,
        "KRAFT_VERSION": 5,
        "KRAFT_VOTERS": 6,
    },
}


@pytest.mark.parametrize("ours", KAFKAS, ids=lambda made: made.__name__)
def test_a_name_has_kafkas_number(ours: type[IntEnum]) -> None:
    assert {name: int(value) for name, value in ours.__members__.items()} == KAFKAS[ours]
