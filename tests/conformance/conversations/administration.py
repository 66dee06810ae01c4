"""Records deleted, replicas moved, features finalised, producers and quotas told."""

from typing import Any

from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsPartition,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsTopic,
)
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasComponentData,
    DescribeClientQuotasRequest,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesUpdate,
)
from tests.conformance.conversation import Conversation, only
from tests.conformance.requests import batch_of, fetch_request, produce

LATEST = 2
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def records_are_deleted(talk: Conversation) -> None:
    def delete(*offsets: tuple[str, int, int], version: int = LATEST) -> None:
        topics = [
            DeleteRecordsTopic(
                name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)]
            )
            for name, index, offset in offsets
        ]
        talk.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000), version)

    talk.create_topic("shortened", 2)
    for version in talk.versions_of(DeleteRecordsRequest):
        produce(talk, "shortened", batch_of("a", "b", "c", "d"))
        delete(("shortened", 0, 4 * version + 3), version=version)
        delete(("shortened", 0, 1), version=version)
        delete(("shortened", 0, 1000), version=version)
        delete(("shortened", 0, -2), ("shortened", 1, 0), version=version)
        delete(("shortened", 1, -1), ("shortened", 7, 0), ("never", 0, 0), version=version)
        _look(talk, "shortened")
    delete(("shortened", 0, -1))
    _look(talk, "shortened")
    produce(talk, "shortened", batch_of("e"))
    _look(talk, "shortened")
    delete(("shortened", 0, 12), ("shortened", 0, 13))
    delete()
    delete(("", 0, 0), ("not legal", 0, 0))


def _look(talk: Conversation, topic: str) -> None:
    for timestamp in (-2, -1, -3, 0):
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        talk.ask(request, 7)
    for offset in (0, 5, 12):
        talk.ask(fetch_request(topic, offset), 12)


def only_what_may_go_is_deleted(talk: Conversation) -> None:
    talk.create_topic("compacted-only", cleanup_policy="compact")
    talk.create_topic("compacted-too", cleanup_policy="compact,delete")
    talk.wait_for_coordinator("deleting")
    for name in ("compacted-only", "compacted-too", "__consumer_offsets"):
        produce(talk, name, batch_of("a", "b"), title=f"a batch to {name}")
        for offset in (1, -1, 5, -2):
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=name,
                        partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)],
                    )
                ],
                timeout_ms=5000,
            )
            talk.ask(request, LATEST)


def replicas_stay_on_the_one_broker(talk: Conversation) -> None:
    talk.create_topic("reassigned", 2)

    def reassign(
        name: str, index: int, replicas: list[int] | None, version: int, allowed: bool = True
    ) -> None:
        partition = AlterPartitionReassignmentsPartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=allowed if version >= 1 else True,
            topics=[AlterPartitionReassignmentsTopic(name=name, partitions=[partition])],
        )
        talk.ask(request, version)

    for version in talk.versions_of(AlterPartitionReassignmentsRequest):
        for replicas in ([0], [], [1], [0, 1], [0, 0], [-1], None):
            reassign("reassigned", 0, replicas, version)
            reassign("reassigned", 0, replicas, version, allowed=False)
        for name, index in (("reassigned", 9), ("reassigned", -1), ("reassigned-never", 0)):
            reassign(name, index, [0], version)
            reassign(name, index, None, version)
        talk.ask(AlterPartitionReassignmentsRequest(topics=[]), version)
    for topics in (
        None,
        [],
        [ListPartitionReassignmentsTopics(name="reassigned", partition_indexes=[0, 1, 9])],
        [ListPartitionReassignmentsTopics(name="reassigned-never", partition_indexes=[0])],
    ):
        talk.ask(ListPartitionReassignmentsRequest(topics=topics), 0)


def logs_move_between_known_directories_only(talk: Conversation) -> None:
    talk.create_topic("settled", 2)
    longest = "l" * 213  # one more, and there is no room for a future directory's suffix
    talk.create_topic(longest)
    talk.create_topic(longest + "l")
    described: Any = talk.silently(DescribeLogDirsRequest(topics=[]), 4)
    here = described.results[0].log_dir
    for version in talk.versions_of(AlterReplicaLogDirsRequest):
        for path in (here, here + "/", here + "/settled-0", "/never", "relative", ""):
            for name, indexes in (
                ("settled", [0, 1]),
                ("settled", [9, -1]),
                ("settled-never", [0]),
                (longest, [0]),
                (longest + "l", [0]),
                ("not legal", [0]),
            ):
                topic = AlterReplicaLogDirTopic(name=name, partitions=indexes)
                directory = AlterReplicaLogDir(path=path, topics=[topic])
                title = f"{name[:20]} {indexes} to {path.replace(here, 'here')} v{version}"
                talk.ask(AlterReplicaLogDirsRequest(dirs=[directory]), version, title=title)
        talk.ask(AlterReplicaLogDirsRequest(dirs=[]), version)


def features_are_finalised_within_what_is_served(talk: Conversation) -> None:
    def update(
        *levels: tuple[str, int], kind: int = UPGRADE, version: int, dry: bool = True
    ) -> None:
        request = UpdateFeaturesRequest(
            feature_updates=[
                UpdateFeaturesUpdate(
                    feature=name, max_version_level=level, upgrade_type=kind if version else UPGRADE
                )
                for name, level in levels
            ],
            validate_only=dry and version >= 1,
        )
        talk.ask(request, version)

    for version in talk.versions_of(UpdateFeaturesRequest):
        for kind in (UPGRADE, SAFE, UNSAFE, 0, 7) if version else (UPGRADE,):
            for level in (7, 6, 0, -1):  # the steps that are allowed: test_feature_levels.py
                update(("metadata.version", level), kind=kind, version=version)
            for level in (0, 1, -1):
                update(("no.such.feature", level), kind=kind, version=version)
            update(("kraft.version", 2), kind=kind, version=version)
            update(("kraft.version", -1), kind=kind, version=version)
        update(("group.version", 1), version=version, dry=False)
        update(("group.version", 1), ("no.such.feature", 1), version=version)
        update(version=version)


def a_broker_that_is_not_there_cannot_be_unregistered(talk: Conversation) -> None:
    for broker_id in (7, -1):
        talk.ask(UnregisterBrokerRequest(broker_id=broker_id), 0)


def there_are_no_quotas(talk: Conversation) -> None:
    def ask(*components: tuple[str, int, str | None], version: int, strict: bool = False) -> None:
        request = DescribeClientQuotasRequest(
            components=[
                DescribeClientQuotasComponentData(entity_type=kind, match_type=match, match=name)
                for kind, match, name in components
            ],
            strict=strict,
        )
        talk.ask(request, version)

    for version in talk.versions_of(DescribeClientQuotasRequest):
        ask(version=version)
        ask(("user", 0, "alice"), ("client-id", 1, None), version=version, strict=True)
        for kind in ("user", "client-id", "ip"):
            ask((kind, 0, None), version=version)
            ask((kind, 1, "x"), version=version)
            ask((kind, 2, "x"), version=version)
            ask((kind, 2, None), version=version)
            ask((kind, 3, None), version=version)
            ask((kind, 0, "x"), (kind, 2, None), version=version)
        ask(("ip", 2, None), ("user", 2, None), version=version)
        ask(("client-id", 0, "c"), ("ip", 1, None), version=version)
        ask(("", 0, "x"), version=version)
        ask(("group", 0, "x"), version=version)


def producers_are_told(talk: Conversation) -> None:
    talk.create_topic("producers", 3)
    first, second = talk.new_producer_id(), talk.new_producer_id()
    produce(talk, "producers", batch_of("a", "b", producer=(first, 0, 0)))
    produce(talk, "producers", batch_of("c", producer=(first, 0, 2)))
    produce(talk, "producers", batch_of("d", producer=(second, 3, 0)))
    produce(talk, "producers", batch_of("e"), partition=1)
    for wanted in (
        [("producers", [0, 1, 2])],
        [("producers", [0, 9, -1]), ("producers-never", [0]), ("not legal", [0]), ("", [0])],
        [("producers", [])],
        [],
    ):
        request = DescribeProducersRequest(
            topics=[
                DescribeProducersTopic(name=name, partition_indexes=indexes)
                for name, indexes in wanted
            ]
        )
        talk.ask(request, 0, _without_order)


def _without_order(answer: Any) -> object:
    """Kafka tells of producers in the order of a hash table."""
    return [
        (
            topic.name,
            [
                (
                    only(one, "partition_index", "error_code", "error_message"),
                    sorted(
                        (state.producer_epoch, state.last_sequence, state.last_timestamp)
                        for state in one.active_producers
                    ),
                    {
                        (state.coordinator_epoch, state.current_txn_start_offset)
                        for state in one.active_producers
                    },
                )
                for one in topic.partitions
            ],
        )
        for topic in answer.topics
    ]
