"""Requests for records at nodes that lead a partition, follow it, or have no replica of it."""

from typing import Any

from msgspec.structs import replace

from tests.conformance.cluster.asked import (
    delete_records,
    describe_producers,
    epoch_end,
    fetch,
    list_offsets,
    produce,
)
from tests.conformance.cluster.talk import ClusterTalk

LEADER, FOLLOWER, OTHER = 2, 3, 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LAST_TIERED = -1, -2, -3, -4, -5


def records_are_written_at_the_leader_only(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("written", [LEADER, FOLLOWER])
    for node in (LEADER, FOLLOWER, OTHER):
        for version in (3, 9, 10, 12, 13):
            asked = produce("written", "value", topic_id=topic_id, version=version)
            talk.ask(node, asked, "acks all")
        talk.ask(node, produce("written", "value", acks=1), "acks 1")
        talk.tell(node, produce("written", "value", acks=0), "acks 0")
        talk.ask(node, produce("written", "value", acks=2), "acks 2")
        unknown = produce("written", "value", topic_id=bytes(15) + b"\7", version=13)
        talk.ask(node, unknown, "unknown topic id")
        talk.ask(node, produce("written", "value", partition=1), "unknown partition")
    talk.ask(LEADER, list_offsets("written", LATEST), "after all")


def records_are_read_at_replicas(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("read", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("read", "one", "two"), "written")
    talk.wait_for_followers("read", 0, 2)
    for node in (LEADER, FOLLOWER, OTHER):
        for version in (4, 9, 11, 12, 13, 16, 18):
            talk.ask(node, fetch("read", topic_id=topic_id, version=version), "read")
        for version in (12, 18):
            for epoch in (0, 1):
                asked = fetch("read", topic_id=topic_id, version=version, leader_epoch=epoch)
                talk.ask(node, asked, f"read in epoch {epoch}")
        talk.ask(node, fetch("read", 2, topic_id=topic_id, version=18), "at the end")
        talk.ask(node, fetch("read", 3, topic_id=topic_id, version=18), "after the end")
        talk.ask(node, fetch("read", topic_id=bytes(15) + b"\7", version=18), "unknown id")


def sessions_belong_to_their_node(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("session", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("session", "one"), "written")
    start = fetch("session", topic_id=topic_id, version=18, session=(0, 0))
    session = talk.ask(LEADER, start, "a session starts").session_id
    for node in (FOLLOWER, OTHER, LEADER):
        asked = fetch("session", version=18, session=(session, 1), empty=True)
        talk.ask(node, asked, "it goes on")
    talk.cluster.move_leader("session", 0, FOLLOWER)
    talk.wait_for_log("session", 0, FOLLOWER)
    talk.wait_for_followers("session", 0, 1)
    talk.ask(
        LEADER,
        fetch("session", version=18, session=(session, 2), empty=True),
        "after the leader has moved",
    )
    talk.ask(
        LEADER,
        fetch("session", version=18, session=(session, 3), empty=True),
        "once more",
    )
    for version in (10, 11):
        asked = fetch("session", version=version, session=(0, 0))
        talk.ask(LEADER, asked, "another session starts there")


def positions_are_known_at_the_leader_only(talk: ClusterTalk) -> None:
    talk.create_topic("positions", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("positions", "one", "two", "three"), "written")
    talk.wait_for_followers("positions", 0, 3)
    for node in (LEADER, FOLLOWER, OTHER):
        for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LAST_TIERED, 0):
            talk.ask(node, list_offsets("positions", timestamp), f"timestamp {timestamp}")
        talk.ask(node, list_offsets("positions", LATEST, version=1), "latest")
        for epoch in (0, 1):
            talk.ask(node, list_offsets("positions", LATEST, leader_epoch=epoch), f"epoch {epoch}")
            talk.ask(node, epoch_end("positions", 0, leader_epoch=epoch), f"epoch {epoch}")
        talk.ask(node, epoch_end("positions", 0), "any epoch")
        talk.ask(node, describe_producers("positions"))
        talk.ask(node, delete_records("positions", 1))
        talk.ask(node, delete_records("positions", 9), "too far")
    talk.ask(LEADER, list_offsets("positions", EARLIEST), "after all")


def epochs_rise_with_each_leader(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("epochs", [2, 3])
    talk.ask(2, produce("epochs", "one", "two"), "written")
    for epoch, (old, new) in enumerate(((2, 3), (3, 2), (2, 3)), 1):
        talk.cluster.move_leader("epochs", 0, new)
        talk.wait_for_state("epochs", leader=new, isr=[2, 3])
        talk.wait_for_log("epochs", 0, new)
        talk.show("epochs", f"epoch {epoch}")
        for version in (9, 12, 13):
            asked = produce("epochs", "more", topic_id=topic_id, version=version)
            talk.ask(old, asked, f"epoch {epoch}, where it led")
        talk.ask(old, fetch("epochs", topic_id=topic_id, version=18), "where it led")
        talk.ask(new, produce("epochs", "three"), f"epoch {epoch}, where it leads")
        for asked_epoch in range(epoch - 1, epoch + 2):
            title = f"epoch {epoch} asked as {asked_epoch}"
            talk.ask(
                new,
                fetch("epochs", topic_id=topic_id, version=18, leader_epoch=asked_epoch),
                title,
                lambda answer: answer.responses[0].partitions[0].error_code,
            )
            talk.ask(new, list_offsets("epochs", LATEST, leader_epoch=asked_epoch), title)
            talk.ask(new, epoch_end("epochs", 0, leader_epoch=asked_epoch), title)
    for epoch in range(5):
        talk.ask(3, epoch_end("epochs", epoch, leader_epoch=3), f"the end of epoch {epoch}")
        talk.ask(
            3,
            fetch("epochs", 4, topic_id=topic_id, version=18, last_epoch=epoch),
            f"read on after epoch {epoch}",
        )
    for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP):
        talk.ask(3, list_offsets("epochs", timestamp), f"timestamp {timestamp}")


def sequences_go_on_at_the_next_leader(talk: ClusterTalk) -> None:
    talk.create_topic("sequences", [2, 3])
    producer_id = talk.producer_id()
    for node, sequence in ((2, 0), (2, 1)):
        asked = produce("sequences", "value", producer=(producer_id, 0, sequence))
        talk.ask(node, asked, f"sequence {sequence}")
    talk.cluster.move_leader("sequences", 0, 3)
    talk.wait_for_log("sequences", 0, 3)
    for node, sequence in ((2, 2), (3, 1), (3, 0), (3, 3), (3, 2), (3, 3)):
        asked = produce("sequences", "value", producer=(producer_id, 0, sequence))
        talk.ask(node, asked, f"sequence {sequence}, moved")
    talk.ask(3, describe_producers("sequences"), change=_without_times)


def _without_times(answer: Any) -> Any:
    (topic,) = answer.topics
    (partition,) = topic.partitions
    return [replace(one, last_timestamp=-1) for one in partition.active_producers]
