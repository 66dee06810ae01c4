"""Requests that wait at a node while leaders move or replicas are missing."""

import time

from tests.conformance.cluster.asked import fetch, produce
from tests.conformance.cluster.talk import ClusterTalk
from tests.support.waiting import wait_until

WAIT_MS = 20_000
SHORT_WAIT_MS = 3_000  # where Kafka waits to the end
EARLY_SECONDS = 15.0


def a_waiting_fetch_ends_when_the_leader_moves(talk: ClusterTalk) -> None:
    """Of the last version that cannot read from followers."""
    talk.create_topic("waiting", [2, 3])
    talk.ask(2, produce("waiting", "one"), "written")
    talk.wait_for_followers("waiting", 0, 1)
    asked = fetch("waiting", 1, version=10, max_wait_ms=WAIT_MS)
    began = time.monotonic()
    talk.ask_while(2, asked, lambda: talk.cluster.move_leader("waiting", 0, 3), "moved")
    talk.note("before its time", time.monotonic() - began < EARLY_SECONDS)


def a_waiting_fetch_goes_on_when_its_node_becomes_a_follower(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("waiting-on", [2, 3])
    talk.ask(2, produce("waiting-on", "one"), "written")
    talk.wait_for_followers("waiting-on", 0, 1)
    asked = fetch("waiting-on", 1, topic_id=topic_id, version=18, max_wait_ms=SHORT_WAIT_MS)
    talk.ask_while(2, asked, lambda: talk.cluster.move_leader("waiting-on", 0, 3), "moved")


def a_waiting_fetch_ends_when_its_replica_is_removed(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("removed", [2, 3])
    talk.ask(2, produce("removed", "one"), "written")
    talk.wait_for_followers("removed", 0, 1)
    asked = fetch("removed", 1, topic_id=topic_id, version=18, max_wait_ms=WAIT_MS)
    began = time.monotonic()
    talk.ask_while(2, asked, lambda: talk.cluster.reassign("removed", 0, [3, 1]), "removed")
    talk.note("before its time", time.monotonic() - began < EARLY_SECONDS)


def a_waiting_fetch_at_a_follower_gets_what_is_written(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("followed-by", [2, 3])
    talk.ask(2, produce("followed-by", "one"), "written")
    talk.wait_for_followers("followed-by", 0, 1)
    asked = fetch("followed-by", 1, topic_id=topic_id, version=18, max_wait_ms=WAIT_MS)
    two = produce("followed-by", "two")
    began = time.monotonic()
    talk.ask_while(3, asked, lambda: talk.silently(2, two), "written meanwhile")
    talk.note("before its time", time.monotonic() - began < EARLY_SECONDS)


def in_sync_sets_keep_or_lose_their_order(talk: ClusterTalk) -> None:
    talk.create_topic("order", [3, 1, 2])
    for title, node in (("a follower", 1), ("the leader", 3)):
        talk.kill(node)
        left = sorted({1, 2, 3} - {node})
        leader = 3 if node == 1 else 1
        talk.wait_for_state("order", leader=leader, isr=left)
        talk.show("order", f"{title} was killed")
        talk.start(node)
        talk.wait_for_state("order", leader=leader, isr=[1, 2, 3])
        talk.show("order", f"{title} is back")


def a_fetch_goes_on_after_a_leader_without_followers_is_back(talk: ClusterTalk) -> None:
    """A partition of one replica: its node is stopped and started."""
    topic_id = talk.create_topic("back", [2])
    talk.ask(2, produce("back", "one"), "written")
    talk.stop(2)
    talk.wait_for_state("back", leader=-1)
    talk.start(2)
    talk.wait_for_state("back", leader=2)
    talk.wait_for_log("back", 0, 2)
    read = fetch("back", topic_id=topic_id, version=18, leader_epoch=2)
    wait_until(lambda: talk.silently(2, read).responses[0].partitions[0].high_watermark == 1)
    talk.ask(2, read, "in the epoch after the next")
