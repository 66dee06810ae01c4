"""Topics made, described, enlarged, deleted."""

from collections.abc import Mapping, Sequence

from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsAssignment,
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsTopic
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.primitives import ZERO_UUID
from tests.conformance.conversation import Conversation, unknown_id
from tests.conformance.requests import batch_of, produce

LATEST_CREATE = 7
LATEST_DELETE = 6


def _new(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    assignments: Mapping[int, Sequence[int]] | Sequence[tuple[int, Sequence[int]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreateTopicsTopic:
    pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
    return CreateTopicsTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreateTopicsAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in pairs
        ],
        configs=[
            CreateTopicsConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )


def _named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def topics_are_created_in_every_version(talk: Conversation) -> None:
    for version in talk.versions_of(CreateTopicsRequest):
        topics = [
            _new(f"create-{version}-one"),
            _new(f"create-{version}-six", 6, configs={"retention.ms": "1000"}),
        ]
        talk.ask(CreateTopicsRequest(topics=topics), version)
        talk.wait_for_topic(f"create-{version}-six")
        talk.ask(CreateTopicsRequest(topics=topics), version)  # they exist now


def topics_are_validated_only(talk: Conversation) -> None:
    for version in talk.versions_of(CreateTopicsRequest):
        request = CreateTopicsRequest(topics=[_new("only-validated", 3)], validate_only=True)
        talk.ask(request, version)
    talk.ask(MetadataRequest(topics=_named("only-validated"), allow_auto_topic_creation=False), 12)


def topics_are_refused_for_their_names(talk: Conversation) -> None:
    talk.create_topic("colliding.topic")
    names = ["", ".", "..", "a" * 249, "a" * 250, "sp ace", "ümlaut", "colliding_topic", "new\n"]
    names += ["__cluster_metadata", "colliding.topic", "dot.and_underscore"]
    for name in names:
        request = CreateTopicsRequest(topics=[_new(name)], validate_only=True)
        talk.ask(request, LATEST_CREATE)
    for version in talk.versions_of(CreateTopicsRequest):
        twice = [_new("twice"), _new("twice", 2), _new("twice", 3), _new("once")]
        talk.ask(CreateTopicsRequest(topics=twice, validate_only=True), version)
    both = [_new("both.in_one"), _new("both_in.one")]
    talk.ask(CreateTopicsRequest(topics=both, validate_only=True), LATEST_CREATE)
    talk.ask(CreateTopicsRequest(topics=[]), LATEST_CREATE)


def topics_are_refused_for_their_counts(talk: Conversation) -> None:
    wishes = [
        _new("counts", partitions=0),
        _new("counts", partitions=-2),
        _new("counts", partitions=-1),
        _new("counts", replication_factor=0),
        _new("counts", replication_factor=-2),
        _new("counts", replication_factor=-1),
        _new("counts", replication_factor=2),
        _new("counts", partitions=-1, replication_factor=-1),
        _new("counts", partitions=0, replication_factor=0),
        _new("counts", partitions=10_001),
        _new("counts", partitions=10_000),
        _new("counts", partitions=2147483647),
    ]
    for wish in wishes:
        request = CreateTopicsRequest(topics=[wish], validate_only=True)
        talk.ask(request, LATEST_CREATE)
        talk.ask(request, 2)
    many = [_new("many-1", 6_000), _new("many-2", 6_000)]
    talk.ask(CreateTopicsRequest(topics=many, validate_only=True), LATEST_CREATE)


def topics_are_refused_for_their_assignments(talk: Conversation) -> None:
    wishes = [
        _new("assigned", -1, -1, {0: [0]}),
        _new("assigned", -1, -1, {0: [0], 1: [0]}),
        _new("assigned", 1, -1, {0: [0]}),
        _new("assigned", -1, 1, {0: [0]}),
        _new("assigned", 1, 1, {0: [0]}),
        _new("assigned", -1, -1, {1: [0]}),
        _new("assigned", -1, -1, {0: [0], 2: [0]}),
        _new("assigned", -1, -1, {-1: [0]}),
        _new("assigned", -1, -1, {0: []}),
        _new("assigned", -1, -1, {0: [0, 0]}),
        _new("assigned", -1, -1, {0: [7]}),
        _new("assigned", -1, -1, {0: [0, 7]}),
        _new("assigned", -1, -1, {0: [-1]}),
        _new("assigned", -1, -1, [(0, [0]), (0, [0])]),
        _new("assigned", -1, -1, {0: [0], 1: [0, 7]}),
    ]
    for wish in wishes:
        request = CreateTopicsRequest(topics=[wish], validate_only=True)
        talk.ask(request, LATEST_CREATE)


def topics_are_refused_for_their_configs(talk: Conversation) -> None:
    configs: list[dict[str, str | None]] = [
        {"no.such.key": "1"},
        {"retention.ms": None},
        {"retention.ms": ""},
        {"retention.ms": "soon"},
        {"retention.ms": " 1000 "},
        {"retention.ms": "-1"},
        {"retention.ms": "-2"},
        {"segment.bytes": "1"},
        {"segment.bytes": "1048576"},
        {"segment.bytes": "99999999999"},
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "compact,delete"},
        {"cleanup.policy": "delete, compact"},
        {"cleanup.policy": "archive"},
        {"cleanup.policy": ""},
        {"compression.type": "brotli"},
        {"compression.type": "zstd"},
        {"compression.zstd.level": "23"},
        {"compression.gzip.level": "0"},
        {"compression.lz4.level": "17"},
        {"message.timestamp.type": "LogAppendTime"},
        {"message.timestamp.type": "logappendtime"},
        {"min.insync.replicas": "0"},
        {"min.insync.replicas": "2"},
        {"max.message.bytes": "-1"},
        {"max.message.bytes": "0"},
        {"min.cleanable.dirty.ratio": "1.5"},
        {"min.cleanable.dirty.ratio": "0.25"},
        {"preallocate": "maybe"},
        {"preallocate": "TRUE"},
        {"unclean.leader.election.enable": "true"},
        {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"},
        {"max.compaction.lag.ms": "0"},
        {"remote.storage.enable": "true"},
        {"remote.storage.enable": "false"},
        {"local.retention.ms": "100", "retention.ms": "10"},
        {"local.retention.bytes": "100", "retention.bytes": "10"},
        {"leader.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:0,1:0"},
        {"leader.replication.throttled.replicas": "zero"},
        {"segment.ms": "0"},
        {"segment.jitter.ms": "-1"},
        {"index.interval.bytes": "-1"},
        {"segment.index.bytes": "3"},
        {"flush.messages": "0"},
        {"flush.ms": "-1"},
        {"file.delete.delay.ms": "-1"},
        {"delete.retention.ms": "-1"},
        {"message.timestamp.before.max.ms": "-1"},
        {"message.timestamp.after.max.ms": "0"},
        {"retention.ms": "1", "no.such.key": None},
        {"internal.segment.bytes": "1000"},
    ]
    for config in configs:
        wish = _new("configured", configs=config)
        talk.ask(CreateTopicsRequest(topics=[wish], validate_only=True), LATEST_CREATE)
    wish = CreateTopicsTopic(
        name="configured",
        num_partitions=1,
        replication_factor=1,
        assignments=[],
        configs=[
            CreateTopicsConfig(name="retention.ms", value="1"),
            CreateTopicsConfig(name="retention.ms", value="2"),
        ],
    )
    talk.ask(CreateTopicsRequest(topics=[wish], validate_only=True), LATEST_CREATE)


def partitions_are_added(talk: Conversation) -> None:
    for version in talk.versions_of(CreatePartitionsRequest):
        name = f"grown-{version}"
        talk.create_topic(name, 2)
        for count, assignments in (
            (1, None),
            (2, None),
            (0, None),
            (-1, None),
            (3, [[0], [0]]),
            (4, [[0]]),
            (3, [[7]]),
            (3, [[]]),
            (3, [[0, 0]]),
            (3, []),
            (3, [[0]]),
            (5, None),
            (20_000, None),
        ):
            wish = CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments],
            )
            request = CreatePartitionsRequest(topics=[wish], timeout_ms=5000, validate_only=True)
            talk.ask(request, version)
        wish = CreatePartitionsTopic(name=name, count=4, assignments=None)
        missing = CreatePartitionsTopic(name="grown-missing", count=4, assignments=None)
        talk.ask(
            CreatePartitionsRequest(topics=[wish, missing], timeout_ms=5000, validate_only=False),
            version,
        )
        talk.ask(
            CreatePartitionsRequest(
                topics=[wish, wish, missing], timeout_ms=5000, validate_only=False
            ),
            version,
        )
        talk.ask(CreatePartitionsRequest(topics=[], timeout_ms=5000, validate_only=False), version)


def topics_are_deleted_by_name(talk: Conversation) -> None:
    for version in talk.versions_of(DeleteTopicsRequest):
        if version > 5:
            break
        name = f"deleted-{version}"
        talk.create_topic(name, 2)
        names = [name, "deleted-never", "", "bad name", "__cluster_metadata"]
        talk.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=5000), version)
        talk.wait_until_gone(name)
        talk.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), version)
        talk.create_topic(name, 1)
        talk.ask(DeleteTopicsRequest(topic_names=[name, name], timeout_ms=5000), version)
        talk.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), version)
        talk.ask(DeleteTopicsRequest(topic_names=[], timeout_ms=5000), version)


def topics_are_deleted_by_name_or_id(talk: Conversation) -> None:
    topics = [talk.create_topic(f"deleted-by-{index}") for index in range(4)]

    def delete(*wishes: tuple[str | None, bytes]) -> None:
        wanted = [DeleteTopicsTopic(name=name, topic_id=topic_id) for name, topic_id in wishes]
        talk.ask(DeleteTopicsRequest(topics=wanted, timeout_ms=5000), LATEST_DELETE)

    delete(("deleted-by-0", ZERO_UUID))
    delete((None, topics[1].topic_id))
    delete((None, ZERO_UUID))
    delete((None, unknown_id()))
    delete(("deleted-by-2", topics[2].topic_id))
    delete(("deleted-by-2", ZERO_UUID), (None, topics[2].topic_id))
    delete((None, topics[3].topic_id), (None, topics[3].topic_id))
    delete(("deleted-by-3", ZERO_UUID), ("deleted-by-3", ZERO_UUID), ("nobody", ZERO_UUID))
    delete()


def topics_are_described_by_metadata(talk: Conversation) -> None:
    topic = talk.create_topic("described", 3)
    names = ("described", "described-not-there", "not legal", "")
    for version in talk.versions_of(MetadataRequest):
        # Before v4 whoever names a topic that is not there creates it.
        asked = names[:1] if version < 4 else names
        request = MetadataRequest(topics=_named(*asked), allow_auto_topic_creation=version < 4)
        talk.ask(request, version)
        talk.ask(MetadataRequest(topics=_named("described", "described")), version)
        if version >= 8:
            request = MetadataRequest(
                topics=_named("described", "described-not-there"),
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=version <= 10,
                include_topic_authorized_operations=True,
            )
            talk.ask(request, version)
        if version >= 1:
            talk.ask(MetadataRequest(topics=[]), version)
        if version >= 10:
            wanted = [
                MetadataRequestTopic(name=None, topic_id=topic.topic_id),
                MetadataRequestTopic(name=None, topic_id=unknown_id()),
            ]
            talk.ask(MetadataRequest(topics=wanted), version)
            wanted = [MetadataRequestTopic(name="described", topic_id=topic.topic_id)]
            talk.ask(MetadataRequest(topics=wanted), version)
            wanted = [MetadataRequestTopic(name="wrong-name", topic_id=topic.topic_id)]
            talk.ask(MetadataRequest(topics=wanted), version)
            talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), version)


def topics_are_created_by_being_named(talk: Conversation) -> None:
    # Kafka's first answer does not know the topic yet; what odradek says at once, Kafka says later.
    talk.silently(MetadataRequest(topics=_named("named-only", "not legal")), 12)
    talk.wait_for_topic("named-only")
    talk.ask(MetadataRequest(topics=_named("named-only", "not legal")), 12)
    talk.ask(MetadataRequest(topics=_named("named-never"), allow_auto_topic_creation=False), 12)


def the_offsets_topic_is_like_kafkas(talk: Conversation) -> None:
    talk.wait_for_coordinator("anybody")
    talk.ask(MetadataRequest(topics=_named("__consumer_offsets")), 12)
    resource = DescribeConfigsResource(
        resource_type=2, resource_name="__consumer_offsets", configuration_keys=None
    )
    talk.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
    produce(talk, "__consumer_offsets", batch_of("not for clients"))
    wish = CreatePartitionsTopic(name="__consumer_offsets", count=51, assignments=None)
    talk.ask(CreatePartitionsRequest(topics=[wish], timeout_ms=5000, validate_only=True), 3)
    talk.ask(CreateTopicsRequest(topics=[_new("__consumer_offsets")]), LATEST_CREATE)
    talk.ask(
        CreateTopicsRequest(topics=[_new("__share_group_state")], validate_only=True),
        LATEST_CREATE,
    )


def topics_are_described_by_the_page(talk: Conversation) -> None:
    for name, partitions in (("page-a", 2), ("page-b", 5), ("page-c", 1)):
        talk.create_topic(name, partitions)
    talk.wait_for_topic("page-c")

    def page(
        names: Sequence[str], limit: int = 2000, cursor: tuple[str, int] | None = None
    ) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequestTopic(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None
            if cursor is None
            else DescribeTopicPartitionsCursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        talk.ask(request, 0)

    every = ["page-c", "page-a", "page-b"]
    page(every)
    page([*every, "page-a", "page-x", "not legal", ""])
    for limit in (-1, 0, 1, 2, 3, 6, 7, 8):
        page(every, limit)
    page(every, 2, ("page-a", 1))
    page(every, 2, ("page-b", 2))
    page(every, 3, ("page-b", 2))
    page(every, 2, ("page-b", 5))
    page(every, 2, ("page-b", 9))
    page(every, 2, ("page-c", 0))
    page(every, 2, ("page-b", -1))
    page(every, 2, ("page-x", 0))
    page(["page-x"], 2, ("page-x", 0))
    page([*every, "page-bb"], 6, None)
    page(every, 2, ("page-d", 0))
