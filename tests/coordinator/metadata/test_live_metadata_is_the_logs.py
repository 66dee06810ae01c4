"""Whatever is asked of the controller, its metadata is what the metadata log says.

The first invariant of ARCHITECTURE.md: requests are random, appends fail, and after each step the
log is read into other metadata, and everything compared. A broker of any metadata.version that is
served, whose records have fewer fields than those of the newest.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
)
from odradek.coordinator.metadata.config_settings import config_rules
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.elections import ElectionType
from odradek.coordinator.metadata.feature_updates import FeatureUpdate, UpgradeType
from odradek.coordinator.metadata.features import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
)
from odradek.coordinator.metadata.kraft_log import KraftLog
from odradek.coordinator.metadata.quorum import Quorum
from odradek.coordinator.metadata.scram_changes import ScramDeletion, ScramUpsertion
from odradek.coordinator.metadata.token_changes import NewToken, TokenRules
from odradek.coordinator.metadata.token_hmacs import TokenHmacs
from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic, TopicRules
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from tests.support.lengths import by_length
from tests.support.metadata import DIRECTORY, NODE, Metadata
from tests.support.metadata_logs import ACL, ME

OTHER_DIRECTORY = bytes(15) + b"\xd2"
DIRECTORIES = (DIRECTORY, OTHER_DIRECTORY)
NAMES = ("a", "a.b", "a_b", "b")
RESOURCES = (
    ConfigResource(ConfigResourceType.TOPIC, "a"),
    ConfigResource(ConfigResourceType.BROKER, str(NODE)),
    ConfigResource(ConfigResourceType.BROKER, ""),
    ConfigResource(ConfigResourceType.GROUP, "g"),
    ConfigResource(ConfigResourceType.CLIENT_METRICS, "m"),
)
CONFIGS = (
    ("retention.ms", "1000"),
    ("min.insync.replicas", "2"),
    ("cleanup.policy", "compact"),
    ("log.retention.ms", "5"),
    ("consumer.session.timeout.ms", "50000"),
    ("interval.ms", "1000"),
    ("retention.ms", "x" * 40_000),
)
FEATURES = (METADATA_VERSION, GROUP_VERSION, ELR_VERSION, KRAFT_VERSION, "share.version")
RULES = config_rules(BrokerConfig())
names = st.sampled_from(NAMES)
partitions = st.tuples(names, st.integers(0, 2))
directories = st.sampled_from(DIRECTORIES)


class ControllerConversation(RuleBasedStateMachine):
    @initialize(level=st.sampled_from([7, 8, 13, 17, 23, 30, 33]), has_elr=st.booleans())
    def start(self, level: int, has_elr: bool) -> None:
        self.metadata = Metadata(directories=DIRECTORIES)
        self.log = self.metadata.log
        levels = {METADATA_VERSION: level, ELR_VERSION: int(has_elr and level >= 23)}
        for name, number in levels.items():
            self.put(JournalRecord(FeatureLevelRecord(name=name, feature_level=number)))
        self.lead()
        self.register(cordoned=())
        self.create_topics(["a", "b"], 2)

    def lead(self) -> None:
        """What a start of the broker makes of the log."""
        kraft = KraftLog(
            journal=self.metadata.journal,
            metadata=self.metadata.state,
            quorum=Quorum(),
            me=ME,
            leader_epoch=1,
            default_min_insync_replicas=1,
        )
        rules = TopicRules(
            node_id=NODE,
            directories=DIRECTORIES,
            default_partitions=2,
            default_replication_factor=1,
            check_configs=lambda overrides: None,
        )
        self.controller = Controller(kraft, lambda: rules)

    def put(self, *records: JournalRecord) -> None:
        self.attempt(lambda: self.metadata.commit(Outcome(reply=None, records=records)))

    # -- requests ----------------------------------------------------------------------------------

    @rule(wishes=st.lists(names, min_size=1, max_size=3), count=st.integers(-1, 3))
    def create_topics(self, wishes: list[str], count: int) -> None:
        topics = [
            NewTopic(name=name, partition_count=count, configs={"retention.ms": "7"})
            for name in wishes
        ]
        self.attempt(lambda: self.controller.create_topics(topics, 0))

    @rule(name=names, count=st.integers(1, 4))
    def create_partitions(self, name: str, count: int) -> None:
        wish = MorePartitions(name=name, count=count)
        self.attempt(lambda: self.controller.create_partitions([wish], 0))

    @rule(wishes=st.lists(names, min_size=1, max_size=2))
    def delete_topics(self, wishes: list[str]) -> None:
        self.attempt(lambda: self.controller.delete_topics([TopicRef(name) for name in wishes], 0))

    @rule(
        resource=st.sampled_from(RESOURCES),
        config=st.sampled_from(CONFIGS),
        operation=st.sampled_from(AlterOperation),
        replaces=st.booleans(),
        validate_only=st.booleans(),
    )
    def alter_configs(
        self,
        resource: ConfigResource,
        config: tuple[str, str],
        operation: AlterOperation,
        replaces: bool,
        validate_only: bool,
    ) -> None:
        name, value = config
        wish = Alteration(
            resource=resource, changes=[ConfigChange(name, operation, value)], replaces=replaces
        )
        self.attempt(
            lambda: self.controller.alter_configs([wish], RULES, 0, validate_only=validate_only)
        )

    @rule(election=st.sampled_from(ElectionType), wanted=st.none() | st.lists(partitions))
    def elect_leaders(self, election: ElectionType, wanted: list[tuple[str, int]] | None) -> None:
        self.attempt(lambda: self.controller.elect_leaders(election, wanted, 0))

    @rule(
        name=st.sampled_from(FEATURES),
        level=st.sampled_from([0, 1, 8, 14, 17, 30, 33]),
        upgrade_type=st.sampled_from(UpgradeType),
    )
    def update_features(self, name: str, level: int, upgrade_type: UpgradeType) -> None:
        updates = {name: FeatureUpdate(level, upgrade_type)}
        self.attempt(lambda: self.controller.update_features(updates, 0, validate_only=False))

    @rule(user=names, deletes=st.booleans(), mechanism=st.integers(0, 2))
    def alter_scram_credentials(self, user: str, deletes: bool, mechanism: int) -> None:
        deletions = [ScramDeletion(user, mechanism)] if deletes else []
        upsertions = [] if deletes else [ScramUpsertion(user, mechanism, 4096, b"salt", b"salted")]
        self.attempt(lambda: self.controller.alter_scram_credentials(deletions, upsertions, 0))

    @rule(many=st.booleans())
    def take_producer_ids(self, many: bool) -> None:
        for _ in range(1001 if many else 1):
            self.attempt(lambda: self.controller.producer_ids.take(0))

    @rule(token_id=names, renewers=st.lists(st.sampled_from(["User:a", "User:b"])))
    def create_token(self, token_id: str, renewers: list[str]) -> None:
        wanted = NewToken(
            token_id=token_id,
            owner="User:a",
            requester="User:b",
            renewers=renewers,
            max_lifetime_ms=50,
        )
        self.attempt(lambda: self.controller.create_token(wanted, self.tokens(), 0))

    @rule(token_id=names, period_ms=st.integers(-1, 60), now_ms=st.integers(0, 60))
    def change_token(self, token_id: str, period_ms: int, now_ms: int) -> None:
        rules = self.tokens()
        assert rules.hmacs is not None
        asked = (rules.hmacs.of(token_id), period_ms, "User:a", rules, now_ms)
        self.attempt(lambda: self.controller.renew_token(*asked))
        self.attempt(lambda: self.controller.expire_token(*asked))

    @rule(now_ms=st.integers(0, 60))
    def remove_expired_tokens(self, now_ms: int) -> None:
        ids = list(self.metadata.state.delegation_tokens.by_id)
        self.attempt(lambda: self.controller.remove_expired_tokens(ids, now_ms))

    def tokens(self) -> TokenRules:
        hmacs = TokenHmacs("secret", self.metadata.state.delegation_tokens)
        return TokenRules(hmacs=hmacs, max_lifetime_ms=50, expiry_time_ms=20)

    # -- the broker's life -------------------------------------------------------------------------

    @rule(cordoned=st.sampled_from([(), DIRECTORIES[:1]]))
    def register(self, cordoned: tuple[bytes, ...]) -> None:
        self.attempt(
            lambda: self.controller.register_broker(
                incarnation_id=bytes(15) + b"\x11",
                endpoints=[Endpoint("PLAINTEXT", "localhost", 9092)],
                directories=DIRECTORIES,
                cordoned=cordoned,
                rack="r",
                now_ms=0,
            )
        )

    @rule()
    def fence(self) -> None:
        self.attempt(lambda: self.controller.fence_broker(0))

    @rule(clean=st.booleans(), place=directories)
    def take_over(self, clean: bool, place: bytes) -> None:
        self.attempt(
            lambda: self.controller.take_over(
                clean_shutdown=clean,
                directory_of={("a", 0): place},
                now_ms=0,
            )
        )

    @rule(failed=directories, partition=partitions)
    def directories_offline(self, failed: bytes, partition: tuple[str, int]) -> None:
        self.attempt(lambda: self.controller.directories_offline([failed], {partition: failed}, 0))

    @rule(cordoned=st.lists(directories, unique=True))
    def cordon(self, cordoned: list[bytes]) -> None:
        self.attempt(lambda: self.controller.cordon_directories(cordoned, 0))

    @rule(partition=partitions, place=directories)
    def assign_directory(self, partition: tuple[str, int], place: bytes) -> None:
        self.attempt(lambda: self.controller.assign_directory(*partition, place, 0))

    @rule(partition=partitions, place=directories)
    def assign_directories(self, partition: tuple[str, int], place: bytes) -> None:
        self.attempt(lambda: self.controller.assign_directories({partition: place}, 0))

    @rule(ends=st.sampled_from([EndTransactionRecord(), AbortTransactionRecord(reason="no")]))
    def a_metadata_transaction(self, ends: EndTransactionRecord | AbortTransactionRecord) -> None:
        begin = BeginTransactionRecord(name="all at once")
        self.put(*map(JournalRecord, (begin, ACL, ends)))

    @rule()
    def the_next_append_fails(self) -> None:
        self.log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk says no")

    @rule()
    def restart(self) -> None:
        self.log.fail_next = None
        self.metadata = self.metadata.restarted()
        self.lead()

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def the_log_agrees(self) -> None:
        if hasattr(self, "metadata"):
            assert snapshot(self.metadata.state) == snapshot(self.metadata.restarted().state)

    @staticmethod
    def attempt(call: Callable[[], object]) -> None:
        with suppress(ApiError):
            call()


def snapshot(metadata: ClusterMetadata) -> dict[str, Any]:
    """Everything that the records of the metadata log say."""
    return {
        "topics": dict(metadata.topics),
        "topic ids": {topic_id: topic.name for topic_id, topic in metadata.topics.by_id.items()},
        "configs": list(metadata.configs.records()),
        "features": metadata.features.in_log,
        "brokers": metadata.brokers,
        "producer ids": metadata.next_producer_id,
        "quotas": metadata.quotas.records(),
        "ACLs": metadata.acls.records(),
        "SCRAM credentials": metadata.scram_credentials.records(),
        "delegation tokens": metadata.delegation_tokens.records(),
        "kept": vars(metadata.kept_records),
        "last": (metadata.last_offset, metadata.last_timestamp_ms),
        "transaction": metadata.in_transaction,
    }


ControllerConversation.TestCase.settings = settings(
    max_examples=by_length(6, 300), stateful_step_count=by_length(40, 80), deadline=None
)
TestController = ControllerConversation.TestCase
