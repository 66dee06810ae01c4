"""Nodes are killed, stopped, paused and started: who leads, in which epoch, and what is refused."""

from typing import Any

from odradek.protocol.errors import ErrorCode
from tests.conformance.cluster.asked import (
    UNCLEAN,
    create_topic,
    delete_records,
    describe_cluster,
    describe_topic_partitions,
    elect,
    epoch_end,
    fetch,
    list_offsets,
    produce,
)
from tests.conformance.cluster.asked_coordinators import end, find, start, write
from tests.conformance.cluster.talk import (
    TRANSACTION,
    TRANSACTIONS_TOPIC,
    ClusterTalk,
    metadata,
)
from tests.support.waiting import wait_until

LATEST = -1


def _topic(answer: Any) -> Any:
    return answer.topics


def _read(answer: Any) -> Any:
    (topic,) = answer.responses
    (one,) = topic.partitions
    return {
        "error_code": one.error_code,
        "high_watermark": one.high_watermark,
        "current_leader": one.current_leader,
        "node_endpoints": answer.node_endpoints,
        "bytes": len(bytes(one.records or b"")),
    }


def _show(talk: ClusterTalk, name: str, title: str) -> None:
    talk.show(name, title)
    talk.ask(min(talk.running), describe_topic_partitions(name), title, _topic)


def a_killed_leader_is_replaced_by_the_next_replica(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("led", [1, 2, 3])
    producer_id = talk.producer_id()
    talk.ask(1, produce("led", "one", producer=(producer_id, 0, 0)), "written at 1")
    talk.kill(1)
    talk.wait_for_state("led", leader=2, isr=[2, 3])
    talk.wait_for_log("led", 0, 2)
    talk.ask(2, metadata("led"), "after the kill")
    _show(talk, "led", "after the kill")
    talk.ask_each(describe_cluster(), "after the kill")
    talk.ask_each(describe_cluster(fenced=True), "after the kill, with fenced brokers")
    talk.ask(2, elect("led", 0), "preferred, which is dead")
    talk.ask(2, elect("led", 0, kind=UNCLEAN), "unclean, with a leader")
    talk.ask(3, produce("led", "two", topic_id=topic_id, version=13), "written at a follower")
    again = produce("led", "one", producer=(producer_id, 0, 0))
    talk.ask(2, again, "sent again after the kill")
    talk.ask(2, produce("led", "two", producer=(producer_id, 0, 1)), "written at the next")
    talk.ask(
        2, fetch("led", topic_id=topic_id, version=18, leader_epoch=0), "in the old epoch", _read
    )
    talk.ask(2, epoch_end("led", 0, leader_epoch=1), "where the old epoch ends")
    talk.start(1)
    talk.wait_for_state("led", leader=2, isr=[1, 2, 3])
    _show(talk, "led", "after the restart")
    talk.ask(1, produce("led", "three", topic_id=topic_id, version=13), "where it led")
    talk.ask(3, elect("led", 0), "preferred")
    talk.wait_for_state("led", leader=1, isr=[1, 2, 3])
    talk.wait_for_log("led", 0, 1)
    talk.ask(3, elect("led", 0), "preferred, again")
    _show(talk, "led", "after the election")
    talk.wait_for_followers("led", 0, 2)
    talk.ask(1, fetch("led", topic_id=topic_id, version=18), "all", _read)


def a_replica_out_of_sync_does_not_lead(talk: ClusterTalk) -> None:
    talk.create_topic("chosen", [2, 1, 3])
    talk.kill(1)
    talk.wait_for_state("chosen", leader=2, isr=[2, 3])
    _show(talk, "chosen", "a follower was killed")
    talk.kill(2)
    talk.wait_for_state("chosen", leader=3, isr=[3])
    _show(talk, "chosen", "the leader was killed, too")
    talk.start(1)
    talk.wait_for_state("chosen", leader=3, isr=[1, 3])
    _show(talk, "chosen", "the follower is back")
    talk.start(2)
    talk.wait_for_state("chosen", leader=3, isr=[1, 2, 3])
    _show(talk, "chosen", "both are back")
    talk.ask(1, elect(None), "of all partitions", lambda answer: answer.error_code)
    talk.wait_for_state("chosen", leader=2, isr=[1, 2, 3])
    _show(talk, "chosen", "elected")


def nobody_leads_when_all_replicas_are_dead(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("lonely", [2])
    talk.create_topic("paired", [2, 3])
    talk.ask(2, produce("lonely", "one"), "written")
    talk.ask(2, produce("paired", "one"), "written")
    talk.kill(2)
    talk.wait_for_state("lonely", leader=-1)
    talk.wait_for_state("paired", leader=3, isr=[3])
    talk.wait_for_log("paired", 0, 3)
    for name in ("lonely", "paired"):
        _show(talk, name, "one is dead")
    talk.ask(3, produce("paired", "two"), "written at the last replica")
    talk.kill(3)
    talk.wait_for_state("paired", leader=-1)
    for name in ("lonely", "paired"):
        _show(talk, name, "both are dead")
    talk.ask(1, metadata("lonely", version=9), "both are dead")
    for version in (12, 13):
        asked = produce("lonely", "two", topic_id=topic_id, version=version)
        talk.ask(1, asked, "without a leader")
    for version in (12, 13, 18):
        talk.ask(1, fetch("lonely", topic_id=topic_id, version=version), "without a leader", _read)
    talk.ask(1, list_offsets("lonely", LATEST), "without a leader")
    talk.ask(1, epoch_end("lonely", 0), "without a leader")
    talk.ask(1, delete_records("lonely", 1), "without a leader")
    talk.ask(1, elect("paired", 0), "preferred")
    talk.ask(1, elect("paired", 0, kind=UNCLEAN), "unclean, none alive")
    talk.ask(1, describe_cluster(fenced=True), "both are dead")
    talk.start(2)
    talk.wait_for_state("lonely", leader=2)
    for name in ("lonely", "paired"):
        _show(talk, name, "one is back, which was out of sync")
    talk.ask(1, elect("paired", 0), "preferred, out of sync")
    talk.start(3)
    talk.wait_for_state("paired", leader=3, isr=[2, 3])
    _show(talk, "paired", "both are back")
    talk.ask(3, list_offsets("paired", LATEST), "both are back")


def an_unclean_leader_loses_records(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("unclean", [2, 3])
    talk.ask(2, produce("unclean", "one"), "written at both")
    talk.wait_for_followers("unclean", 0, 1)
    talk.kill(2)
    talk.wait_for_state("unclean", leader=3, isr=[3])
    talk.wait_for_log("unclean", 0, 3)
    talk.ask(3, produce("unclean", "two", "three"), "written at one")
    talk.kill(3)
    talk.wait_for_state("unclean", leader=-1)
    talk.start(2)
    _show(talk, "unclean", "before")
    talk.ask(1, elect("unclean", 0, kind=UNCLEAN), "unclean")
    talk.wait_for_state("unclean", leader=2)
    talk.wait_for_log("unclean", 0, 2)
    _show(talk, "unclean", "after")
    talk.ask(2, list_offsets("unclean", LATEST), "after")
    talk.ask(2, produce("unclean", "four"), "after")
    for epoch in range(4):
        talk.ask(2, epoch_end("unclean", epoch), f"the end of epoch {epoch}")
    asked = fetch("unclean", 3, topic_id=topic_id, version=18, last_epoch=1)
    talk.ask(2, asked, "a reader who has read what is lost", lambda answer: answer.responses)
    talk.start(3)
    talk.wait_for_state("unclean", leader=2, isr=[2, 3])
    _show(talk, "unclean", "both are back")


def a_controlled_shutdown_moves_leaders_before(talk: ClusterTalk) -> None:
    talk.create_topic("moved", [1, 2, 3])
    talk.create_topic("alone", [1])
    talk.ask(1, produce("moved", "one"), "written")
    talk.stop(1)
    talk.wait_for_state("moved", leader=2, isr=[2, 3])
    talk.wait_for_state("alone", leader=-1)
    for name in ("moved", "alone"):
        _show(talk, name, "after the stop")
    talk.ask(2, describe_cluster(fenced=True), "after the stop")
    talk.start(1)
    talk.wait_for_state("moved", leader=2, isr=[1, 2, 3])
    talk.wait_for_state("alone", leader=1)
    for name in ("moved", "alone"):
        _show(talk, name, "after the start")


def a_follower_comes_and_goes(talk: ClusterTalk) -> None:
    talk.create_topic("followed", [1, 2, 3])
    talk.ask(1, produce("followed", "one"), "written")
    talk.kill(2)
    talk.wait_for_state("followed", leader=1, isr=[1, 3])
    _show(talk, "followed", "killed")
    talk.ask(1, produce("followed", "two"), "written without it")
    talk.start(2)
    talk.wait_for_state("followed", leader=1, isr=[1, 2, 3])
    _show(talk, "followed", "back")
    talk.stop(2)
    talk.wait_for_state("followed", leader=1, isr=[1, 3])
    _show(talk, "followed", "stopped")
    talk.start(2)
    talk.wait_for_state("followed", leader=1, isr=[1, 2, 3])
    _show(talk, "followed", "back again")
    talk.ask(1, produce("followed", "three"), "written in the same epoch")
    talk.ask(1, list_offsets("followed", LATEST))


def writes_need_enough_replicas(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("enough", [1, 2], min_insync_replicas="2")
    producer_id = talk.producer_id()
    talk.ask(1, produce("enough", "one", producer=(producer_id, 0, 0)), "both alive")
    talk.kill(2)
    talk.wait_for_state("enough", leader=1, isr=[1])
    _show(talk, "enough", "one alive")
    for version in (9, 12, 13):
        talk.ask(1, produce("enough", "two", topic_id=topic_id, version=version), "one alive")
    asked = produce("enough", "two", producer=(producer_id, 0, 1))
    talk.ask(1, asked, "one alive, idempotent")
    talk.ask(1, produce("enough", "two", acks=1), "one alive, acks 1")
    talk.ask(1, list_offsets("enough", LATEST), "one alive")
    talk.ask(1, fetch("enough", topic_id=topic_id, version=18), "one alive", _read)
    talk.start(2)
    talk.wait_for_state("enough", leader=1, isr=[1, 2])
    talk.wait_for_followers("enough", 0, 2)
    _show(talk, "enough", "both alive again")
    talk.ask(1, asked, "both alive, sent again")
    talk.ask(1, list_offsets("enough", LATEST), "both alive")


def the_last_eligible_replica_leads_again(talk: ClusterTalk) -> None:
    """Below min.insync.replicas, a lost replica is eligible (KIP-966) until it has been restarted.

    Kafka takes a node that was killed for one that may have lost records.
    """
    talk.create_topic("eligible", [1, 2], min_insync_replicas="2")
    talk.ask(1, produce("eligible", "one"), "both alive")
    talk.kill(1)
    talk.wait_for_state("eligible", leader=2, isr=[2])
    _show(talk, "eligible", "the leader was killed")
    talk.kill(2)
    talk.wait_for_state("eligible", leader=-1)
    _show(talk, "eligible", "both were killed")
    talk.start(1)
    talk.ask(1, elect("eligible", 0), "preferred, the first is back")
    _show(talk, "eligible", "the first is back")
    talk.start(2)
    talk.wait_for_state("eligible", leader=2, isr=[1, 2])
    _show(talk, "eligible", "both are back")


def a_paused_leader_is_replaced(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("paused", [2, 3])
    talk.ask(2, produce("paused", "one"), "written")
    talk.pause(2)
    talk.wait_for_state("paused", leader=3, isr=[3])
    talk.wait_for_log("paused", 0, 3)
    _show(talk, "paused", "while it is paused")
    talk.ask(3, produce("paused", "two"), "written at the next")
    talk.resume(2)
    talk.wait_for_state("paused", leader=3, isr=[2, 3])
    _show(talk, "paused", "it goes on")
    talk.ask(2, produce("paused", "x", topic_id=topic_id, version=13), "where it led")
    talk.ask(3, list_offsets("paused", LATEST), "all")


def a_late_follower_delays_writes(talk: ClusterTalk) -> None:
    """acks=all waits for a paused follower until it is out of sync; acks=1 does not."""
    topic_id = talk.create_topic("late", [1, 3])
    talk.ask(1, produce("late", "one"), "both")
    talk.cluster.node(3).pause()
    try:
        talk.ask(1, produce("late", "two", timeout_ms=300), "paused, acks all")
        talk.ask(1, produce("late", "three", acks=1), "paused, acks 1")
        talk.ask(1, list_offsets("late", LATEST), "paused")
        talk.ask(1, fetch("late", topic_id=topic_id, version=18), "paused", _read)
    finally:
        talk.cluster.node(3).resume()
    talk.wait_for_state("late", leader=1, isr=[1, 3])
    wait_until(
        lambda: talk.silently(1, list_offsets("late", LATEST)).topics[0].partitions[0].offset == 3
    )
    talk.ask(1, list_offsets("late", LATEST), "it goes on")


def topics_are_made_while_a_node_is_dead(talk: ClusterTalk) -> None:
    talk.kill(3)
    talk.ask(1, create_topic("three-of-two", 1, 3), "three replicas", _made)
    talk.ask(1, create_topic("two-of-two", 1, 2), "two replicas", _made)
    by_hand = create_topic("hand-of-two", -1, -1, replicas={0: [3, 1], 1: [1, 3]})
    talk.ask(1, by_hand, "by hand", _made)
    alone = create_topic("hand-of-dead", -1, -1, replicas={0: [3]})
    talk.ask(1, alone, "by hand, only the dead one", _made)
    talk.wait_for_state("hand-of-two", 0, leader=1)
    _show(talk, "hand-of-two", "made")
    talk.ask_each(metadata("hand-of-dead"), "made", change=_topic)
    talk.start(3)
    talk.wait_for_state("hand-of-two", 0, leader=1, isr=[1, 3])
    _show(talk, "hand-of-two", "after the start")


def _made(answer: Any) -> Any:
    return [(one.error_code, one.num_partitions, one.replication_factor) for one in answer.topics]


def transactions_need_enough_replicas(talk: ClusterTalk) -> None:
    """__transaction_state has min.insync.replicas=2, and one replica is left."""
    name = "tx-enough"
    talk.create_topic("transacted-1", [1, 2])
    talk.place_coordinator(name, [1, 2, 3], TRANSACTION)
    wait_until(lambda: talk.silently(1, start(name)).error_code == ErrorCode.NONE)
    answer = talk.ask(1, start(name), "three replicas")
    producer = (answer.producer_id, answer.producer_epoch)
    talk.ask(1, write(name, producer, "transacted-1", 0), "three replicas")
    talk.kill(2)
    talk.kill(3)
    talk.wait_for_state("transacted-1", leader=1, isr=[1])
    partition = talk.partition_of(name, TRANSACTIONS_TOPIC)
    talk.wait_for_state(TRANSACTIONS_TOPIC, partition, leader=1, isr=[1])
    talk.ask(1, end(name, producer), "one replica")
    talk.ask(1, start(name), "one replica")
    talk.ask(1, find(name, kind=TRANSACTION), "one replica")
    talk.start(2)
    talk.start(3)
    talk.wait_for_state(TRANSACTIONS_TOPIC, partition, leader=1, isr=[1, 2, 3])
