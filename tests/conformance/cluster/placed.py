"""Where replicas are placed: by number, by hand, and refusals."""

from typing import Any

from msgspec.structs import replace

from tests.conformance.cluster.asked import create_partitions, create_topic
from tests.conformance.cluster.talk import ClusterTalk, metadata
from tests.support.waiting import wait_until


def replicas_are_placed_by_number(talk: ClusterTalk) -> None:
    for factor in (1, 2, 3, 4, -1, 0, -2):
        name = f"factor{factor}"
        talk.ask(1, create_topic(name, 6, factor), f"factor {factor}", _created)
    talk.ask(2, create_topic("twice", 3, 2), "at another node", _created)
    talk.ask(3, create_topic("twice", 3, 2), "again", _created)
    talk.ask(3, create_topic("only-checked", 3, 4, validate_only=True), "checked", _created)
    for name in ("factor1", "factor2", "factor3", "factor-1"):
        talk.note(f"how {name} is spread", _spread(talk, name))


def _created(answer: Any) -> Any:
    return [replace(topic, configs=[]) for topic in answer.topics]


def _spread(talk: ClusterTalk, name: str) -> Any:
    """How many leaders and replicas each node has, sorted: where Kafka begins is random."""

    def whole() -> bool:
        (topic,) = talk.silently(1, metadata(name)).topics
        return topic.error_code == 0 and all(one.leader_id > 0 for one in topic.partitions)

    wait_until(whole)
    (topic,) = talk.silently(1, metadata(name)).topics
    nodes = (1, 2, 3)
    replicas = [one.replica_nodes for one in topic.partitions]
    return {
        "leaders": sorted(sum(one[0] == node for one in replicas) for node in nodes),
        "replicas": sorted(sum(node in one for one in replicas) for node in nodes),
        "leads first": all(one.leader_id == one.replica_nodes[0] for one in topic.partitions),
        "isr": all(one.isr_nodes == one.replica_nodes for one in topic.partitions),
        "epochs": sorted({one.leader_epoch for one in topic.partitions}),
    }


def replicas_are_placed_by_hand(talk: ClusterTalk) -> None:
    cases: dict[str, dict[int, list[int]]] = {
        "by hand": {0: [3, 1], 1: [1, 2], 2: [2, 3]},
        "twice the same": {0: [1, 1]},
        "unknown": {0: [1, 9]},
        "uneven": {0: [1, 2], 1: [3]},
        "empty": {0: []},
        "a gap": {0: [1], 2: [2]},
        "negative": {0: [-1]},
    }
    for title, replicas in cases.items():
        name = title.replace(" ", "-")
        talk.ask(2, create_topic(name, -1, -1, replicas=replicas), title, _created)
    talk.ask(2, create_topic("both", 1, 2, replicas={0: [1, 2]}), "with a number", _created)
    for index, leader in enumerate((3, 1, 2)):
        talk.wait_for_state("by-hand", index, leader=leader)
    talk.show("by-hand")


def partitions_are_placed_by_hand(talk: ClusterTalk) -> None:
    talk.create_topic("grown", [1, 2])
    talk.ask(3, create_partitions("grown", 2, [2]), "fewer replicas")
    talk.ask(3, create_partitions("grown", 2, [2, 3, 1]), "more replicas")
    talk.ask(3, create_partitions("grown", 2, [2, 9]), "unknown")
    talk.ask(3, create_partitions("grown", 2, [2, 2]), "twice the same")
    talk.ask(3, create_partitions("grown", 3, [2, 3]), "too few assignments")
    talk.ask(3, create_partitions("grown", 3, [2, 3], [3, 1]), "by hand")
    talk.wait_for_state("grown", 1, leader=2)
    talk.wait_for_state("grown", 2, leader=3)
    talk.show("grown")
    talk.ask(2, create_partitions("grown", 5), "by number")
    talk.wait_for_partitions("grown", 5)
    (topic,) = talk.silently(2, metadata("grown")).topics
    by_number = [one.replica_nodes for one in topic.partitions if one.partition_index > 2]
    talk.note("replicas of those by number", [len(set(each)) for each in by_number])
