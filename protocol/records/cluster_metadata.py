"""The records of `__cluster_metadata-0`, Kafka's KRaft metadata log.

metadata_frame.py has the frame of a record. The finalised `metadata.version` determines which
version of a record is written. On disk: never renumber.

Kafka: org.apache.kafka.common.metadata.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uint16,
    Uuid,
    since,
    tagged,
)


class BrokerEndpoint(Struct):
    """A listener of a broker or a controller."""

    name: String
    host: String
    port: Uint16
    security_protocol: Int16


class BrokerFeature(Struct):
    """The levels of a feature that a broker or a controller supports."""

    name: String
    min_supported_version: Int16
    max_supported_version: Int16


class RegisterBrokerRecord(Message, versions="0-4", flexible="0+"):
    broker_id: Int32
    is_migrating_zk_broker: Annotated[Bool, since(2)] = False
    incarnation_id: Uuid
    broker_epoch: Int64
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]
    rack: String | None
    fenced: Bool = True
    in_controlled_shutdown: Annotated[Bool, since(1)] = False
    log_dirs: Annotated[list[Uuid], since(3), tagged(0)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, since(4), tagged(1)] = None


class UnregisterBrokerRecord(Message, versions="0", flexible="0+"):
    broker_id: Int32
    broker_epoch: Int64


class TopicRecord(Message, versions="0", flexible="0+"):
    name: String
    topic_id: Uuid


class PartitionRecord(Message, versions="0-2", flexible="0+"):
    partition_id: Int32 = -1
    topic_id: Uuid
    replicas: list[Int32]
    isr: list[Int32]
    removing_replicas: list[Int32]
    adding_replicas: list[Int32]
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, tagged(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[list[Uuid], since(1)] = []
    eligible_leader_replicas: Annotated[list[Int32] | None, since(2), tagged(1)] = None
    last_known_elr: Annotated[list[Int32] | None, since(2), tagged(2)] = None


class ConfigRecord(Message, versions="0", flexible="0+"):
    resource_type: Int8
    resource_name: String
    name: String
    value: String | None


class PartitionChangeRecord(Message, versions="0-2", flexible="0+"):
    partition_id: Int32 = -1
    topic_id: Uuid
    isr: Annotated[list[Int32] | None, tagged(0)] = None
    leader: Annotated[Int32, tagged(1)] = -2
    replicas: Annotated[list[Int32] | None, tagged(2)] = None
    removing_replicas: Annotated[list[Int32] | None, tagged(3)] = None
    adding_replicas: Annotated[list[Int32] | None, tagged(4)] = None
    leader_recovery_state: Annotated[Int8, tagged(5)] = -1
    directories: Annotated[list[Uuid] | None, since(1), tagged(8)] = None
    eligible_leader_replicas: Annotated[list[Int32] | None, since(2), tagged(6)] = None
    last_known_elr: Annotated[list[Int32] | None, since(2), tagged(7)] = None


class FenceBrokerRecord(Message, versions="0", flexible="0+"):
    id: Int32
    epoch: Int64


class UnfenceBrokerRecord(Message, versions="0", flexible="0+"):
    id: Int32
    epoch: Int64


class RemoveTopicRecord(Message, versions="0", flexible="0+"):
    topic_id: Uuid


class DelegationTokenRecord(Message, versions="0", flexible="0+"):
    owner: String
    requester: String
    renewers: list[String]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


class UserScramCredentialRecord(Message, versions="0", flexible="0+"):
    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class FeatureLevelRecord(Message, versions="0", flexible="0+"):
    name: String
    feature_level: Int16


class EntityData(Struct):
    entity_type: String
    entity_name: String | None


class ClientQuotaRecord(Message, versions="0", flexible="0+"):
    entity: list[EntityData]
    key: String
    value: Float64
    remove: Bool


class ProducerIdsRecord(Message, versions="0", flexible="0+"):
    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


class BrokerRegistrationChangeRecord(Message, versions="0-3", flexible="0+"):
    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[Int8, tagged(0)] = 0
    in_controlled_shutdown: Annotated[Int8, since(1), tagged(1)] = 0
    log_dirs: Annotated[list[Uuid], since(2), tagged(2)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, since(3), tagged(3)] = None


class AccessControlEntryRecord(Message, versions="0", flexible="0+"):
    id: Uuid
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryRecord(Message, versions="0", flexible="0+"):
    id: Uuid


class NoOpRecord(Message, versions="0", flexible="0+"):
    """Written by an idle controller, so that followers see that it is alive."""


class ZkMigrationStateRecord(Message, versions="0", flexible="0+"):
    zk_migration_state: Int8


class RemoveUserScramCredentialRecord(Message, versions="0", flexible="0+"):
    name: String
    mechanism: Int8


class BeginTransactionRecord(Message, versions="0", flexible="0+"):
    name: Annotated[String | None, tagged(0)] = None


class EndTransactionRecord(Message, versions="0", flexible="0+"):
    """Applies the records since BeginTransactionRecord."""


class AbortTransactionRecord(Message, versions="0", flexible="0+"):
    reason: Annotated[String | None, tagged(0)] = None


class RemoveDelegationTokenRecord(Message, versions="0", flexible="0+"):
    token_id: String


class RegisterControllerRecord(Message, versions="0", flexible="0+"):
    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]


class ClearElrRecord(Message, versions="0", flexible="0+"):
    topic_name: String


class UnregisterControllerRecord(Message, versions="0", flexible="0+"):
    """From metadata.version 33 (4.4-IV2) on."""

    controller_id: Int32


# Types 6, 13 and 16 were removed before KRaft was released.
RECORD_TYPES: Mapping[int, type[Message]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
    29: UnregisterControllerRecord,
}
