"""The controller: decides on the cluster's metadata, writes the decision, answers.

Each method is one decision of the modules beside this one, committed to the metadata log. None of
them waits: what a caller owes besides (the fsync of `log` before the answer leaves, making and
deleting partition logs) is the caller's. Kafka: QuorumController.
"""

from collections.abc import Callable, Mapping, Sequence

from ..protocol.errors import ApiError
from ..protocol.records.cluster_metadata import BrokerRegistrationChangeRecord
from ..storage.log import PartitionLog
from .broker_registration import BrokerRegistration, Endpoint
from .cluster_metadata import ClusterMetadata
from .elections import ElectionType, TopicPartition, elect_leaders, take_over
from .kraft_log import KraftLog
from .outcome import Outcome
from .producer_ids import ProducerIds, take_block
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
        self.producer_ids = ProducerIds(self._next_producer_ids)
        self._journal = kraft_log.journal
        self._rules = rules

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
        self, *, clean_shutdown: bool, directory_of: Mapping[TopicPartition, bytes], now_ms: int
    ) -> list[TopicPartition]:
        """Lead what can be led from this start on; returns the partitions that nobody leads."""
        outcome = take_over(
            self.metadata, self.node_id, clean_shutdown=clean_shutdown, directory_of=directory_of
        )
        return self._journal.commit(outcome, now_ms)

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

    def elect_leaders(
        self, election: ElectionType, wanted: Sequence[TopicPartition] | None, now_ms: int
    ) -> dict[TopicPartition, ApiError | None]:
        """By partition: None where a leader was elected, else why not."""
        outcome = elect_leaders(self.metadata, self.node_id, election, wanted)
        return self._journal.commit(outcome, now_ms)

    def _next_producer_ids(self, now_ms: int) -> range:
        return self._journal.commit(take_block(self.metadata, self.node_id), now_ms)
