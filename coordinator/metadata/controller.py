"""The controller: decides on the cluster's metadata, writes the decision, answers.

Each method is one decision of the modules beside this one, committed to the metadata log. None of
them waits: what a caller owes besides (the fsync of `log` before the answer leaves, making and
deleting partition logs) is the caller's. Kafka: QuorumController.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from odradek.coordinator.outcome import Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import BrokerRegistrationChangeRecord
from odradek.storage.log import AppendOrigin, PartitionLog

from .broker_registration import BrokerRegistration, Endpoint
from .cluster_metadata import ClusterMetadata
from .config_changes import Alteration, ConfigResource, ConfigRules, alter_configs
from .elections import ElectionType, TopicPartition, elect_leaders, take_over
from .feature_updates import FeatureUpdate, update_features
from .features import ELR_VERSION
from .kraft_log import KraftLog
from .log_directories import directories_cordoned, directories_offline
from .min_insync_replicas import settle_min_insync_replicas
from .producer_ids import ProducerIds, take_block
from .quorum import sole_quorum, sole_voter
from .reassignments import assign_directories, assign_directory
from .topic_creation import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    TopicRules,
    create_partitions,
    create_topics,
)
from .topic_deletion import DeletedTopic, TopicRef, delete_topics


class Controller:
    """This node's controller. `rules` tells, at each request, what counts for new topics."""

    def __init__(self, kraft_log: KraftLog, rules: Callable[[], TopicRules]) -> None:
        self.metadata: ClusterMetadata = kraft_log.metadata
        self.quorum = kraft_log.quorum
        self.quorum_epoch = kraft_log.leader_epoch
        self.node_id = kraft_log.me.node_id
        self.me = kraft_log.me
        self.producer_ids = ProducerIds(self._next_producer_ids)
        self._journal = kraft_log.journal
        self._rules = rules
        self._default_min_insync_replicas = kraft_log.default_min_insync_replicas

    @property
    def log(self) -> PartitionLog:
        """The metadata log: sync it before an answer leaves that tells of a change."""
        return self._journal.log

    # -- the broker's life ----------------------------------------------------------------------

    def register_broker(
        self,
        *,
        incarnation_id: bytes,
        endpoints: Sequence[Endpoint],
        directories: Sequence[bytes],
        cordoned: Sequence[bytes] = (),
        rack: str | None,
        now_ms: int,
    ) -> int:
        """Register this start of the broker, unfenced. Returns its broker epoch."""
        broker_epoch = self.log.log_end_offset
        registration = BrokerRegistration(
            broker_id=self.node_id,
            incarnation_id=incarnation_id,
            broker_epoch=broker_epoch,
            endpoints=tuple(endpoints),
            log_dirs=tuple(directories),
            cordoned_log_dirs=tuple(cordoned),
            rack=rack,
            fenced=False,
        )
        record = self.metadata.features.versioned(registration.to_record())
        return self._journal.commit(Outcome(reply=broker_epoch, records=(record,)), now_ms)

    def fence_broker(self, now_ms: int) -> None:
        """The last word of a clean shutdown: this broker is no longer there."""
        change = BrokerRegistrationChangeRecord(
            broker_id=self.node_id,
            broker_epoch=self.metadata.brokers[self.node_id].broker_epoch,
            fenced=1,
        )
        record = self.metadata.features.versioned(change)
        self._journal.commit(Outcome(reply=None, records=(record,)), now_ms)

    def take_over(
        self,
        *,
        clean_shutdown: bool,
        directory_of: Mapping[TopicPartition, bytes],
        any_offline: bool = False,
        now_ms: int,
    ) -> list[TopicPartition]:
        """Lead what can be led from this start on; returns the partitions that nobody leads."""
        outcome = take_over(
            self.metadata,
            self.node_id,
            clean_shutdown=clean_shutdown,
            directory_of=directory_of,
            any_offline=any_offline,
        )
        return self._journal.commit(outcome, now_ms)

    def directories_offline(
        self,
        failed: Collection[bytes],
        lies_in: Mapping[TopicPartition, bytes],
        now_ms: int,
    ) -> list[TopicPartition]:
        """Log directories have failed; returns the partitions that nobody leads because of it."""
        outcome = directories_offline(self.metadata, self.node_id, failed, lies_in)
        return self._journal.commit(outcome, now_ms)

    def cordon_directories(self, cordoned: Sequence[bytes], now_ms: int) -> None:
        """These log directories get no new partitions from now on, and no others."""
        self._journal.commit(directories_cordoned(self.metadata, self.node_id, cordoned), now_ms)

    # -- requests -------------------------------------------------------------------------------

    def create_topics(
        self, wishes: Sequence[NewTopic], now_ms: int, *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | ApiError]:
        """By name: what was created, or why not. Raises POLICY_VIOLATION for too many at once."""
        outcome = create_topics(self.metadata, wishes, self._rules(), validate_only=validate_only)
        return self._journal.commit(outcome, now_ms)

    def create_partitions(
        self, wishes: Sequence[MorePartitions], now_ms: int, *, validate_only: bool = False
    ) -> dict[str, ApiError | None]:
        """By name: None where the partitions were added, else why not."""
        outcome = create_partitions(
            self.metadata, wishes, self._rules(), validate_only=validate_only
        )
        return self._journal.commit(outcome, now_ms)

    def delete_topics(self, wishes: Sequence[TopicRef], now_ms: int) -> list[DeletedTopic]:
        """What was deleted, and what not and why."""
        return self._journal.commit(delete_topics(self.metadata, wishes), now_ms)

    def alter_configs(
        self,
        alterations: Sequence[Alteration],
        rules: ConfigRules,
        now_ms: int,
        *,
        validate_only: bool = False,
    ) -> dict[ConfigResource, ApiError | None]:
        """By resource: None where it was changed. Raises POLICY_VIOLATION for too much at once."""
        outcome = alter_configs(self.metadata, alterations, rules, validate_only=validate_only)
        return self._journal.commit(outcome, now_ms)

    def elect_leaders(
        self, election: ElectionType, wanted: Sequence[TopicPartition] | None, now_ms: int
    ) -> dict[TopicPartition, ApiError | None]:
        """By partition: None where a leader was elected, else why not."""
        outcome = elect_leaders(self.metadata, self.node_id, election, wanted)
        return self._journal.commit(outcome, now_ms)

    def assign_directory(self, name: str, index: int, directory_id: bytes, now_ms: int) -> None:
        """This node's replica lies in that directory now. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        outcome = assign_directory(self.metadata, self.node_id, name, index, directory_id)
        self._journal.commit(outcome, now_ms)

    def assign_directories(self, lies_in: Mapping[TopicPartition, bytes], now_ms: int) -> None:
        """This node's replicas lie in those directories."""
        self._journal.commit(assign_directories(self.metadata, self.node_id, lies_in), now_ms)

    def update_features(
        self, updates: Mapping[str, FeatureUpdate], now_ms: int, *, validate_only: bool
    ) -> None:
        """Finalise levels, all or none. Raises INVALID_UPDATE_VERSION."""
        outcome = update_features(self.metadata.features, self.quorum.kraft_version, updates)
        if validate_only:
            return
        if ELR_VERSION in updates and updates[ELR_VERSION].level:
            settled = settle_min_insync_replicas(
                self.metadata.configs, self._default_min_insync_replicas
            )
            outcome = Outcome(reply=outcome.reply, records=(*settled, *outcome.records))
        if self._journal.commit(outcome, now_ms) > self.quorum.kraft_version:
            self._name_the_voters(now_ms)

    def _name_the_voters(self, now_ms: int) -> None:
        """From static voters to ones that the log names. Kafka: LeaderState."""
        records = [record._replace(timestamp_ms=now_ms) for record in sole_voter(self.me)]
        batch = build_batch(records, is_control=True)
        self.log.append(batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        self.quorum = replace(sole_quorum(self.me), voters_are_in_log=True)

    def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker: there is none beside this one, which is in use, so it is refused.

        Raises BROKER_ID_NOT_REGISTERED, INVALID_REQUEST.
        """
        if broker_id not in self.metadata.brokers:
            text = f"Broker ID {broker_id} is not currently registered"
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        text = f"Broker {broker_id} is the one that serves this cluster: it stays registered."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)

    def _next_producer_ids(self, now_ms: int) -> range:
        return self._journal.commit(take_block(self.metadata, self.node_id), now_ms)
