"""Settings of topics, brokers, groups, client metrics and loggers, changed and described.

The broker is shared with other conversations: what is set on it here is taken back.
"""

from collections.abc import Iterable
from typing import Any

from odradek.coordinator.metadata.config_changes import AlterOperation
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import (
    AlterConfigsConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsTopic,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.conformance.conversation import Conversation, patiently

TOPIC, BROKER, LOGGER = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
)
METRICS, GROUP = ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP
SET, DELETE, APPEND, SUBTRACT = AlterOperation
Resource = tuple[int, str]
Wish = tuple[str, int, str | None]
INCREMENTAL, REPLACING, DESCRIBING = 1, 2, 4  # the versions that most requests here have


def _wishes(resource: Resource, wishes: Iterable[Wish]) -> IncrementalAlterConfigsResource:
    return IncrementalAlterConfigsResource(
        resource_type=resource[0],
        resource_name=resource[1],
        configs=[
            IncrementalAlterConfigsConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in wishes
        ],
    )


def _alter(
    talk: Conversation,
    resource: Resource,
    *wishes: Wish,
    validate_only: bool = False,
    version: int = INCREMENTAL,
) -> Any:
    request = IncrementalAlterConfigsRequest(
        resources=[_wishes(resource, wishes)], validate_only=validate_only
    )
    return talk.ask(request, version)


def _check(talk: Conversation, resource: Resource, *wishes: Wish) -> None:
    _alter(talk, resource, *wishes, validate_only=True)


def _whole(resource: Resource, texts: dict[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource[0],
        resource_name=resource[1],
        configs=[AlterConfigsConfig(name=name, value=value) for name, value in texts.items()],
    )


def _replace(
    talk: Conversation,
    *resources: AlterConfigsResource,
    validate_only: bool = False,
    version: int = REPLACING,
) -> None:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    talk.ask(request, version)


def _describe(
    talk: Conversation, resource: Resource, keys: list[str] | None = None, **expected: str | None
) -> None:
    """Ask for settings with all there is to say; first wait until Kafka has applied `expected`."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource[0], resource_name=resource[1], configuration_keys=keys
            )
        ],
        include_synonyms=True,
        include_documentation=True,
    )

    def applied() -> bool | None:
        [result] = talk.silently(request, DESCRIBING).results
        found = {one.name: one.value for one in result.configs}
        wanted = {name.replace("_", "."): value for name, value in expected.items()}
        return all(found.get(name) == value for name, value in wanted.items()) or None

    patiently(applied)
    talk.ask(request, DESCRIBING)


# -- topics ----------------------------------------------------------------------------------------

# A value that is not the default, for every key that a topic of one node may have.
EVERY_CONFIG = {
    "cleanup.policy": "compact,delete",
    "compression.gzip.level": "5",
    "compression.lz4.level": "5",
    "compression.type": "zstd",
    "compression.zstd.level": "-5",
    "delete.retention.ms": "5",
    "file.delete.delay.ms": "5",
    "flush.messages": "5",
    "flush.ms": "5",
    "follower.replication.throttled.replicas": "0:0",
    "index.interval.bytes": "5",
    "internal.segment.bytes": "5000",
    "leader.replication.throttled.replicas": "*",
    "local.retention.bytes": "5",
    "local.retention.ms": "5",
    "max.compaction.lag.ms": "5",
    "max.message.bytes": "5",
    "message.timestamp.after.max.ms": "5",
    "message.timestamp.before.max.ms": "5",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.05",
    "min.compaction.lag.ms": "5",
    "min.insync.replicas": "1",
    "preallocate": "true",
    "remote.log.copy.disable": "true",
    "remote.log.delete.on.disable": "true",
    "remote.storage.enable": "false",
    "retention.bytes": "5",
    "retention.ms": "5",
    "segment.bytes": "1048577",
    "segment.index.bytes": "1024",
    "segment.jitter.ms": "5",
    "segment.ms": "5",
    "unclean.leader.election.enable": "true",
}


def a_topic_may_have_every_config(talk: Conversation) -> None:
    texts = {name.replace(".", "_"): text for name, text in EVERY_CONFIG.items()}
    for version in (5, 7):
        wish = CreateTopicsTopic(
            name="every-config",
            num_partitions=1,
            replication_factor=1,
            assignments=[],
            configs=[
                CreateTopicsConfig(name=name, value=text) for name, text in EVERY_CONFIG.items()
            ],
        )
        talk.ask(CreateTopicsRequest(topics=[wish], validate_only=True), version)
    talk.create_topic("every-config", **texts)
    _describe(talk, (TOPIC, "every-config"))
    talk.create_topic("every-config-later")
    later = (TOPIC, "every-config-later")
    _alter(talk, later, *((name, SET, text) for name, text in EVERY_CONFIG.items()))
    _describe(talk, later, None, retention_ms="5")


def overrides_of_a_topic_are_set_and_deleted(talk: Conversation) -> None:
    keys = ["retention.ms", "cleanup.policy", "segment.bytes", "flush.messages", "preallocate"]
    for version in talk.versions_of(IncrementalAlterConfigsRequest):
        name = f"altered-{version}"
        talk.create_topic(name, retention_ms="1000")
        topic = (TOPIC, name)
        wishes: list[Wish] = [
            ("retention.ms", SET, "2000"),
            ("cleanup.policy", SET, "compact"),
            ("segment.bytes", SET, " 2097152 "),
            ("preallocate", SET, "FALSE"),
        ]
        _alter(talk, topic, *wishes, version=version)
        _describe(talk, topic, keys, retention_ms="2000")
        _alter(talk, topic, *wishes, version=version)
        wishes = [("retention.ms", DELETE, None), ("flush.messages", DELETE, "1")]
        _alter(talk, topic, *wishes, version=version)
        _describe(talk, topic, keys, retention_ms="-1")
        _alter(talk, topic, ("retention.ms", SET, "-1"), ("segment.bytes", DELETE, ""))
        _describe(talk, topic, None, segment_bytes="1073741824")
        _alter(talk, topic, version=version)


def lists_of_a_topic_are_appended_to_and_subtracted_from(talk: Conversation) -> None:
    talk.create_topic("appended")
    topic = (TOPIC, "appended")
    policy, throttled = "cleanup.policy", "leader.replication.throttled.replicas"
    steps: list[tuple[str, int, str, str]] = [
        (policy, APPEND, "compact", "delete,compact"),
        (policy, APPEND, "compact,delete", "delete,compact"),
        (policy, SUBTRACT, "delete", "compact"),
        (policy, SUBTRACT, "delete", "compact"),
        (policy, SUBTRACT, "compact", ""),
        (policy, APPEND, "delete", "delete"),
        (throttled, APPEND, "0:0,1:0", "0:0,1:0"),
        (throttled, SUBTRACT, "0:0", "1:0"),
    ]
    for name, operation, value, then in steps:
        _alter(talk, topic, (name, operation, value))
        _describe(talk, topic, [name], **{name.replace(".", "_"): then})
    for name, operation, value in (
        (policy, APPEND, "archive"),
        (policy, APPEND, ""),
        (policy, APPEND, ","),
        (policy, APPEND, " compact"),
        (policy, SUBTRACT, ""),
        (policy, SUBTRACT, "delete"),
        ("retention.ms", APPEND, "1"),
        ("compression.type", SUBTRACT, "producer"),
        ("no.such.key", APPEND, "1"),
    ):
        _check(talk, topic, (name, operation, value))


def overrides_of_a_topic_are_refused(talk: Conversation) -> None:
    talk.create_topic("refused-configs", min_compaction_lag_ms="100")
    topic = (TOPIC, "refused-configs")
    for wish in (
        ("no.such.key", SET, "1"),
        ("no.such.key", DELETE, None),
        ("log.retention.ms", SET, "1"),
        ("retention.ms", SET, "soon"),
        ("retention.ms", SET, ""),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, None),
        ("retention.ms", SET, "-2"),
        ("segment.bytes", SET, "1"),
        ("max.compaction.lag.ms", SET, "99"),
        ("max.compaction.lag.ms", SET, "100"),
        ("min.insync.replicas", SET, "2"),
        ("min.insync.replicas", SET, "0"),
        ("remote.storage.enable", SET, "true"),
        ("compression.type", SET, "brotli"),
        ("internal.segment.bytes", SET, "5000"),
        ("retention.ms", 4, "1"),
    ):
        _check(talk, topic, wish)
    _check(talk, topic, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    _check(talk, topic, ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    _alter(talk, topic, ("retention.ms", SET, "5"), ("segment.ms", SET, "0"))
    _describe(talk, topic, ["retention.ms", "segment.ms"])
    for name in ("refused-missing", "", "not legal", ".", "a" * 250):
        _check(talk, (TOPIC, name), ("retention.ms", SET, "1"))
        _check(talk, (TOPIC, name), ("no.such.key", SET, "1"))
        _check(talk, (TOPIC, name))


def all_overrides_of_a_topic_are_replaced(talk: Conversation) -> None:
    for version in talk.versions_of(AlterConfigsRequest):
        name = f"replaced-{version}"
        talk.create_topic(name, retention_ms="1000", cleanup_policy="compact")
        topic = (TOPIC, name)
        _replace(talk, _whole(topic, {"retention.ms": "2000"}), validate_only=True, version=version)
        _describe(talk, topic, ["retention.ms", "cleanup.policy"], retention_ms="1000")
        texts: dict[str, str | None] = {"retention.ms": "2000", "segment.bytes": "1048576"}
        _replace(talk, _whole(topic, texts), version=version)
        _describe(talk, topic, None, retention_ms="2000")
        _replace(talk, _whole(topic, texts), version=version)
        _replace(talk, _whole(topic, {}), version=version)
        _describe(talk, topic, None, retention_ms="-1")
    topic = (TOPIC, "replaced-2")
    for texts in ({"no.such.key": "1"}, {"retention.ms": None}, {"retention.ms": "soon"}):
        _replace(talk, _whole(topic, texts))
    _replace(talk, _whole((TOPIC, "replaced-never"), {"retention.ms": "1"}))
    _replace(talk, _whole((LOGGER, "0"), {"root": "INFO"}), _whole((3, "x"), {}))
    _replace(talk)


def each_resource_is_changed_by_itself(talk: Conversation) -> None:
    talk.create_topic("several-1")
    talk.create_topic("several-2")
    one, two, never = (TOPIC, "several-1"), (TOPIC, "several-2"), (TOPIC, "several-never")
    wish, bad = ("retention.ms", SET, "9000"), ("retention.ms", SET, "soon")
    resources = [_wishes(one, [wish]), _wishes(two, [bad]), _wishes(never, [wish])]
    resources += [_wishes((kind, "x"), [wish]) for kind in (0, 1, 3, 64, -1)]
    talk.ask(IncrementalAlterConfigsRequest(resources=resources, validate_only=False), INCREMENTAL)
    _describe(talk, one, ["retention.ms"], retention_ms="9000")
    _describe(talk, two, ["retention.ms"])
    twice = [_wishes(one, [wish]), _wishes(two, [wish]), _wishes(one, [wish])]
    twice += [_wishes((3, "x"), []), _wishes((3, "x"), [])]
    talk.ask(IncrementalAlterConfigsRequest(resources=twice, validate_only=False), INCREMENTAL)
    _describe(talk, two, ["retention.ms"], retention_ms="9000")
    talk.ask(IncrementalAlterConfigsRequest(resources=[], validate_only=False), INCREMENTAL)
    many = [_wishes(one, [(f"no.such.{number}", SET, "1") for number in range(11_000)])]
    talk.ask(IncrementalAlterConfigsRequest(resources=many, validate_only=True), INCREMENTAL)


# -- brokers ---------------------------------------------------------------------------------------


def settings_of_a_broker_are_set_and_deleted(talk: Conversation) -> None:
    talk.create_topic("under-a-broker")
    topic = (TOPIC, "under-a-broker")
    keys = ["log.retention.ms", "log.cleaner.threads", "message.max.bytes", "compression.type"]
    ours, alls = (BROKER, "0"), (BROKER, "")
    try:
        _alter(talk, alls, ("log.retention.ms", SET, "604800001"), ("message.max.bytes", SET, "7"))
        _describe(talk, alls, keys, log_retention_ms="604800001")
        _describe(talk, ours, keys, message_max_bytes="7")
        _describe(talk, topic, None, retention_ms="604800001")
        _alter(
            talk, ours, ("log.retention.ms", SET, "604800002"), ("log.cleaner.threads", SET, "2")
        )
        _describe(talk, ours, keys, log_retention_ms="604800002")
        _describe(talk, topic, None, retention_ms="604800002")
        talk.create_topic("born-under-a-broker")
        _describe(talk, (TOPIC, "born-under-a-broker"), ["retention.ms", "max.message.bytes"])
        _alter(talk, topic, ("retention.ms", SET, "3"))
        _describe(talk, topic, ["retention.ms"], retention_ms="3")
        _alter(
            talk, ours, ("log.retention.ms", DELETE, None), ("log.cleaner.threads", DELETE, None)
        )
        _describe(talk, ours, keys, log_retention_ms="604800001")
        _replace(talk, _whole(alls, {"compression.type": "lz4", "min.insync.replicas": "1"}))
        _describe(talk, ours, keys, compression_type="lz4")
        _describe(talk, alls, keys, compression_type="lz4")
        _alter(talk, alls, ("log.cleanup.policy", APPEND, "compact"))
        _describe(talk, topic, ["cleanup.policy"], cleanup_policy="delete,compact")
    finally:
        names = ["log.retention.ms", "message.max.bytes", "compression.type", "log.cleanup.policy"]
        _alter(talk, alls, *((name, DELETE, None) for name in names))
        _alter(talk, ours, *((name, DELETE, None) for name in (*names, "log.cleaner.threads")))
    _describe(talk, ours, [*keys, "log.cleanup.policy"], compression_type="producer")


def keys_that_odradek_does_not_use_are_kept(talk: Conversation) -> None:
    ours, alls = (BROKER, "0"), (BROKER, "")
    rate = "leader.replication.throttled.rate"
    own = "listener.name.plaintext.max.connections"
    names = ["num.io.threads", "background.threads", rate, own, "made.up"]
    try:
        wishes: list[Wish] = [
            ("num.io.threads", SET, "12"),
            (rate, SET, "1000"),
            (own, SET, "900"),
            ("made.up", SET, "secret"),
        ]
        _alter(talk, ours, *wishes)
        _describe(talk, ours, names, num_io_threads="12")
        _alter(talk, alls, ("background.threads", SET, "9"), ("made.up", SET, "other"))
        _describe(talk, alls, names, background_threads="9")
        _describe(talk, ours, names, background_threads="9")
    finally:
        for resource in (ours, alls):
            _alter(talk, resource, *((name, DELETE, None) for name in names))


def min_insync_replicas_belongs_to_the_cluster(talk: Conversation) -> None:
    """As long as eligible leader replicas are on."""
    name = "min.insync.replicas"
    talk.create_topic("insync")
    talk.create_topic("insync-of-its-own", min_insync_replicas="2")
    topic, own = (TOPIC, "insync"), (TOPIC, "insync-of-its-own")
    ours, alls = (BROKER, "0"), (BROKER, "")

    def describe(of_all: str, of_topic: str) -> None:
        _describe(talk, topic, [name], min_insync_replicas=of_topic)
        _describe(talk, own, [name], min_insync_replicas="2")
        _describe(talk, ours, [name], min_insync_replicas=of_all)
        _describe(talk, alls, [name], min_insync_replicas=of_all)

    describe("1", "1")
    for wish in ((name, SET, "1"), (name, DELETE, None), (name, SET, "0"), (name, APPEND, "1")):
        _alter(talk, ours, wish)
        _check(talk, ours, ("log.retention.ms", SET, "5"), wish)
    refused: list[Wish] = [(name, DELETE, None), (name, SET, "0"), (name, SET, "many")]
    for wish in refused:
        _alter(talk, alls, wish)
    _replace(talk, _whole(alls, {}))
    _replace(talk, _whole(alls, {"compression.type": "lz4"}))
    _replace(talk, _whole(ours, {name: "1"}))
    _replace(talk, _whole(ours, {}))
    describe("1", "1")
    try:
        _alter(talk, alls, (name, SET, "2"))
        describe("2", "2")
        _alter(talk, topic, (name, SET, "3"))
        describe("2", "3")
        _alter(talk, topic, (name, DELETE, None))
        describe("2", "2")
    finally:
        _alter(talk, alls, (name, SET, "1"))
    describe("1", "1")


def settings_of_a_broker_are_refused(talk: Conversation) -> None:
    ours, alls = (BROKER, "0"), (BROKER, "")
    for name, value in (
        ("log.dirs", "/nowhere"),
        ("num.partitions", "3"),
        ("node.id", "0"),
        ("log.retention.hours", "1"),
        ("log.retention.ms", "soon"),
        ("log.retention.ms", "0"),
        ("log.retention.ms", None),
        ("log.segment.bytes", "1"),
        ("max.connections", "0"),
        ("max.connections", "-1"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "no.such.host.invalid"),
        ("log.cleaner.threads", "3"),
        ("log.cleaner.threads", "0"),
        ("num.io.threads", "3"),
        ("num.io.threads", "17"),
        ("num.io.threads", "16"),
        ("num.io.threads", "4"),
        ("num.network.threads", "7"),
        ("background.threads", "0"),
        ("ssl.keystore.location", "/nowhere"),
        ("listener.name.plaintext.ssl.keystore.password", "secret"),
        ("cordoned.log.dirs", "/nowhere"),
        ("log.local.retention.ms", "-1"),
        ("log.local.retention.bytes", "5"),
        ("log.cleaner.min.compaction.lag.ms", "9223372036854775807"),
        ("log.message.timestamp.type", "LogAppendTime"),
        ("log.message.timestamp.type", "Whenever"),
        ("unclean.leader.election.enable", "true"),
        ("retention.ms", "1"),
        ("zookeeper.connect", "x"),
        ("producer.id.expiration.ms", "0"),
        ("leader.replication.throttled.rate", "-1"),
        ("leader.replication.throttled.rate", "x"),
    ):
        for resource in (ours, alls):
            _check(talk, resource, (name, SET, value))
    for wish in (
        ("log.dirs", DELETE, None),
        ("no.such.key", DELETE, None),
        ("no.such.key", APPEND, "1"),
        ("log.retention.ms", APPEND, "1"),
        ("log.cleanup.policy", APPEND, "archive"),
        ("log.cleanup.policy", SUBTRACT, "delete"),
        ("log.retention.ms", 4, "1"),
    ):
        _check(talk, ours, wish)
    for name in ("7", "x", "-1", "00", "+0", " 0"):
        _check(talk, (BROKER, name), ("log.retention.ms", SET, "1"))
    _replace(talk, _whole(ours, {"log.dirs": "/nowhere"}), validate_only=True)
    _replace(talk, _whole(ours, {"log.retention.ms": "1"}), validate_only=True)


def levels_of_loggers_are_changed(talk: Conversation) -> None:
    node = (LOGGER, "0")
    for wish in (
        ("root", SET, "INFO"),
        ("root", SET, "LOUD"),
        ("root", SET, "info"),
        ("root", SET, None),
        ("root", DELETE, None),
        ("root", APPEND, "INFO"),
        ("root", SUBTRACT, "INFO"),
        ("root", 9, "INFO"),
        ("no.such.logger", SET, "INFO"),
        ("no.such.logger", DELETE, None),
    ):
        _check(talk, node, wish)
    for name in ("", "7", "x"):
        _check(talk, (LOGGER, name), ("root", SET, "INFO"))
    _alter(talk, node, ("root", SET, "INFO"))


# -- groups and client metrics ---------------------------------------------------------------------


def settings_of_a_group_are_kept(talk: Conversation) -> None:
    group = (GROUP, "configured-group")
    _describe(talk, group)
    wishes: list[Wish] = [
        ("consumer.session.timeout.ms", SET, "50000"),
        ("consumer.heartbeat.interval.ms", SET, "6000"),
        ("share.isolation.level", SET, "read_committed"),
        ("share.auto.offset.reset", SET, "by_duration:PT1H"),
        ("streams.num.standby.replicas", SET, "1"),
    ]
    _alter(talk, group, *wishes)
    _describe(talk, group, None, consumer_session_timeout_ms="50000")
    _alter(talk, group, *((name, DELETE, None) for name, _, _ in wishes[1:]))
    _describe(talk, group, None, share_isolation_level="read_uncommitted")
    _replace(talk, _whole(group, {"share.assignment.interval.ms": "7"}))
    _describe(talk, group, None, share_assignment_interval_ms="7")
    for name, value in (
        ("no.such.key", "1"),
        ("group.consumer.session.timeout.ms", "50000"),
        ("consumer.session.timeout.ms", "1"),
        ("consumer.session.timeout.ms", "44999"),
        ("consumer.session.timeout.ms", "60001"),
        ("consumer.session.timeout.ms", "soon"),
        ("consumer.session.timeout.ms", None),
        ("consumer.heartbeat.interval.ms", "4999"),
        ("consumer.heartbeat.interval.ms", "15001"),
        ("consumer.assignment.interval.ms", "-1"),
        ("consumer.assignment.interval.ms", "15001"),
        ("share.record.lock.duration.ms", "60001"),
        ("share.record.lock.duration.ms", "14999"),
        ("share.delivery.count.limit", "11"),
        ("share.delivery.count.limit", "1"),
        ("share.partition.max.record.locks", "4001"),
        ("share.auto.offset.reset", "never"),
        ("share.auto.offset.reset", "by_duration:-PT1H"),
        ("share.auto.offset.reset", "by_duration:P1DT2H3.5S"),
        ("share.auto.offset.reset", "by_duration:"),
        ("share.auto.offset.reset", "earliest"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.renew.acknowledge.enable", "perhaps"),
        ("streams.num.standby.replicas", "3"),
        ("streams.initial.rebalance.delay.ms", "-1"),
    ):
        _check(talk, group, (name, SET, value))
    _check(talk, group, ("share.auto.offset.reset", APPEND, "x"))
    _check(talk, (GROUP, ""), ("consumer.session.timeout.ms", SET, "50000"))
    _alter(talk, group, ("share.assignment.interval.ms", DELETE, None))


def the_interval_of_assignments_is_bounded_by_the_file(talk: Conversation) -> None:
    of_all, group = (BROKER, ""), (GROUP, "interval-group")
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        for value in ("-1", "0", "1000", "15000", "15001", "soon"):
            _check(talk, of_all, (name, SET, value))
        for bound in ("min", "max"):
            _check(talk, of_all, (f"group.{kind}.{bound}.assignment.interval.ms", SET, "7"))
    _check(talk, of_all, ("group.consumer.session.timeout.ms", SET, "50000"))
    _check(talk, of_all, ("group.consumer.migration.policy", SET, "upgrade"))
    name = "group.consumer.assignment.interval.ms"
    _alter(talk, of_all, (name, SET, "7"))
    _describe(talk, of_all, [name], group_consumer_assignment_interval_ms="7")
    _describe(talk, group, ["consumer.assignment.interval.ms"])
    _alter(talk, group, ("consumer.assignment.interval.ms", SET, "8"))
    _describe(talk, group, ["consumer.assignment.interval.ms"], consumer_assignment_interval_ms="8")
    _alter(talk, group, ("consumer.assignment.interval.ms", DELETE, None))
    _alter(talk, of_all, (name, DELETE, None))
    _describe(talk, of_all, [name], group_consumer_assignment_interval_ms=None)
    _describe(talk, group, ["consumer.assignment.interval.ms"])


def client_metrics_subscriptions_are_kept(talk: Conversation) -> None:
    name = (METRICS, "subscribed")
    _describe(talk, name)
    wishes: list[Wish] = [
        ("metrics", SET, "org.apache.kafka.producer., org.apache.kafka.consumer."),
        ("interval.ms", SET, "10000"),
        ("match", SET, "client_id=x.*,client_software_name = Java"),
    ]
    _alter(talk, name, *wishes)
    _describe(talk, name, None, interval_ms="10000")
    _alter(talk, name, ("match", DELETE, None), ("metrics", SET, "*"))
    _describe(talk, name, None, metrics="*")
    for key, operation, value in (
        ("metrics", APPEND, "more"),
        ("metrics", SET, ""),
        ("metrics", SET, "a,,b"),
        ("interval.ms", SET, "99"),
        ("interval.ms", SET, "100"),
        ("interval.ms", SET, "3600001"),
        ("interval.ms", SET, "often"),
        ("match", SET, "client_id"),
        ("match", SET, "client_id="),
        ("match", SET, "client_id=a=b"),
        ("match", SET, "color=red"),
        ("match", SET, "client_id=["),
        ("no.such.key", SET, "1"),
    ):
        _check(talk, name, (key, operation, value))
    _check(talk, (METRICS, ""), ("metrics", SET, "*"))
    _replace(talk, _whole(name, {}))


def resources_with_settings_are_listed(talk: Conversation) -> None:
    talk.create_topic("listed-configs")
    metrics, group = (METRICS, "listed-metrics"), (GROUP, "listed-group")
    _alter(talk, metrics, ("interval.ms", SET, "1000"))
    _alter(talk, group, ("share.assignment.interval.ms", SET, "7"))
    _describe(talk, metrics, None, interval_ms="1000")
    _describe(talk, group, None, share_assignment_interval_ms="7")
    for version in talk.versions_of(ListConfigResourcesRequest):
        talk.ask(ListConfigResourcesRequest(), version, _listed)
    for kinds in ([2], [4], [8], [16], [32], [2, 32], [4, 4], [3], [16, 64], [0]):
        talk.ask(ListConfigResourcesRequest(resource_types=kinds), 1, _listed)
    _alter(talk, metrics, ("interval.ms", DELETE, None))
    _alter(talk, group, ("share.assignment.interval.ms", DELETE, None))


def _listed(answer: Any) -> object:
    """The error, and what no other conversation has made."""
    assert answer.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    return answer.error_code, sorted(
        (one.resource_type, one.resource_name)
        for one in answer.config_resources
        if one.resource_name.startswith("listed-") or one.resource_type in (BROKER, LOGGER)
    )
