"""A node of a played cluster: its ports, its server, and the ways in which it ends.

The ports are kept while the node is down, so that no other process gets them. A client that
connects then is refused, as by a machine on which nothing listens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.common.nodes import Ports
from odradek.broker.network.listeners import BoundListener, bind_listeners, listen
from odradek.broker.network.server import Server
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.requests.route import Handler
from odradek.broker.security.session import Session
from odradek.protocol.api_keys import ApiKey

from .cluster import Cluster
from .cluster_nodes import ClusterNodes
from .gate import Gate
from .node_handlers import NodeHandlers

logger = logging.getLogger("odradek.cluster")


class ClusterNode:
    """A node, which runs or does not. `reserved` are its ports, `gate` is before its handlers.

    `server` is None while it does not run.
    """

    def __init__(
        self,
        node_id: int,
        reserved: Sequence[BoundListener],
        *,
        broker: Broker,
        cluster: Cluster,
        ports: Sequence[Ports],
        handlers: Mapping[ApiKey, Handler],
        on_disconnect: Sequence[Callable[[Session], object]],
    ) -> None:
        self.id = node_id
        self.gate = Gate()
        self._reserved = reserved
        self._broker = broker
        self._cluster = cluster
        self._ports = ports
        self._base = handlers
        self._on_disconnect = on_disconnect
        self._handlers: NodeHandlers | None = None
        self.server: Server | None = None

    @property
    def runs(self) -> bool:
        """Whether the node listens."""
        return self.server is not None

    def start(self) -> None:
        """Listen. Raises ListenError."""
        broker = self._broker
        bound = bind_listeners(each.listener._replace(port=each.port) for each in self._reserved)
        listen(bound, broker.config.socket_listen_backlog_size)
        nodes = ClusterNodes(broker.config, self._ports, self._cluster, self.id)
        handlers = self._handlers = NodeHandlers(broker, self._cluster, nodes, self._base)
        dispatcher = Dispatcher(handlers.broker, self.gate.around(handlers.table), SingleBatches())
        self.server = Server(handlers.broker, bound, dispatcher)
        self.server.on_disconnect += [*self._on_disconnect, handlers.disconnected]
        for each in bound:
            host = each.listener.host or "*"
            logger.info(
                "node %d: %s listens on %s:%d", self.id, each.listener.name, host, each.port
            )

    def leader_moved(self) -> None:
        """Let requests that wait look again: a partition has another leader."""
        if self._handlers is not None:
            self._handlers.leader_moved()

    def kill(self) -> None:
        """End as a process that is killed: no request is answered."""
        self.gate.open()
        if self.server is not None:
            self.server.abort()
        self._end()

    def finish(self) -> None:
        """Accept nothing more, and answer the requests that wait."""
        self.gate.open()
        if self.server is not None and self._handlers is not None:
            self.server.finish()
            self._handlers.release()

    async def drain(self) -> None:
        """End when all requests are answered; `finish` comes before."""
        if self.server is not None:
            await self.server.drain()
        self._end()

    def _end(self) -> None:
        if self._handlers is not None:
            self._handlers.close()
        self.server = self._handlers = None

    def close(self) -> None:
        """Give the ports back."""
        for each in self._reserved:
            each.close()
