"""Reassignments of replicas, done and undone."""

from typing import Any

from tests.conformance.cluster.asked import (
    describe_topic_partitions,
    fetch,
    produce,
    reassign,
    reassignments,
)
from tests.conformance.cluster.talk import ClusterTalk
from tests.support.waiting import wait_for


def replicas_move_to_other_nodes(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("reassigned", [1, 2])
    talk.ask(1, produce("reassigned", "one", "two"), "written")
    talk.ask_each(reassignments(None), "nothing goes on", change=lambda answer: answer.error_code)
    for title, replicas in (
        ("the other two", [2, 3]),
        ("all", [3, 1, 2]),
        ("another order", [1, 2, 3]),
        ("one", [3]),
    ):
        talk.ask(2, reassign("reassigned", replicas), title)
        talk.wait_until_reassigned("reassigned", replicas)
        talk.show("reassigned", title)
        leader = talk.partition(1, "reassigned").leader_id
        talk.wait_for_log("reassigned", 0, leader)
        talk.ask(leader, produce("reassigned", "more"), f"written after {title}")
    for node in (1, 2, 3):
        talk.ask(
            node,
            fetch("reassigned", topic_id=topic_id, version=18),
            "after all",
            lambda answer: [
                (one.error_code, one.high_watermark, one.current_leader)
                for topic in answer.responses
                for one in topic.partitions
            ],
        )


def what_cannot_be_reassigned(talk: ClusterTalk) -> None:
    talk.create_topic("stays", [1, 2])
    talk.ask(1, reassign("nowhere", [1, 2]), "no such topic")
    talk.ask(1, reassign("stays", [1, 2], partition=7), "no such partition")
    talk.ask(1, reassign("stays", []), "no replicas")
    talk.ask(1, reassign("stays", [1, 1]), "twice the same")
    talk.ask(1, reassign("stays", [1, 9]), "unknown node")
    talk.ask(1, reassign("stays", [1, -1]), "negative node")
    talk.ask(1, reassign("stays", None), "nothing to cancel")
    talk.ask(1, reassign("stays", [1], may_grow=False), "factor must stay")
    talk.ask(1, reassign("stays", [2, 3], may_grow=False), "factor stays")
    talk.wait_until_reassigned("stays", [2, 3])
    talk.ask(1, reassign("stays", [2, 3]), "as it is")
    talk.show("stays", "as it is")


def a_reassignment_waits_for_a_dead_node(talk: ClusterTalk) -> None:
    talk.create_topic("waits", [1, 2])
    talk.kill(3)
    talk.ask(1, reassign("waits", [1, 3]), "to a dead node")
    wait_for(lambda: [_replicas(talk, node, "waits") for node in (1, 2)], [[1, 2, 3]] * 2)
    talk.show("waits", "under way")
    talk.ask(1, describe_topic_partitions("waits"), "under way", lambda answer: answer.topics)
    talk.ask_each(reassignments(None), "under way", change=_of_waits)
    talk.ask_each(reassignments("waits", 0, 7), "under way")
    talk.ask_each(reassignments("nowhere", 0), "under way")
    talk.ask(2, reassign("waits", None), "cancelled")
    talk.wait_until_reassigned("waits", [1, 2])
    talk.show("waits", "cancelled")
    talk.ask(1, reassign("waits", [3, 1]), "to a dead node")
    talk.ask(1, reassignments("waits", 0), "under way again")
    talk.show("waits", "under way again")
    talk.start(3)
    talk.wait_until_reassigned("waits", [3, 1])
    talk.show("waits", "after the start")
    talk.ask(1, reassignments("waits", 0), "after the start")


def _of_waits(answer: Any) -> Any:
    return [answer.error_code, [one for one in answer.topics if one.name == "waits"]]


def _replicas(talk: ClusterTalk, node: int, name: str) -> list[int]:
    return sorted(talk.partition(node, name).replica_nodes)
