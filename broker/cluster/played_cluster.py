"""All nodes of a running broker that plays a cluster, and what a test does with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.network.listeners import (
    BoundListener,
    ListenError,
    bind_listeners,
    ports_of,
    with_ports,
)
from odradek.broker.network.server import Server
from odradek.broker.requests.route import Handler
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode

from .cluster import Cluster
from .cluster_node import ClusterNode
from .cluster_nodes import ClusterNodes

logger = logging.getLogger("odradek.cluster")

WARNING = (
    "plays a cluster of %d nodes to test clients: one log is behind all of them, nothing is"
    " replicated"
)

Reserved = list[BoundListener]  # the ports of a node


def reserve_ports(config: BrokerConfig, ports: Sequence[Sequence[int]] = ()) -> list[Reserved]:
    """Bind the ports of each node, or none. Nothing listens there yet. Raises ListenError.

    `ports` are those of each node's listeners; empty: as configured.
    """
    listeners = config.open_listeners
    reserved: list[Reserved] = []
    try:
        for number in range(config.odradek_nodes):
            of_node = (
                ports[number]
                if ports
                else [config.port_of_node(each.port, number) for each in listeners]
            )
            bound = bind_listeners(with_ports(listeners, of_node), shares_ports=True)
            reserved.append(bound)
    except ListenError:
        for each in reserved:
            for item in each:
                item.close()
        raise
    return reserved


class PlayedCluster:
    """A cluster that one broker simulates for tests of clients (see this room's __init__).

    All nodes run when it is created. The other nodes notice at once that a node was killed, and
    after `broker.session.timeout.ms` that a node does not answer.
    """

    def __init__(
        self,
        broker: Broker,
        reserved: Sequence[Sequence[BoundListener]],
        handlers: Mapping[ApiKey, Handler],
        on_disconnect: Sequence[Callable[[Session], object]],
    ) -> None:
        """Let all nodes listen on their reserved ports. Raises ListenError."""
        config = broker.config
        first = config.node_id
        racks = config.odradek_nodes_racks or [config.broker_rack] * len(reserved)
        self.state = Cluster(
            broker,
            {first + number: rack for number, rack in enumerate(racks)},
            config.default_replication_factor,
            self._leaders_moved,
        )
        self._broker = broker
        ports = [ports_of(each) for each in reserved]
        broker.nodes = ClusterNodes(config, ports, self.state, first)
        broker.admin.topics.on_placed = self.state.placed
        broker.admin.topics.on_served = self.state.served
        broker.coordinators.markers.find_log = self.state.find_led
        coordinators = broker.coordinators
        for each in (coordinators.groups, coordinators.transactions, coordinators.share_states):
            each.shards.check_appends(self.state.check_in_sync)
        # When others notice a node that does not answer (timer time), and its timer.
        self._noticing: dict[int, tuple[int, asyncio.TimerHandle]] = {}
        self._killed: set[int] = set()
        self.nodes = {
            first + number: ClusterNode(
                first + number,
                each,
                broker=broker,
                cluster=self.state,
                ports=ports,
                handlers=handlers,
                on_disconnect=on_disconnect,
            )
            for number, each in enumerate(reserved)
        }
        logger.warning(WARNING, len(self.nodes))
        for node in self.nodes.values():
            node.start()

    def node(self, node_id: int) -> ClusterNode:
        """A node. Raises INVALID_REQUEST if there is none with this id."""
        node = self.nodes.get(node_id)
        if node is None:
            text = f"there is no node {node_id}: the nodes are {sorted(self.nodes)}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        return node

    def _running(self, node_id: int) -> ClusterNode:
        """A node that runs. Raises INVALID_REQUEST."""
        node = self.node(node_id)
        if not node.runs:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"node {node_id} does not run")
        return node

    def servers(self) -> list[Server]:
        """The servers of the nodes that run, or answer their last requests."""
        return [server for node in self.nodes.values() for server in node.servers]

    # -- nodes ------------------------------------------------------------------------------------

    def kill(self, node_id: int) -> None:
        """End a node as a process that is killed, if it runs. The others notice it at once.

        One that is being stopped answers nothing more. Raises as `node_lost`: then it runs on.
        """
        node = self.node(node_id)
        if not (node.runs or node.is_draining):
            return
        self._lost(node_id)
        node.kill()
        self._killed.add(node_id)

    def start(self, node_id: int) -> None:
        """Start a node that was killed or stopped; it is in sync at once.

        Raises ListenError, INVALID_REQUEST if it runs, and as `node_lost`: then it does not run.
        """
        node = self.node(node_id)
        if node.runs:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"node {node_id} runs already")
        node.start()
        try:
            self._back(node_id)
        except ApiError:
            node.kill()
            raise

    async def stop(self, node_id: int) -> None:
        """Stop a node in good order, if it runs: others lead its partitions before it ends."""
        node = self.node(node_id)
        if node.runs:
            self._lost(node_id)
            node.finish()
        await node.drain()

    def pause(self, node_id: int) -> None:
        """Let a node answer nothing. Others notice it after broker.session.timeout.ms."""
        self._running(node_id).gate.update(is_paused=True)
        self._fall_silent(node_id)

    def resume(self, node_id: int) -> None:
        """Let a paused node continue."""
        self._running(node_id).gate.update(is_paused=False)
        self._back(node_id)

    def slow(self, node_id: int, delay_ms: int) -> None:
        """Delay the answers of a node; 0 ends that."""
        self._running(node_id).gate.update(delay_ms=delay_ms)

    def cut_from_client(self, node_id: int, client_id: str) -> None:
        """Let no request of a client reach a node, and no answer leave it for the client."""
        gate = self._running(node_id).gate
        gate.update(cut_clients={*gate.cut_clients, client_id})

    def cut_from_nodes(self, node_id: int) -> None:
        """Cut a node off from the other nodes, not from clients."""
        self._running(node_id)
        self._fall_silent(node_id)

    def heal(self) -> None:
        """Start all nodes, and let all requests pass. Raises ListenError."""
        for node_id, node in self.nodes.items():
            node.gate.open()
            if not node.runs:
                node.start()
            self._back(node_id)

    def _fall_silent(self, node_id: int) -> None:
        """A node replicates nothing any more; the others notice it later."""
        self.state.fall_silent(node_id)
        self._forget_notice(node_id)
        timeout_ms = self._broker.config.broker_session_timeout_ms
        timer = self._broker.loop.call_later(timeout_ms / 1000, self._lost, node_id)
        self._noticing[node_id] = self._broker.clock.timer_ms() + timeout_ms, timer

    def notice_now(self) -> None:
        """Let the others notice at once what they would notice later."""
        for node_id in list(self._noticing):
            self._lost(node_id)

    def notice_due(self) -> None:
        """Let them notice what is due, because a test has moved the clock."""
        timer_ms = self._broker.clock.timer_ms()
        for node_id, (due_ms, _) in list(self._noticing.items()):
            if due_ms <= timer_ms:
                self._lost(node_id)

    def _forget_notice(self, node_id: int) -> None:
        noticing = self._noticing.pop(node_id, None)
        if noticing is not None:
            noticing[1].cancel()

    def _lost(self, node_id: int) -> None:
        if node_id in self.state.live:
            self.state.node_lost(node_id)
        self._forget_notice(node_id)

    def _back(self, node_id: int) -> None:
        self._forget_notice(node_id)
        self.state.node_back(node_id, was_killed=node_id in self._killed)
        self._killed.discard(node_id)

    # -- partitions -------------------------------------------------------------------------------

    def elect_all(self) -> None:
        """Let the preferred leaders lead, where they are in sync."""
        self.state.elect_all_preferred()

    def _leaders_moved(self) -> None:
        for node in self.nodes.values():
            node.leader_moved()
        for waiting in tuple(self._broker.coordinators.waiting_share_fetches):
            waiting.release()

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Accept nothing more at any node."""
        for node_id in list(self._noticing):
            self._forget_notice(node_id)
        for node in self.nodes.values():
            node.finish()

    async def drain(self) -> None:
        """End all nodes when their requests are answered."""
        for node in self.nodes.values():
            await node.drain()
            node.close()
