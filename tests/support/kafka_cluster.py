"""Apache Kafka as a cluster of three brokers and a controller, each a JVM of its own.

The controller is apart, so that killing a broker, or two, never takes the majority of the quorum.
`combined` makes each of the three nodes a broker and a controller instead.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.broker_process import TEST_SETTINGS, ApacheKafkaProcess, free_ports
from tests.support.clusters import NODE_IDS
from tests.support.cut_proxy import CutProxy
from tests.support.requests import build
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

CONTROLLER_ID = 4
CLUSTER_SETTINGS = {
    **TEST_SETTINGS,
    # Of three replicas each, so that every coordinator survives a node.
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
    # A killed node is fenced after this time.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "controlled.shutdown.enable": "true",
    "auto.leader.rebalance.enable": "false",
}


class KafkaNode(ApacheKafkaProcess):
    """One node of the cluster."""

    def __init__(
        self, node_id: int, directory: Path, ports: tuple[int, int], overrides: Mapping[str, str]
    ) -> None:
        self.ports = ports
        super().__init__(directory, overrides)
        self.id = node_id
        self.port = ports[0]

    @property
    def address(self) -> str:
        """Host and port."""
        return self.bootstrap

    def start(self) -> "KafkaNode":
        """Start it, and wait until it answers."""
        super().start()
        return self

    def stop(self) -> None:
        """SIGTERM: a controlled shutdown."""
        if self.is_running:
            self.terminate()

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def _listeners(self) -> dict[str, str]:
        return {"log.dirs": str(self.data)}

    def _java(self) -> list[str]:
        return ["-Xmx512m" if each == "-Xmx1G" else each for each in super()._java()]


class ApacheKafkaCluster:
    """Three brokers; implements `tests.support.clusters.Cluster`."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        of_node: Mapping[int, Mapping[str, str]] | None = None,
        combined: bool = False,
    ) -> None:
        """`of_node`: settings of single nodes by id."""
        ids = NODE_IDS if combined else (*NODE_IDS, CONTROLLER_ID)
        found = iter(free_ports(2 * len(ids)))
        ports = {node: (next(found), next(found)) for node in ids}
        controllers = NODE_IDS if combined else (CONTROLLER_ID,)
        voters = ",".join(f"{one}@127.0.0.1:{ports[one][1]}" for one in controllers)

        def settings(node: int) -> dict[str, str]:
            roles = [
                *(["broker"] if node in NODE_IDS else []),
                *(["controller"] if node in controllers else []),
            ]
            listeners = {
                "broker": f"PLAINTEXT://127.0.0.1:{ports[node][0]}",
                "controller": f"CONTROLLER://127.0.0.1:{ports[node][1]}",
            }
            advertised = {"advertised.listeners": listeners["broker"]} if "broker" in roles else {}
            return {
                **CLUSTER_SETTINGS,
                "process.roles": ",".join(roles),
                "node.id": str(node),
                "controller.quorum.voters": voters,
                "controller.listener.names": "CONTROLLER",
                "listeners": ",".join(listeners[role] for role in roles),
                **advertised,
                **(overrides or {}),
                **(of_node or {}).get(node, {}),
            }

        self._all = {
            node: KafkaNode(node, directory / f"node-{node}", ports[node], settings(node))
            for node in ids
        }
        self._controllers = controllers

    @property
    def nodes(self) -> Sequence[KafkaNode]:
        """The brokers, by id."""
        return [self._all[node] for node in NODE_IDS]

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.address for node in self.nodes)

    def node(self, node_id: int) -> KafkaNode:
        """The broker with that id."""
        return self._all[node_id]

    def start(self) -> None:
        """Start all nodes, and wait until each knows all brokers."""
        with ThreadPoolExecutor(len(self._all)) as pool:
            list(pool.map(KafkaNode.start_without_waiting, self._all.values()))
        for node in self.nodes:
            node.wait_until_ready()
        wait_until(lambda: all(len(_ask_metadata(node).brokers) == 3 for node in self.nodes))

    def end(self) -> None:
        """Kill all: nothing of it is needed again."""
        for node in self._all.values():
            if node.is_running:
                node.kill()

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Put the replica first in the assignment, elect it, and restore the assignment."""
        running = self._running()
        wait_until(lambda: to in _partition(running[0], topic, partition).isr_nodes)
        order = _partition(running[0], topic, partition).replica_nodes
        self._assign(topic, partition, [to, *(each for each in order if each != to)])
        elect = build(
            ElectLeadersRequest,
            2,
            topic_partitions=[{"topic": topic, "partitions": [partition]}],
            timeout_ms=60_000,
        )
        with WireClient(running[0].port) as client:
            client.ask(elect, ElectLeadersResponse, 2)
        self._assign(topic, partition, order)
        wait_until(
            lambda: all(
                (one.leader_id, one.replica_nodes) == (to, order)
                for one in (_partition(node, topic, partition) for node in running)
            )
        )

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Ask the controller for it, and wait."""
        self._assign(topic, partition, replicas)
        wanted = (list(replicas), sorted(replicas))
        wait_until(
            lambda: all(
                (one.replica_nodes, sorted(one.isr_nodes)) == wanted
                for one in (_partition(node, topic, partition) for node in self._running())
            )
        )

    def _running(self) -> list[KafkaNode]:
        return [node for node in self.nodes if node.is_running]

    def _assign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        one = {"partition_index": partition, "replicas": list(replicas)}
        request = build(
            AlterPartitionReassignmentsRequest,
            0,
            timeout_ms=60_000,
            topics=[{"name": topic, "partitions": [one]}],
        )
        with WireClient(self._running()[0].port) as client:
            client.ask(request, AlterPartitionReassignmentsResponse, 0)


class CuttableKafkaCluster(ApacheKafkaCluster):
    """The same, and a second listener of each node, which clients reach through a proxy."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        of_node: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        super().__init__(directory, overrides, of_node=of_node)
        self._proxies: dict[int, CutProxy] = {}
        taken = {port for node in self._all.values() for port in node.ports}
        wanted = 2 * len(NODE_IDS)
        ports = [port for port in free_ports(wanted + len(taken)) if port not in taken][:wanted]
        addresses = []
        for node, (port, behind) in zip(
            self.nodes, zip(ports[::2], ports[1::2], strict=True), strict=True
        ):
            self._proxies[node.id] = CutProxy(port, behind)
            addresses.append(f"127.0.0.1:{port}")
            node.settings["listeners"] += f",CUT://127.0.0.1:{behind}"
            node.settings["advertised.listeners"] += f",CUT://{addresses[-1]}"
        for node in self._all.values():
            node.settings["listener.security.protocol.map"] = ",".join(
                f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", "CUT")
            )
        self.cuttable_bootstrap = ",".join(addresses)

    def start(self) -> None:
        """Start all nodes, and the proxies."""
        for proxy in self._proxies.values():
            proxy.__enter__()
        super().start()

    def end(self) -> None:
        """Kill all nodes, and end the proxies."""
        super().end()
        for proxy in self._proxies.values():
            proxy.__exit__()

    def cut(self, node_id: int, client_id: str) -> None:
        """Hold what passes between a node and clients that came by `cuttable_bootstrap`."""
        del client_id  # it alone came so
        self._proxies[node_id].hold()

    def heal_cuts(self) -> None:
        """Let everything pass."""
        for proxy in self._proxies.values():
            proxy.release()


def _ask_metadata(node: KafkaNode, *topics: str) -> MetadataResponse:
    request = build(
        MetadataRequest,
        12,
        topics=[{"name": topic} for topic in topics],
        allow_auto_topic_creation=False,
    )
    with WireClient(node.port) as client:
        return client.ask(request, MetadataResponse, 12)


def _partition(node: KafkaNode, topic: str, partition: int) -> Any:
    (found,) = _ask_metadata(node, topic).topics
    return next(one for one in found.partitions if one.partition_index == partition)


@contextlib.contextmanager
def running_cluster(cluster: ApacheKafkaCluster) -> Iterator[ApacheKafkaCluster]:
    """The cluster, which serves inside the `with`."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
