"""The controller: decides on changes of the cluster's metadata and writes them.

Each method commits one decision of the other modules to the metadata log. None of them waits. The
caller must sync `log` before it answers, and creates and deletes the partition logs.

A decision about thousands of topics or users takes longer than a turn of the event loop may. So the
methods that requests can make long take a `step`: they give way while they decide and encode, and
not from the append on. Their callers keep to one of them at a time (broker/admin/operations.py), so
none changes what another depends on. What the other methods change (leaders, directories, producer
ids, tokens) no long decision depends on. Kafka: QuorumController, which has one thread.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    UnregisterControllerRecord,
)
from odradek.storage.log import AppendOrigin, PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .acl_changes import Deletions, create_acls, delete_acls
from .acls import AclFilter
from .broker_registration import Endpoint, registration_record
from .client_quotas import Entity
from .cluster_metadata import ClusterMetadata
from .config_changes import Alteration, ConfigResource, ConfigRules, alter_configs
from .elections import (
    ElectionType,
    all_partitions,
    elect_leaders,
    lead_again,
    take_over,
    without_needless,
)
from .feature_updates import FeatureUpdate, update_features
from .features import ELR_VERSION, FIRST_VERSION_WITH_CONTROLLER_REMOVAL
from .kraft_log import KraftLog
from .log_directories import directories_cordoned, directories_offline
from .min_insync_replicas import elr_safety_records
from .producer_ids import ProducerIds, take_block
from .quorum import sole_quorum, sole_voter_records
from .quota_changes import QuotaAlteration, alter_client_quotas
from .reassignments import assign_directories, assign_directory
from .scram_changes import ScramDeletion, ScramUpsertion, alter_scram_credentials
from .token_changes import (
    NewToken,
    TokenRules,
    create_token,
    expire_token,
    remove_expired_tokens,
    renew_token,
)
from .topic_creation import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    Permits,
    TopicRules,
    create_partitions,
    create_topics,
    unlimited,
)
from .topic_deletion import TopicDeletionResult, TopicRef, delete_topics

ELECTIONS_PER_DECISION = 100


class Controller:
    """This node's controller. `rules` returns the current rules for new topics."""

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
        """The metadata log. Sync it before a change is answered."""
        return self._journal.log

    # -- the broker's registration --------------------------------------------------------------

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
        """Register the broker at its start, unfenced. Returns its broker epoch."""
        broker_epoch = self.log.log_end_offset
        registration = registration_record(
            self.node_id,
            broker_epoch,
            incarnation_id=incarnation_id,
            endpoints=endpoints,
            directories=directories,
            cordoned=cordoned,
            rack=rack,
        )
        record = self.metadata.features.versioned(registration)
        return self._journal.commit(Outcome(reply=broker_epoch, records=(record,)), now_ms)

    def fence_broker(self, now_ms: int) -> None:
        """Fence this broker: the last record of a clean shutdown."""
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
        now_ms: int,
    ) -> list[TopicPartition]:
        """At start: lead the partitions that can be led. Returns those without a leader."""
        outcome = take_over(
            self.metadata,
            self.node_id,
            clean_shutdown=clean_shutdown,
            directory_of=directory_of,
        )
        return self._journal.commit(outcome, now_ms)

    def directories_offline(
        self,
        failed: Collection[bytes],
        directory_of: Mapping[TopicPartition, bytes],
        now_ms: int,
    ) -> list[TopicPartition]:
        """Record that log directories have failed. Returns the partitions without a leader."""
        outcome = directories_offline(self.metadata, self.node_id, failed, directory_of)
        return self._journal.commit(outcome, now_ms)

    def cordon_directories(self, cordoned: Sequence[bytes], now_ms: int) -> None:
        """Set the log directories that get no new partitions; they replace those set before."""
        self._journal.commit(directories_cordoned(self.metadata, self.node_id, cordoned), now_ms)

    # -- requests -------------------------------------------------------------------------------

    def create_topics(
        self,
        requests: Sequence[NewTopic],
        now_ms: int,
        *,
        validate_only: bool = False,
        permits: Permits = unlimited,
        step: Step = no_step,
    ) -> dict[str, CreatedTopic | ApiError]:
        """Return by name what was created, or the error. Raises POLICY_VIOLATION for too many."""
        outcome = create_topics(
            self.metadata,
            requests,
            self._rules(),
            validate_only=validate_only,
            permits=permits,
            step=step,
        )
        return self._journal.commit(outcome, now_ms, step=step)

    def create_partitions(
        self,
        requests: Sequence[MorePartitions],
        now_ms: int,
        *,
        validate_only: bool = False,
        permits: Permits = unlimited,
        step: Step = no_step,
    ) -> dict[str, ApiError | None]:
        """Return by name None if the partitions were added, else the error."""
        outcome = create_partitions(
            self.metadata,
            requests,
            self._rules(),
            validate_only=validate_only,
            permits=permits,
            step=step,
        )
        return self._journal.commit(outcome, now_ms, step=step)

    def delete_topics(
        self,
        requests: Sequence[TopicRef],
        now_ms: int,
        *,
        permits: Permits = unlimited,
        step: Step = no_step,
    ) -> list[TopicDeletionResult]:
        """Return for each request the topic that was deleted, or the error."""
        outcome = delete_topics(self.metadata, requests, permits, step)
        return self._journal.commit(outcome, now_ms, step=step)

    def alter_configs(
        self,
        alterations: Sequence[Alteration],
        rules: ConfigRules,
        now_ms: int,
        *,
        validate_only: bool = False,
        step: Step = no_step,
    ) -> dict[ConfigResource, ApiError | None]:
        """Return by resource None if it was changed, else the error.

        Raises POLICY_VIOLATION for too many records.
        """
        outcome = alter_configs(
            self.metadata, alterations, rules, validate_only=validate_only, step=step
        )
        return self._journal.commit(outcome, now_ms, step=step)

    def create_acls(
        self, entries: Sequence[AccessControlEntryRecord], now_ms: int, step: Step = no_step
    ) -> list[ApiError | None]:
        """Add access control entries. Returns for each None, or why it is refused.

        Raises POLICY_VIOLATION for too many.
        """
        level = self.metadata.features.metadata_version
        outcome = create_acls(self.metadata.acls, entries, level, step)
        return self._journal.commit(outcome, now_ms, step=step)

    def delete_acls(
        self, filters: Sequence[AclFilter], now_ms: int, step: Step = no_step
    ) -> Deletions:
        """Remove access control entries. Returns for each filter its matches, or the error.

        Removing thousands of entries from the index takes long, so that comes after the replay, in
        steps. Until then each use of the index leaves them out.
        Raises INVALID_REQUEST for too many.
        """
        outcome = delete_acls(self.metadata.acls, filters, step)
        deletions = self._journal.commit(outcome, now_ms, step=step)
        self.metadata.acls.clean_index(step)
        return deletions

    def alter_client_quotas(
        self,
        alterations: Sequence[QuotaAlteration],
        is_address: Callable[[str], bool],
        now_ms: int,
        *,
        validate_only: bool = False,
        step: Step = no_step,
    ) -> dict[Entity, ApiError | None]:
        """Return by entity None if its quotas were changed, else the error.

        Raises POLICY_VIOLATION for too many records.
        """
        outcome = alter_client_quotas(
            self.metadata, alterations, is_address, validate_only=validate_only, step=step
        )
        return self._journal.commit(outcome, now_ms, step=step)

    def create_token(
        self, wanted: NewToken, rules: TokenRules, now_ms: int
    ) -> DelegationTokenRecord:
        """Create a delegation token. Raises what token_changes.create_token raises."""
        return self._journal.commit(create_token(self.metadata, wanted, rules, now_ms), now_ms)

    def renew_token(
        self, token_hmac: bytes, period_ms: int, requester: str, rules: TokenRules, now_ms: int
    ) -> int:
        """Renew a delegation token. Returns when it expires; raises as in token_changes."""
        outcome = renew_token(self.metadata, token_hmac, period_ms, requester, rules, now_ms)
        return self._journal.commit(outcome, now_ms)

    def expire_token(
        self, token_hmac: bytes, period_ms: int, requester: str, rules: TokenRules, now_ms: int
    ) -> int:
        """Let a delegation token expire, or remove it. As renew_token."""
        outcome = expire_token(self.metadata, token_hmac, period_ms, requester, rules, now_ms)
        return self._journal.commit(outcome, now_ms)

    def remove_expired_tokens(
        self, token_ids: Iterable[str], now_ms: int
    ) -> list[DelegationTokenRecord]:
        """Remove those of the delegation tokens that have expired, and return them."""
        return self._journal.commit(remove_expired_tokens(self.metadata, token_ids, now_ms), now_ms)

    def elect_leaders(
        self,
        election: ElectionType,
        wanted: Sequence[TopicPartition] | None,
        now_ms: int,
        step: Step = no_step,
    ) -> dict[TopicPartition, ApiError | None]:
        """Return by partition None if a leader was elected, else the error.

        If `wanted` is None, all partitions are elected, and those that need no election are left
        out. A few are decided at a time: Kafka does not write the elections of a request as one
        batch either.
        """
        every = all_partitions(self.metadata, step) if wanted is None else []
        partitions = every if wanted is None else wanted
        reply: dict[TopicPartition, ApiError | None] = {}
        for start in stepping(range(0, len(partitions), ELECTIONS_PER_DECISION), step):
            some = partitions[start : start + ELECTIONS_PER_DECISION]
            outcome = elect_leaders(self.metadata, self.node_id, election, some)
            elected = self._journal.commit(outcome, now_ms)
            reply |= elected if wanted is not None else without_needless(elected)
        free(step, every)
        return reply

    def lead_again(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Give partitions new leader epochs, as if their leaders had changed."""
        self._journal.commit(lead_again(self.metadata, self.node_id, partitions), now_ms)

    def assign_directory(self, name: str, index: int, directory_id: bytes, now_ms: int) -> None:
        """Record the directory of this node's replica. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        outcome = assign_directory(self.metadata, self.node_id, name, index, directory_id)
        self._journal.commit(outcome, now_ms)

    def assign_directories(self, directory_of: Mapping[TopicPartition, bytes], now_ms: int) -> None:
        """Record the directories of this node's replicas."""
        self._journal.commit(assign_directories(self.metadata, self.node_id, directory_of), now_ms)

    def update_features(
        self, updates: Mapping[str, FeatureUpdate], now_ms: int, *, validate_only: bool
    ) -> None:
        """Finalise feature levels, all or none. Raises INVALID_UPDATE_VERSION."""
        outcome = update_features(self.metadata.features, self.quorum.kraft_version, updates)
        if validate_only:
            return
        if ELR_VERSION in updates and updates[ELR_VERSION].level:
            safety = elr_safety_records(self.metadata.configs, self._default_min_insync_replicas)
            outcome = Outcome(reply=outcome.reply, records=(*safety, *outcome.records))
        if self._journal.commit(outcome, now_ms) > self.quorum.kraft_version:
            self._write_voters(now_ms)

    def _write_voters(self, now_ms: int) -> None:
        """Write the records that replace static voters by dynamic ones. Kafka: LeaderState."""
        records = [record._replace(timestamp_ms=now_ms) for record in sole_voter_records(self.me)]
        batch = build_batch(records, is_control=True)
        self.log.append(batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        self.quorum = replace(sole_quorum(self.me), voters_are_in_log=True)

    def alter_scram_credentials(
        self,
        deletions: Sequence[ScramDeletion],
        upsertions: Sequence[ScramUpsertion],
        now_ms: int,
        step: Step = no_step,
    ) -> dict[str, ApiError | None]:
        """Return by user None if the credential was changed, else the error."""
        outcome = alter_scram_credentials(self.metadata, deletions, upsertions, step)
        return self._journal.commit(outcome, now_ms, step=step)

    def unregister_broker(self, broker_id: int) -> None:
        """Refuse to unregister a broker: this one, which is in use, is the only one.

        Raises BROKER_ID_NOT_REGISTERED, INVALID_REQUEST.
        """
        if broker_id not in self.metadata.brokers:
            text = f"Broker ID {broker_id} is not currently registered"
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        text = f"Broker {broker_id} is the one that serves this cluster: it stays registered."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)

    def unregister_controller(self, controller_id: int, now_ms: int) -> None:
        """Remove the registration of a controller on another node, as Apache Kafka has left it.

        Raises INVALID_REQUEST, UNSUPPORTED_VERSION, CONTROLLER_ID_NOT_REGISTERED.
        """
        if controller_id == self.node_id:
            text = f"Controller {controller_id} is the one that serves this cluster."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if self.metadata.features.metadata_version < FIRST_VERSION_WITH_CONTROLLER_REMOVAL:
            text = (
                "Controllers can be unregistered from metadata.version "
                f"{FIRST_VERSION_WITH_CONTROLLER_REMOVAL} on."
            )
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
        if controller_id not in self.metadata.kept_records.controllers:
            text = f"Controller {controller_id} is not registered."
            raise ApiError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, text)
        removal = JournalRecord(UnregisterControllerRecord(controller_id=controller_id))
        self._journal.commit(Outcome(reply=None, records=(removal,)), now_ms)

    def _next_producer_ids(self, now_ms: int) -> range:
        return self._journal.commit(take_block(self.metadata, self.node_id), now_ms)
