"""A talk with the three nodes of a cluster: raw requests to any of them, and one transcript."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponsePartition
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.schema import Message
from tests.conformance.conversation import (
    CLOSED,
    WAITS_AFTER_SECONDS,
    Conversation,
    response_of,
)
from tests.conformance.transcript import Transcript
from tests.support.clusters import NODE_IDS, Cluster
from tests.support.requests import build
from tests.support.waiting import wait_for, wait_until
from tests.support.wire import ConnectionEndedError, WireClient

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
GROUP, TRANSACTION = 0, 1  # kinds of keys in FindCoordinator
Asked = tuple[Message, int]


class ClusterTranscript(Transcript):
    """Names the ports of the nodes. The controller is any node that Metadata may name."""

    def __init__(self, ports: dict[int, int]) -> None:
        super().__init__(-1)
        self._ports = ports

    def _plain_field(self, name: str, value: Any) -> Any:
        if name == "port" and value in self._ports:
            return f"port of {self._ports[value]}"
        if name == "controller_id" and value != -1:
            return "a node"
        return super()._plain_field(name, value)


class ClusterTalk:
    """Asks nodes by their id. What they answer is written down in one transcript."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.transcript = ClusterTranscript({node.port: node.id for node in cluster.nodes})
        self.running = set(NODE_IDS)
        self._conversations: dict[int, Conversation] = {}

    def close(self) -> None:
        """End all connections."""
        for each in self._conversations.values():
            each.close()

    def _at(self, node: int) -> Conversation:
        if node not in self._conversations:
            one = Conversation(self.cluster.node(node).port, {})
            one.transcript = self.transcript
            self._conversations[node] = one
        return self._conversations[node]

    # -- what nodes are asked ---------------------------------------------------------------------

    def ask(
        self,
        node: int,
        asked: Asked,
        title: str = "",
        change: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Ask a node, write its answer down under the title, and return it."""
        request, version = asked
        name = type(request).__name__.removesuffix("Request")
        return self._at(node).ask(
            request,
            version,
            change,
            title=f"{title + ': ' if title else ''}{name} v{version} at {node}",
        )

    def ask_each(
        self,
        asked: Asked,
        title: str = "",
        *,
        nodes: Iterable[int] | None = None,
        change: Callable[[Any], Any] | None = None,
    ) -> None:
        """The same at every running node, or at these."""
        for node in sorted(self.running) if nodes is None else nodes:
            self.ask(node, asked, title, change)

    def tell(self, node: int, asked: Asked, title: str) -> None:
        """Send a request without an answer; write down whether the connection stays open."""
        request, version = asked
        one = self._at(node)
        one.client.send(one.client.frame_of(request, version))
        try:
            self.silently(node, metadata())
            self.transcript.write(f"{title}: at {node}", "still open")
        except (ConnectionEndedError, ConnectionResetError, BrokenPipeError):
            one.close()
            self.transcript.write(f"{title}: at {node}", CLOSED)

    def ask_while(self, node: int, asked: Asked, act: Callable[[], None], title: str) -> None:
        """Send a request that waits, act, and write down the answer that comes then."""
        request, version = asked
        name = type(request).__name__.removesuffix("Request")
        with WireClient(self.cluster.node(node).port, client_id="talk") as client:
            client.send(client.frame_of(request, version))
            time.sleep(WAITS_AFTER_SECONDS)
            act()
            try:
                answer: Any = client.read_answer(response_of(type(request)), version)
            except (ConnectionEndedError, ConnectionResetError):
                answer = CLOSED
        self.transcript.write(f"{title}: {name} v{version} at {node}", answer)

    def silently(self, node: int, asked: Asked) -> Any:
        """Ask without a note."""
        return self._at(node).silently(*asked)

    def note(self, title: str, value: Any) -> None:
        """Write down something that was found."""
        self.transcript.write(title, value)

    # -- what happens to nodes --------------------------------------------------------------------

    def lost(self, node: int) -> None:
        """A node was ended by somebody else; it is not asked until it is started."""
        self.running.discard(node)
        self._at(node).close()

    def address_of_running(self) -> str:
        """The address of a node that runs."""
        return self.cluster.node(min(self.running)).address

    def kill(self, node: int) -> None:
        """End a node at once, and wait until the others list it no more."""
        self.cluster.node(node).kill()  # before its connections are closed: members stay
        self.lost(node)
        self._wait_for_nodes()
        self.note(f"killed {node}", sorted(self.running))

    def stop(self, node: int) -> None:
        """The same, with a controlled shutdown."""
        self.cluster.node(node).stop()
        self.lost(node)
        self._wait_for_nodes()
        self.note(f"stopped {node}", sorted(self.running))

    def start(self, node: int) -> None:
        """Start a node, and wait until every running node lists it."""
        self.running.add(node)
        self.cluster.node(node).start()
        self._wait_for_nodes()
        self.note(f"started {node}", sorted(self.running))

    def pause(self, node: int) -> None:
        """Stop a node's answers, and wait until the others list it no more."""
        self.running.discard(node)
        self.cluster.node(node).pause()
        self._wait_for_nodes()
        self.note(f"paused {node}", sorted(self.running))

    def resume(self, node: int) -> None:
        """Let it go on, and wait until every running node lists it."""
        self.running.add(node)
        self.cluster.node(node).resume()
        self._wait_for_nodes()
        self.note(f"resumed {node}", sorted(self.running))

    def start_all(self) -> None:
        """After a script: all nodes run, and their replicas are in sync."""
        for node in set(NODE_IDS) - self.running:
            self.start(node)

    def _wait_for_nodes(self) -> None:
        def listed() -> list[list[int]]:
            answers = [self.silently(node, metadata()) for node in sorted(self.running)]
            return [sorted(one.node_id for one in answer.brokers) for answer in answers]

        wait_for(listed, [sorted(self.running)] * len(self.running))

    # -- topics -----------------------------------------------------------------------------------

    def create_topic(self, name: str, *assignments: Sequence[int], **configs: str) -> bytes:
        """A topic with these replicas for its partitions, which every node knows; its id.

        Dots in config keys are written as underscores.
        """
        wish = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [
                {"partition_index": index, "broker_ids": list(replicas)}
                for index, replicas in enumerate(assignments)
            ],
            "configs": [
                {"name": key.replace("_", "."), "value": value} for key, value in configs.items()
            ],
        }
        node = min(self.running)
        request = build(CreateTopicsRequest, 7, topics=[wish], timeout_ms=30_000)
        answer = self.silently(node, (request, 7))
        assert answer.topics[0].error_code == ErrorCode.NONE, answer
        for index, replicas in enumerate(assignments):
            self.wait_for_state(name, index, leader=replicas[0], isr=list(replicas))
            self.wait_for_log(name, index, replicas[0])
        topic_id: bytes = answer.topics[0].topic_id
        return topic_id

    def wait_for_log(self, name: str, index: int, leader: int) -> None:
        """Return when the leader serves the partition: it does so after Metadata names it."""
        at = {"partition_index": index, "timestamp": -1}
        request = build(
            ListOffsetsRequest, 5, replica_id=-1, topics=[{"name": name, "partitions": [at]}]
        )
        wait_until(
            lambda: self.silently(leader, (request, 5)).topics[0].partitions[0].error_code == 0
        )

    def wait_for_followers(self, name: str, index: int, end: int) -> None:
        """Return when consumers can read up to `end` at every replica that runs."""
        at = {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1}
        request = build(FetchRequest, 12, max_bytes=1, topics=[{"topic": name, "partitions": [at]}])
        partition = self.partition(min(self.running), name, index)
        assert partition is not None

        def reached(node: int) -> bool:
            found = self.silently(node, (request, 12)).responses[0].partitions[0]
            return bool(found.high_watermark >= end)

        for node in self.running & {*partition.replica_nodes}:
            wait_until(lambda node=node: reached(node))

    def wait_until_reassigned(self, name: str, replicas: Sequence[int]) -> None:
        """Return when every running node knows these replicas in this order, all in sync."""

        def state() -> Any:
            found = [self.partition(node, name) for node in sorted(self.running)]
            return [(one.replica_nodes, sorted(one.isr_nodes)) if one else None for one in found]

        wait_for(state, [([*replicas], sorted(replicas))] * len(self.running))

    def producer_id(self) -> int:
        """A producer id, of epoch 0."""
        request = build(
            InitProducerIdRequest, 4, transactional_id=None, transaction_timeout_ms=60_000
        )
        wait_until(lambda: self.silently(1, (request, 4)).error_code == ErrorCode.NONE)
        found: int = self.silently(1, (request, 4)).producer_id
        return found

    def wait_for_partitions(self, name: str, count: int) -> None:
        """Return when every running node knows so many partitions."""
        wait_for(
            lambda: [
                len(self.silently(node, metadata(name)).topics[0].partitions)
                for node in sorted(self.running)
            ],
            [count] * len(self.running),
        )

    def partition(self, node: int, name: str, index: int = 0) -> MetadataResponsePartition | None:
        """What Metadata of a node says of a partition, or None."""
        (topic,) = self.silently(node, metadata(name)).topics
        return next((one for one in topic.partitions if one.partition_index == index), None)

    def wait_for_state(
        self, name: str, index: int = 0, *, leader: int, isr: Sequence[int] | None = None
    ) -> None:
        """Return when every running node says so. The order of `isr` is not compared."""

        def state() -> Any:
            found = []
            for node in sorted(self.running):
                one = self.partition(node, name, index)
                isr_found = sorted(one.isr_nodes) if one and isr is not None else None
                found.append((one.leader_id, isr_found) if one else None)
            return found

        wanted = (leader, None if isr is None else sorted(isr))
        wait_for(state, [wanted] * len(self.running))

    def show(self, name: str, title: str = "") -> None:
        """Write down what every running node says of a topic."""
        self.ask_each(metadata(name), title, change=lambda answer: answer.topics)

    # -- coordinators -----------------------------------------------------------------------------

    def coordinate(self, key: str, node: int, kind: int = GROUP) -> None:
        """Make a node the coordinator of a group or a transactional id, and wait until it is."""
        topic = TRANSACTIONS_TOPIC if kind else OFFSETS_TOPIC
        wait_until(lambda: self._coordinator(node, key, kind) != -1)
        self.cluster.move_leader(topic, self.partition_of(key, topic), node)
        self.wait_for_coordinator(key, node, kind)

    def place_coordinator(self, key: str, replicas: Sequence[int], kind: int = GROUP) -> None:
        """The same for the first of three nodes; the next ones follow if it is lost, in order."""
        topic = TRANSACTIONS_TOPIC if kind else OFFSETS_TOPIC
        wait_until(lambda: self._coordinator(replicas[0], key, kind) != -1)
        partition = self.partition_of(key, topic)
        self.cluster.reassign(topic, partition, replicas)
        self.cluster.move_leader(topic, partition, replicas[0])
        self.wait_for_coordinator(key, replicas[0], kind)

    def wait_for_coordinator(self, key: str, node: int, kind: int = GROUP) -> None:
        """Return when every node says that it is, and it is loaded."""
        wait_for(
            lambda: [self._coordinator(one, key, kind) for one in sorted(self.running)],
            [node] * len(self.running),
        )
        if kind == GROUP:
            # Not a Heartbeat: a coordinator that loads the group answers it without an error.
            ask = (build(OffsetFetchRequest, 6, group_id=key, topics=[]), 6)
        else:
            ask = (build(DescribeTransactionsRequest, 0, transactional_ids=[key]), 0)

        def error() -> int:
            answer = self.silently(node, ask)
            found: int = answer.transaction_states[0].error_code if kind else answer.error_code
            return found

        not_yet = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        wait_until(lambda: error() not in not_yet)

    def coordinator_of(self, group: str) -> int:
        """The coordinator of a group, as a running node says."""
        return self._coordinator(min(self.running), group, GROUP)

    def _coordinator(self, node: int, key: str, kind: int) -> int:
        request = build(FindCoordinatorRequest, 4, key_type=kind, coordinator_keys=[key])
        found: int = self.silently(node, (request, 4)).coordinators[0].node_id
        return found

    def partition_of(self, key: str, topic: str) -> int:
        """The partition of an internal topic that belongs to a group or transactional id."""

        def count() -> int:
            (found,) = self.silently(min(self.running), metadata(topic)).topics
            return len(found.partitions)

        wait_until(count)  # another node may have known it first
        return abs(java_hash(key)) % count()


def metadata(*topics: str, version: int = 13) -> Asked:
    """Metadata of these topics; of no topic without."""
    request = build(
        MetadataRequest,
        version,
        topics=[{"name": topic} for topic in topics],
        allow_auto_topic_creation=False,
    )
    return request, version


def java_hash(text: str) -> int:
    """String.hashCode of Java, for ASCII."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
