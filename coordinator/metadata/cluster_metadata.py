"""The cluster's metadata: the state machine of `__cluster_metadata-0`.

It is built from the log's records: topics, configs, features, brokers, the next producer id,
quotas, ACLs, SCRAM credentials, delegation tokens. The decisions are in other modules
(topic_creation, topic_deletion, elections, …): functions that read the metadata and return an
Outcome.

Records of one change may be joined before they are replayed (joined_records.py).

Records that are not served (controllers, unknown types) are kept as they were written
(kept_records.py), and metadata_image.py writes them into snapshots.

The records of a metadata transaction (KIP-868) are applied when it ends. Those of one that is
aborted, or still open at the end of the log, are ignored. Kafka: MetadataDelta, QuorumController,
OffsetControlManager.
"""

from collections.abc import Callable
from typing import Any

from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)

from .acls import Acls
from .broker_registration import changed_registration
from .client_quotas import ClientQuotas
from .configs import Configs
from .delegation_tokens import DelegationTokens
from .features import METADATA_VERSION, Features
from .joined_records import AddedPartitions, RemovedAcls
from .kept_records import KeptRecords
from .scram_credentials import ScramCredentials
from .topics import Topic, Topics


class ClusterMetadata:
    """The content of the metadata log. Only `replay` changes it."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.topics = Topics()
        self.configs = Configs()
        self.features = Features()
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.next_producer_id = 0
        self.quotas = ClientQuotas()
        self.acls = Acls()
        self.scram_credentials = ScramCredentials()
        self.delegation_tokens = DelegationTokens()
        self.kept_records = KeptRecords()
        self.last_offset = -1  # of the newest record replayed
        self.last_timestamp_ms = 0  # of the same
        self._transaction: list[JournalRecord] | None = None
        self._replay_of: dict[type[object], Callable[[Any], object]] = {
            TopicRecord: self.topics.replay_topic,
            PartitionRecord: self.topics.replay_partition,
            PartitionChangeRecord: self.topics.replay_partition_change,
            RemoveTopicRecord: self._replay_topic_removal,
            ClearElrRecord: self.topics.replay_elr_removal,
            ConfigRecord: self.configs.replay,
            FeatureLevelRecord: self.features.replay,
            RegisterBrokerRecord: self._replay_broker,
            BrokerRegistrationChangeRecord: self._replay_broker_change,
            FenceBrokerRecord: self._replay_fence,
            UnfenceBrokerRecord: self._replay_unfence,
            UnregisterBrokerRecord: self._replay_unregistration,
            ProducerIdsRecord: self._replay_producer_ids,
            RegisterControllerRecord: self.kept_records.replay_controller,
            UnregisterControllerRecord: self.kept_records.replay_controller_removal,
            ClientQuotaRecord: self.quotas.replay,
            AccessControlEntryRecord: self.acls.replay,
            RemoveAccessControlEntryRecord: self.acls.replay_removal,
            UserScramCredentialRecord: self.scram_credentials.replay,
            RemoveUserScramCredentialRecord: self.scram_credentials.replay_removal,
            DelegationTokenRecord: self.delegation_tokens.replay,
            RemoveDelegationTokenRecord: self.delegation_tokens.replay_removal,
            Topic: self.topics.replay_added_topic,
            AddedPartitions: self._replay_added_partitions,
            Acls: self.acls.replay_added,
            RemovedAcls: self._replay_removed_acls,
        }

    @property
    def in_transaction(self) -> bool:
        """Whether the last record replayed is inside a metadata transaction."""
        return self._transaction is not None

    @property
    def is_bootstrapped(self) -> bool:
        """Whether the log has its first records (a finalised metadata.version)."""
        return METADATA_VERSION in self.features.in_log

    # -- replay ---------------------------------------------------------------------------------

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Do nothing: no producer writes this log. Metadata transactions are records of it."""

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record of the log."""
        self.last_offset, self.last_timestamp_ms = context.offset, context.timestamp_ms
        message = record.value
        apply = self._replay_of.get(type(message))
        if apply is not None and self._transaction is None:  # thousands in one turn of the loop
            apply(message)
        elif isinstance(message, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(message, AbortTransactionRecord):
            self._transaction = None
        elif isinstance(message, EndTransactionRecord):
            ended, self._transaction = self._transaction or [], None
            for held in ended:
                self._apply(held)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._apply(record)

    def _apply(self, record: JournalRecord) -> None:
        if record.unread is not None:
            self.kept_records.unread.append(record.unread)
        apply = self._replay_of.get(type(record.value))
        if apply is not None:
            apply(record.value)

    def _replay_added_partitions(self, added: AddedPartitions) -> None:
        self.topics.replay_added_partitions(added.topic_id, added.partitions)

    def _replay_removed_acls(self, removed: RemovedAcls) -> None:
        self.acls.replay_removals(removed.ids)

    def _replay_topic_removal(self, record: RemoveTopicRecord) -> None:
        topic = self.topics.replay_removal(record)
        self.configs.replay_topic_removal(topic.name)

    def _replay_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _replay_broker_change(self, record: BrokerRegistrationChangeRecord) -> None:
        registration = self.brokers[record.broker_id]
        self.brokers[record.broker_id] = changed_registration(registration, record)

    def _replay_fence(self, record: FenceBrokerRecord) -> None:
        change = BrokerRegistrationChangeRecord(
            broker_id=record.id, broker_epoch=record.epoch, fenced=1
        )
        self._replay_broker_change(change)

    def _replay_unfence(self, record: UnfenceBrokerRecord) -> None:
        change = BrokerRegistrationChangeRecord(
            broker_id=record.id, broker_epoch=record.epoch, fenced=-1
        )
        self._replay_broker_change(change)

    def _replay_unregistration(self, record: UnregisterBrokerRecord) -> None:
        self.brokers.pop(record.broker_id, None)

    def _replay_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id
