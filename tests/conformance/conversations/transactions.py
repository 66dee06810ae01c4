"""Transactions of both versions: begun, ended, fenced, repeated, and asked for in every state."""

import msgspec
from msgspec.structs import replace

from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataResponseTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from tests.conformance.conversation import Conversation, unknown_id
from tests.conformance.transactional_producer import TransactionalProducer, new_producer


def _commit_and_abort(talk: Conversation, *, is_v2: bool) -> None:
    one = new_producer(talk, "plain", is_v2=is_v2)
    producer = one.start()
    one.describe()
    for commit in (True, False, True):
        for partition in (0, 1):
            if not is_v2:
                one.add(producer, partition)
            one.write(producer, 0, partition)
        one.describe()
        one.read(0)
        one.read(1)
        producer = one.end(producer, commit=commit)
        one.describe()
        one.read(0)
        one.read(1)
        if not is_v2:
            producer = one.start()


def transactions_of_version_1(talk: Conversation) -> None:
    _commit_and_abort(talk, is_v2=False)


def transactions_of_version_2(talk: Conversation) -> None:
    _commit_and_abort(talk, is_v2=True)


def _every_request(one: TransactionalProducer, producer: tuple) -> None:
    """Requests of the wrong producer, of older and newer epochs."""
    producer_id, epoch = producer
    for wrong in ((producer_id + 1000, epoch), (producer_id, epoch + 1), (producer_id, epoch - 1)):
        if wrong[1] < 0:
            continue
        if not one.is_v2:
            one.add(wrong)
        one.write(wrong, 0)
        one.commit_offset(wrong, f"group-{one.transactional_id}", 5)
        one.end(wrong, commit=True)
        one.end(wrong, commit=False)


def _states(talk: Conversation, *, is_v2: bool) -> None:
    one = new_producer(talk, "states", is_v2=is_v2)
    one.describe()
    _every_request(one, (4000, 0))
    producer = one.start()
    _every_request(one, producer)
    one.end(producer, commit=True)
    for commit in (True, False):
        producer = one.start()
        if not is_v2:
            one.add(producer)
        one.write(producer, 0)
        _every_request(one, producer)
        after = one.end(producer, commit=commit)
        one.end(producer, commit=commit)  # repeated
        one.end(producer, commit=not commit)
        _every_request(one, after)
        one.end(after, commit=True)
        one.describe()
    one.start()
    one.start(expected=(producer[0], producer[1]))
    current = one.start()
    again = one.start(expected=current)
    one.start(expected=current)  # repeated: the same answer
    one.start(expected=(again[0] + 1000, 0))
    one.start(timeout_ms=0)
    one.start(timeout_ms=900_001)


def states_of_version_1(talk: Conversation) -> None:
    _states(talk, is_v2=False)


def states_of_version_2(talk: Conversation) -> None:
    _states(talk, is_v2=True)


def _fencing(talk: Conversation, *, is_v2: bool) -> None:
    one = new_producer(talk, "fencing", is_v2=is_v2)
    old = one.start()
    if not is_v2:
        one.add(old)
    one.write(old, 0)
    one.start()  # aborts the open transaction, and asks the producer to come again
    one.describe()
    new = one.start()
    one.describe()
    if not is_v2:
        one.add(old)
    one.write(old, 1)
    one.end(old, commit=True)
    if not is_v2:
        one.add(new)
    one.write(new, 0)
    one.end(new, commit=True)
    one.read(1)


def fencing_of_version_1(talk: Conversation) -> None:
    _fencing(talk, is_v2=False)


def fencing_of_version_2(talk: Conversation) -> None:
    _fencing(talk, is_v2=True)


def _offsets(talk: Conversation, *, is_v2: bool) -> None:
    one = new_producer(talk, "offsets", is_v2=is_v2)
    group = f"group-{one.transactional_id}"
    producer = one.start()
    for commit in (True, False):
        if not is_v2:
            one.commit_offset(producer, group, 3)  # the group is not in the transaction
            add = AddOffsetsToTxnRequest(
                transactional_id=one.transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                group_id=group,
            )
            talk.ask(add, 3)
        one.commit_offset(producer, group, 7)
        one.describe()
        for stable in (False, True):
            _committed(one, group, stable=stable)
        producer = one.end(producer, commit=commit)
        for stable in (False, True):
            _committed(one, group, stable=stable)
    one.commit_offset(producer, "", 1)


def _committed(one: TransactionalProducer, group: str, *, stable: bool) -> None:
    topics = [OffsetFetchRequestTopic(name=one.topic, partition_indexes=[0, 1])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable
    )
    one.talk.ask(request, 8)


def offsets_of_version_1(talk: Conversation) -> None:
    _offsets(talk, is_v2=False)


def offsets_of_version_2(talk: Conversation) -> None:
    _offsets(talk, is_v2=True)


def offsets_in_a_transaction_are_committed_by_topic_id(talk: Conversation) -> None:
    one = new_producer(talk, "by-id", is_v2=True)
    group = f"group-{one.transactional_id}"
    first = talk.wait_for_topic(one.topic)
    second = talk.create_topic("txn-by-id-other", 1)
    producer_id, epoch = one.start()
    usual = {
        "transactional_id": one.transactional_id,
        "group_id": group,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "topics": [_offsets_of(first, 0, 1)],
    }
    newest = TxnOffsetCommitRequest.SPEC.versions.highest
    for version in talk.versions_of(TxnOffsetCommitRequest)[::-1]:  # the newest add the group
        talk.ask(TxnOffsetCommitRequest(**usual), version)
    unnamed = replace(_offsets_of(second, 0), name="", topic_id=second.topic_id)
    for topics in (
        [],
        [_offsets_of(first)],
        [_offsets_of(first, 0), _offsets_of(second, 0)],
        [_offsets_of(first, 0), _offsets_of(first, 1), _offsets_of(first, 0, 0)],
        [_offsets_of(first, 2, 3, -1)],
        [unnamed],
        [replace(unnamed, topic_id=ZERO_UUID)],
        [replace(unnamed, topic_id=ZERO_UUID), _offsets_of(first, 1)],
        [replace(unnamed, topic_id=unknown_id()), _offsets_of(first, 1)],
        [replace(_offsets_of(second, 0), name="txn-by-id-not"), _offsets_of(first, 1)],
        [_offsets_of(first, 0, offset=-1)],
        [_offsets_of(first, 0, offset=-9)],
        [_offsets_of(first, 0, metadata=None)],
        [_offsets_of(first, 0, metadata="x" * 4_096), _offsets_of(second, 0)],
        [_offsets_of(first, 0, metadata="x" * 4_097), _offsets_of(second, 0)],
    ):
        for version in (newest - 1, newest):
            talk.ask(TxnOffsetCommitRequest(**{**usual, "topics": topics}), version)
    for version in (newest - 1, newest):
        for change in (
            {"transactional_id": ""},
            {"transactional_id": "txn-by-id-nobody"},
            {"group_id": ""},
            {"producer_id": producer_id + 1_000_000},
            {"producer_id": -1},
            {"producer_epoch": epoch + 1},
            {"producer_epoch": -1},
            {"member_id": "m"},
            {"member_id": "m", "generation_id_or_member_epoch": 3},
            {"generation_id_or_member_epoch": 3},
            {"group_instance_id": "i"},
        ):
            request = TxnOffsetCommitRequest(**{**usual, **change})
            talk.ask(request, version, title=f"{sorted(change)} in v{version}")
    one.end((producer_id, epoch), commit=True)
    everything = OffsetFetchRequestGroup(group_id=group, topics=None)
    talk.ask(OffsetFetchRequest(groups=[everything], require_stable=True), 10)


def _offsets_of(
    topic: MetadataResponseTopic, *indexes: int, offset: int = 5, metadata: str | None = "m"
) -> TxnOffsetCommitRequestTopic:
    return TxnOffsetCommitRequestTopic(
        name=topic.name or "",
        topic_id=topic.topic_id,
        partitions=[
            TxnOffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=index,
                committed_metadata=metadata,
            )
            for index in indexes
        ],
    )


def partitions_that_cannot_be_added(talk: Conversation) -> None:
    one = new_producer(talk, "partitions", is_v2=False)
    producer = one.start()
    topics = [
        AddPartitionsToTxnTopic(name=one.topic, partitions=[0, 9]),
        AddPartitionsToTxnTopic(name="txn-absent", partitions=[0]),
    ]

    def in_order(answer: object) -> object:
        answer.results_by_topic_v3_and_below.sort(key=lambda topic: topic.name)  # type: ignore[attr-defined] # its answer
        for topic in answer.results_by_topic_v3_and_below:  # type: ignore[attr-defined] # its answer
            topic.results_by_partition.sort(key=lambda each: each.partition_index)
        return answer

    for version in (0, 1, 2, 3):
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=one.transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        talk.ask(request, version, in_order, title=f"cannot be added v{version}")
    for verify_only in (True, False):
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=one.transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=one.topic, partitions=[0])],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        talk.ask(request, 4, title=f"verify only {verify_only}")
        talk.ask(request, 5, title=f"verify only {verify_only} again")
    one.end(producer, commit=False)


def markers_of_an_administrator(talk: Conversation) -> None:
    one = new_producer(talk, "markers", is_v2=False)
    producer = one.start()
    one.add(producer)
    one.write(producer, 0)

    def describe_producers() -> None:
        def without_times(answer: object) -> object:
            for topic in answer.topics:  # type: ignore[attr-defined] # its answer
                for partition in topic.partitions:
                    for active in partition.active_producers:
                        msgspec.structs.force_setattr(active, "last_timestamp", 0)
            return answer

        topics = [DescribeProducersTopic(name=one.topic, partition_indexes=[0])]
        talk.ask(DescribeProducersRequest(topics=topics), 0, without_times)

    describe_producers()
    for version, epoch, coordinator_epoch, topic, partition in (
        (2, producer[1], 0, "txn-absent", 0),
        (2, producer[1], 0, one.topic, 7),
        (2, producer[1], 0, one.topic, 0),  # version 2 needs a newer epoch
        (1, producer[1], 3, one.topic, 0),
        (1, producer[1], 2, one.topic, 0),  # an older coordinator
        (1, producer[1], 3, one.topic, 0),
    ):
        marker = WriteTxnMarkersMarker(
            producer_id=producer[0],
            producer_epoch=epoch,
            transaction_result=False,
            topics=[WriteTxnMarkersTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=2 if version > 1 else 0,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        talk.ask(
            request,
            version,
            title=f"marker v{version} of {coordinator_epoch} to {topic}-{partition}",
        )
    describe_producers()
    one.read(1)


def transactional_ids_are_listed(talk: Conversation) -> None:
    one = new_producer(talk, "listed", is_v2=True)
    producer = one.start()
    one.write(producer, 0)

    def only_mine(answer: object) -> object:
        states = answer.transaction_states  # type: ignore[attr-defined] # its answer
        states[:] = [each for each in states if each.transactional_id.startswith("listed-")]
        return answer

    for request in (
        ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[]),
        ListTransactionsRequest(state_filters=["Empty", "Strange"], producer_id_filters=[]),
        ListTransactionsRequest(state_filters=[], producer_id_filters=[123_456]),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], duration_filter=3_600_000
        ),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern="list.*"
        ),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern="list"
        ),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern="list["
        ),
    ):
        talk.ask(request, 2, only_mine)
    talk.ask(DescribeTransactionsRequest(transactional_ids=["", "absent"]), 0)
    one.end(producer, commit=True)
