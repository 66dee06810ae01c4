"""Transactions whose coordinator and whose partitions are led by different nodes."""

from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.conformance.cluster.asked import describe_producers, fetch
from tests.conformance.cluster.asked_coordinators import add, end, find, start, write
from tests.conformance.cluster.talk import TRANSACTION, TRANSACTIONS_TOPIC, Asked, ClusterTalk
from tests.support.requests import build
from tests.support.waiting import wait_for, wait_until

COORDINATOR, LEADER = 2, 1


def transactions_belong_to_their_coordinator(talk: ClusterTalk) -> None:
    talk.create_topic("transacted", [LEADER, 3])
    name = "tx-two"
    talk.coordinate(name, COORDINATOR, TRANSACTION)
    talk.ask_each(find(name, kind=TRANSACTION))
    for node in (1, 3):
        talk.ask(node, start(name))
    producer = _started(talk, COORDINATOR, name)
    for node in (1, 3):
        for asked in _requests(name, producer):
            talk.ask(node, asked)
    talk.ask(3, write(name, producer, "transacted", 0), "not the leader")
    talk.ask(LEADER, write(name, producer, "transacted", 0), "the leader")
    talk.ask_each(describe_producers("transacted"), change=_producers)
    talk.ask_each((build(ListTransactionsRequest, 2), 2), change=_ours)
    describe = build(DescribeTransactionsRequest, 0, transactional_ids=[name])
    talk.ask_each((describe, 0), change=_without_start)
    talk.ask(LEADER, fetch("transacted", isolation_level=1), "before the end", _end)
    talk.ask(COORDINATOR, end(name, producer), "the end")
    wait_until(lambda: _end(talk.silently(LEADER, fetch("transacted", isolation_level=1)))[2] == 2)
    talk.ask(LEADER, fetch("transacted", isolation_level=1), "after the end", _end)
    marker = {
        "producer_id": producer[0],
        "producer_epoch": producer[1] + 1,
        "transaction_result": True,
        "topics": [{"name": "transacted", "partition_indexes": [0]}],
    }
    talk.ask(3, (build(WriteTxnMarkersRequest, 1, markers=[marker]), 1), "marker at a follower")
    talk.ask(2, (build(WriteTxnMarkersRequest, 1, markers=[marker]), 1), "marker elsewhere")


def _started(talk: ClusterTalk, node: int, name: str) -> tuple[int, int]:
    """Id and epoch of a transactional producer."""
    wait_until(lambda: talk.silently(node, start(name)).error_code == ErrorCode.NONE)
    answer = talk.ask(node, start(name), "started")
    return answer.producer_id, answer.producer_epoch


def _wait_for_state(talk: ClusterTalk, node: int, name: str, state: str) -> None:
    describe = (build(DescribeTransactionsRequest, 0, transactional_ids=[name]), 0)
    wait_for(lambda: talk.silently(node, describe).transaction_states[0].transaction_state, state)


def _requests(name: str, producer: tuple[int, int]) -> list[Asked]:
    producer_id, epoch = producer
    return [
        add(name, producer, "transacted"),
        add(name, producer, "transacted", version=5),
        (
            build(
                AddOffsetsToTxnRequest,
                4,
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id="group",
            ),
            4,
        ),
        end(name, producer),
        end(name, producer, version=3),
        (build(DescribeTransactionsRequest, 0, transactional_ids=[name]), 0),
    ]


def _producers(answer: Any) -> Any:
    (topic,) = answer.topics
    (partition,) = topic.partitions
    fields = ("producer_epoch", "last_sequence", "current_txn_start_offset")
    return {
        "error_code": partition.error_code,
        "producers": [
            {name: getattr(one, name) for name in fields} for one in partition.active_producers
        ],
    }


def _ours(answer: Any) -> Any:
    found = [one for one in answer.transaction_states if one.transactional_id.startswith("tx-")]
    return {"error_code": answer.error_code, "transactions": found}


def _without_start(answer: Any) -> Any:
    (one,) = answer.transaction_states
    return {
        "error_code": one.error_code,
        "state": one.transaction_state,
        "epoch": one.producer_epoch,
        "topics": one.topics,
    }


def _end(answer: Any) -> Any:
    (topic,) = answer.responses
    (partition,) = topic.partitions
    return [partition.error_code, partition.high_watermark, partition.last_stable_offset]


def a_transaction_survives_its_coordinator(talk: ClusterTalk) -> None:
    _killed_in_the_middle(talk, "tx-survivor", "kept", v2=True)


def a_transaction_of_version_1_survives_its_coordinator(talk: ClusterTalk) -> None:
    _killed_in_the_middle(talk, "tx-older-survivor", "kept-1", v2=False)


def _killed_in_the_middle(talk: ClusterTalk, name: str, topic: str, *, v2: bool) -> None:
    talk.create_topic(topic, [LEADER, 3])
    talk.place_coordinator(name, [COORDINATOR, 3, 1], TRANSACTION)
    producer = _started(talk, COORDINATOR, name)
    written = 12 if v2 else 11
    if not v2:
        talk.ask(COORDINATOR, add(name, producer, topic), "added")
    talk.ask(LEADER, write(name, producer, topic, 0, written), "written")
    talk.kill(COORDINATOR)
    talk.wait_for_state(TRANSACTIONS_TOPIC, talk.partition_of(name, TRANSACTIONS_TOPIC), leader=3)
    talk.wait_for_coordinator(name, 3, TRANSACTION)
    describe = (build(DescribeTransactionsRequest, 0, transactional_ids=[name]), 0)
    talk.ask_each(describe, "after the coordinator was killed", change=_without_start)
    talk.ask(LEADER, write(name, producer, topic, 1, written), "written after")
    talk.ask(1, end(name, producer, version=5 if v2 else 4), "the end elsewhere")
    talk.ask(3, end(name, producer, version=5 if v2 else 4), "the end")
    wait_until(lambda: _end(talk.silently(LEADER, fetch(topic, isolation_level=1)))[2] == 3)
    talk.ask(LEADER, fetch(topic, isolation_level=1), "after the end", _end)
    _wait_for_state(talk, 3, name, "CompleteCommit")
    talk.ask(3, describe, "after the end", change=_without_start)
    talk.start(COORDINATOR)
    talk.wait_for_state(topic, leader=LEADER, isr=[LEADER, 3])


def markers_wait_for_a_leader(talk: ClusterTalk) -> None:
    """The only replica of a partition of a transaction is down while the transaction ends.

    Little is asked: Kafka 4.4.0 drops that partition from the transaction sooner or later, and
    completes the transaction without a marker there; its last stable offset stays.
    """
    talk.create_topic("markers", [3])
    name = "tx-markers"
    talk.place_coordinator(name, [COORDINATOR, 1, 3], TRANSACTION)
    producer = _started(talk, COORDINATOR, name)
    talk.ask(3, write(name, producer, "markers", 0), "written")
    talk.kill(3)
    talk.wait_for_state("markers", leader=-1)
    after = talk.ask(COORDINATOR, end(name, producer), "the end while it is down")
    describe = (build(DescribeTransactionsRequest, 0, transactional_ids=[name]), 0)
    talk.start(3)
    talk.wait_for_state("markers", leader=3, isr=[3])
    _wait_for_state(talk, COORDINATOR, name, "CompleteCommit")
    talk.ask(COORDINATOR, describe, "after its restart", change=_without_start)
    talk.note("epoch after the end", after.producer_epoch)


def markers_need_enough_replicas(talk: ClusterTalk) -> None:
    """A transaction ends while a partition of it is below its min.insync.replicas."""
    name, topic = "tx-markers-enough", "marked-by-two"
    talk.create_topic(topic, [1, 2], min_insync_replicas="2")
    talk.place_coordinator(name, [1, 3, 2], TRANSACTION)
    producer = _started(talk, 1, name)
    talk.ask(1, write(name, producer, topic, 0), "two replicas")
    talk.kill(2)
    talk.wait_for_state(topic, leader=1, isr=[1])
    partition = talk.partition_of(name, TRANSACTIONS_TOPIC)
    talk.wait_for_state(TRANSACTIONS_TOPIC, partition, leader=1, isr=[1, 3])
    talk.ask(1, end(name, producer), "one replica")
    describe = (build(DescribeTransactionsRequest, 0, transactional_ids=[name]), 0)
    talk.ask(1, describe, "one replica", change=_without_start)
    talk.ask(1, start(name), "one replica")
    talk.start(2)
    talk.wait_for_state(topic, leader=1, isr=[1, 2])
    _wait_for_state(talk, 1, name, "CompleteCommit")
    talk.ask(1, describe, "two replicas", change=_without_start)
