"""The nodes and their topics, described by each node."""

from typing import Any

from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from tests.conformance.cluster.asked import (
    describe_cluster,
    describe_config,
    describe_log_dirs,
    describe_topic_partitions,
    elect,
    produce,
)
from tests.conformance.cluster.talk import ClusterTalk, metadata
from tests.support.requests import build

TOPIC_CONFIG, BROKER_CONFIG = 2, 4


def every_node_describes_the_cluster(talk: ClusterTalk) -> None:
    talk.create_topic("spread", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    talk.create_topic("single", [3], [1])
    talk.ask_each(metadata("spread"))
    talk.ask_each(metadata("single"))
    talk.ask_each(metadata("spread", version=12))
    talk.ask_each(metadata("nowhere"))
    talk.ask_each(describe_topic_partitions("spread", "nowhere"))
    talk.ask_each(describe_cluster())
    talk.ask_each(describe_cluster(fenced=True), "with fenced brokers")
    talk.ask_each(describe_cluster(endpoint_type=2), "controllers")


def a_node_describes_its_own_logs_and_settings(talk: ClusterTalk) -> None:
    talk.create_topic("logs", [1, 2], [2, 3])
    for node, partition in ((1, 0), (2, 1)):
        talk.ask(node, produce("logs", "value", partition=partition), "written")
    for partition in (0, 1):
        talk.wait_for_followers("logs", partition, 1)
    talk.ask_each(describe_log_dirs("logs", 0, 1, 7))
    for name in ("1", "2", "3", "9", "word", ""):
        talk.ask_each(describe_config(BROKER_CONFIG, name, "node.id"), f"broker '{name}'")
    talk.ask_each(describe_config(TOPIC_CONFIG, "logs", "min.insync.replicas"))


def quorum_of_a_controller_apart(talk: ClusterTalk) -> None:
    """What is there of it: offsets, epochs and times differ from run to run."""
    wish = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    talk.ask_each((build(DescribeQuorumRequest, 2, topics=[wish]), 2), change=_voters)
    wish = {"topic_name": "other", "partitions": [{"partition_index": 0}]}
    talk.ask_each((build(DescribeQuorumRequest, 2, topics=[wish]), 2), "another topic")


def _voters(answer: Any) -> Any:
    (topic,) = answer.topics
    (partition,) = topic.partitions
    return {
        "error_code": [answer.error_code, partition.error_code],
        "leader": "a voter"
        if partition.leader_id in {one.replica_id for one in partition.current_voters}
        else partition.leader_id,
        "voters": sorted(one.replica_id for one in partition.current_voters),
        "observers": sorted(one.replica_id for one in partition.observers),
        "nodes": [
            {"node_id": node.node_id, "listeners": [one.name for one in node.listeners]}
            for node in answer.nodes
        ],
    }


def elections_that_nothing_needs(talk: ClusterTalk) -> None:
    talk.create_topic("elected", [1, 2], [3, 1])
    talk.ask_each(elect("elected", 0, 1), "preferred")
    talk.ask_each(elect("elected", 0, kind=1), "unclean")
    talk.ask(2, elect("elected", 7), "no such partition")
    talk.ask(2, elect("nowhere", 0), "no such topic")
    talk.ask(2, elect("elected", 0, kind=5), "no such type")
