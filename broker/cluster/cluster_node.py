"""A node of a played cluster: its ports, its server, and the ways in which it ends.

The ports are kept while the node is down, so that no other process gets them. A client that
connects then is refused, as by a machine on which nothing listens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

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


class _Run(NamedTuple):
    """What a node has from its start to its end."""

    server: Server
    handlers: NodeHandlers


class ClusterNode:
    """A node, which runs or does not. `reserved` are its ports, `gate` is before its handlers.

    It can be started while requests of its last run are still being answered.
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
        self._run: _Run | None = None
        self._draining: list[_Run] = []  # these accept nothing more

    @property
    def runs(self) -> bool:
        """Whether the node listens."""
        return self._run is not None

    @property
    def is_draining(self) -> bool:
        """Whether requests are left that came before the node stopped."""
        return bool(self._draining)

    @property
    def servers(self) -> list[Server]:
        """Those of the run, and of the last one while its requests are being answered."""
        return [run.server for run in self._all()]

    def _all(self) -> list[_Run]:
        return self._draining if self._run is None else [*self._draining, self._run]

    def start(self) -> None:
        """Listen. Raises ListenError."""
        broker = self._broker
        bound = bind_listeners(
            [each.listener._replace(port=each.port) for each in self._reserved], shares_ports=True
        )
        listen(bound, broker.config.socket_listen_backlog_size)
        nodes = ClusterNodes(broker.config, self._ports, self._cluster, self.id)
        handlers = NodeHandlers(broker, self._cluster, nodes, self._base)
        dispatcher = Dispatcher(handlers.broker, self.gate.around(handlers.table), SingleBatches())
        server = Server(handlers.broker, bound, dispatcher)
        server.on_disconnect += [*self._on_disconnect, handlers.disconnected]
        self._run = _Run(server, handlers)
        for each in bound:
            host = each.listener.host or "*"
            logger.info(
                "node %d: %s listens on %s:%d", self.id, each.listener.name, host, each.port
            )

    def leader_moved(self) -> None:
        """Let requests that wait look again: a partition has another leader."""
        for run in self._all():
            run.handlers.leader_moved()

    def kill(self) -> None:
        """End as a process that is killed: no request is answered, no waiting one is served."""
        self.gate.drop()
        runs, self._run, self._draining = self._all(), None, []
        for run in runs:
            run.server.abort()
            run.handlers.close()

    def finish(self) -> None:
        """Accept nothing more, and answer the requests that wait."""
        self.gate.open()
        run, self._run = self._run, None
        if run is not None:
            self._draining.append(run)
            run.server.finish()
            run.handlers.release()

    async def drain(self) -> None:
        """End when all requests are answered that came before `finish`."""
        for run in tuple(self._draining):
            await run.server.drain()
            if run in self._draining:  # it has not been killed meanwhile
                self._draining.remove(run)
                run.handlers.close()

    def close(self) -> None:
        """Give the ports back."""
        for each in self._reserved:
            each.close()
