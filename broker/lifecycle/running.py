"""A broker that serves: its listeners are open and its periodic tasks run.

Start: bind the ports, open the data (Broker), then listen. When a client can connect, every topic
and group is loaded, except logs that take long to recover. Stop is the reverse and ends with the
mark of a clean shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from odradek.broker.broker import Broker
from odradek.broker.common.clock import timer_clock_ms, wall_clock_ms
from odradek.broker.handlers import HANDLERS
from odradek.broker.network.listeners import (
    BoundListener,
    bind_listeners,
    bind_ports,
    bind_registry,
    listen,
    ports_of,
)
from odradek.broker.network.server import Server
from odradek.broker.periodic_tasks import PeriodicTasks, periodic_tasks_of
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests.connected_members import ConnectedMembers
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.requests.route import Handler
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.api_keys import ApiKey
from odradek.storage.files import Files

from .exposure import check_console, exposure_warning
from .topics_at_start import create_topics_at_start

if TYPE_CHECKING:
    from odradek.broker.cluster.played_cluster import PlayedCluster  # imported only if it is used
    from odradek.broker.console.console import Console  # imported only if it is used
    from odradek.broker.metrics.monitoring import Monitoring  # likewise
    from odradek.broker.registry.rest_server import RestServer  # likewise

logger = logging.getLogger("odradek")


async def start_broker(config: BrokerConfig, *, files: Files | None = None) -> RunningBroker:
    """Start a broker. Raises ListenError, DirectoryError, RefusedToStartError, ConfigError."""
    if config.odradek_nodes > 1:
        return await _start_cluster(config, files)
    bound, http = bind_ports(config)
    with _closed_on_error(*bound, http):
        registry = bind_registry(config)
    return await open_broker(config, bound, http=http, registry=registry, files=files)


async def _start_cluster(config: BrokerConfig, files: Files | None) -> RunningBroker:
    # Imported here, because most brokers play no cluster.
    from odradek.broker.cluster.played_cluster import reserve_ports

    nodes = reserve_ports(config)
    with _closed_on_error(*chain.from_iterable(nodes)):
        registry = bind_registry(config)
    with _closed_on_error(*chain.from_iterable(nodes), registry):
        http = bind_listeners([config.http_listener])[0] if config.http_listener else None
    return await open_broker(config, nodes=nodes, http=http, registry=registry, files=files)


async def open_broker(  # noqa: PLR0913 # all that a broker is given at its start
    config: BrokerConfig,
    bound: Sequence[BoundListener] = (),
    *,
    nodes: Sequence[Sequence[BoundListener]] = (),
    http: BoundListener | None = None,
    registry: BoundListener | None = None,
    handlers: Mapping[ApiKey, Handler] = HANDLERS,
    now_ms: Callable[[], int] = wall_clock_ms,
    timer_ms: Callable[[], int] = timer_clock_ms,
    files: Files | None = None,
) -> RunningBroker:
    """Start a broker on bound ports, which it closes when it stops or cannot start.

    `nodes` are the ports of each node of a played cluster, which has no others. `http` is bound if
    odradek.http.listener is set, `registry` if odradek.registry.listener is. Raises ListenError,
    DirectoryError, RefusedToStartError, ConfigError.
    """
    loop = asyncio.get_running_loop()
    ports = ports_of(nodes[0] if nodes else bound)
    with _closed_on_error(*bound, *chain.from_iterable(nodes), http, registry):
        if config.odradek_console and http is not None:
            check_console(config, http)
        if registry is not None:
            _check_libraries()
        broker = Broker(config, loop, ports, now_ms=now_ms, timer_ms=timer_ms, files=files)
        try:
            others = [each for each in (http, registry) if each is not None]
            listen([*bound, *others], config.socket_listen_backlog_size)
            running = RunningBroker(broker, bound, handlers, http, registry, nodes=nodes)
        except BaseException:
            await broker.close()
            raise
    try:
        await create_topics_at_start(broker)
    except BaseException:
        await running.stop()
        raise
    return running


@contextmanager
def _closed_on_error(*opened: BoundListener | None) -> Iterator[None]:
    """Close the listeners if the broker cannot start."""
    try:
        yield
    except BaseException:
        for item in opened:
            if item is not None:
                item.close()
        raise


class RunningBroker:
    """A broker with its server and periodic tasks. `stop` ends all of them."""

    addresses: Mapping[str, str] = {}  # a parent process is told no others

    def __init__(
        self,
        broker: Broker,
        bound: Iterable[BoundListener],
        handlers: Mapping[ApiKey, Handler],
        http: BoundListener | None,
        registry: BoundListener | None = None,
        *,
        nodes: Sequence[Sequence[BoundListener]] = (),
    ) -> None:
        """Listen on the bound ports, and start cleaning, recovery and the periodic tasks.

        `nodes` as for `open_broker`. Raises ListenError if one of them has lost a port.
        """
        self.broker = broker
        members = None
        if broker.config.odradek_group_expire_on_disconnect:
            members = ConnectedMembers(broker.coordinators.groups.members.remove_members)
            handlers = members.around(handlers)
        self._server, self._monitoring, self._console = _start_servers(
            broker, bound, handlers, http, self._servers
        )
        self._registry = None if registry is None else _start_registry(broker, registry)
        self._server.on_disconnect += [
            broker.coordinators.shares.disconnected,
            broker.telemetry.connection_closed,
        ]
        if members is not None:
            self._server.on_disconnect.append(members.disconnected)
        self.cluster = _play_cluster(broker, nodes, handlers, self._server) if nodes else None
        for item in bound:
            host, port = broker.nodes.own_address(item.listener, "")
            logger.info(
                "%s listens on %s:%d; clients get the address %s",
                item.listener.name,
                item.listener.host or "*",
                item.port,
                f"{host}:{port}" if host else f"that they used, with port {port}",
            )
        reachable = [*bound, *chain.from_iterable(nodes), *([registry] if registry else [])]
        warning = exposure_warning(broker.config, reachable)
        if warning is not None:
            logger.warning("%s", warning)
        broker.maintenance.cleaner.start()
        logger.info(
            "started: node %d of cluster %s, %d topics",
            broker.nodes.own_id,
            broker.log_manager.cluster_id,
            len(broker.metadata.topics),
        )
        broker.maintenance.recovery.begin(broker.config.num_recovery_threads_per_data_dir)
        self.periodic_tasks = PeriodicTasks(periodic_tasks_of(broker))

    @property
    def sessions(self) -> list[Session]:
        """The sessions of the connections that are open."""
        return [each.session for server in self._servers() for each in server.connections]

    def _servers(self) -> list[Server]:
        of_nodes = [] if self.cluster is None else self.cluster.servers()
        return [self._server, *of_nodes]

    async def stop(self) -> None:
        """Stop accepting, answer the current requests, flush, and write the checkpoints."""
        logger.info("stopping")
        if self._monitoring is not None:
            self._monitoring.note_stopping()
        await self.periodic_tasks.close()
        if self._registry is not None:
            self._registry.close()
        self._server.finish()
        if self.cluster is not None:
            self.cluster.finish()
        await self.broker.coordinators.finish_archiving()
        self.broker.answer_parked_requests()
        await self._server.drain()
        if self.cluster is not None:
            await self.cluster.drain()
        await self.broker.close()
        if self._monitoring is not None:
            self._monitoring.close()
        if self._console is not None:
            self._console.close()
        logger.info("stopped")


def _play_cluster(
    broker: Broker,
    nodes: Sequence[Sequence[BoundListener]],
    handlers: Mapping[ApiKey, Handler],
    server: Server,
) -> PlayedCluster:
    # Imported here, because most brokers play no cluster.
    from odradek.broker.cluster.played_cluster import PlayedCluster

    return PlayedCluster(broker, nodes, handlers, server.on_disconnect)


def _start_servers(
    broker: Broker,
    bound: Iterable[BoundListener],
    handlers: Mapping[ApiKey, Handler],
    http: BoundListener | None,
    servers: Callable[[], Sequence[Server]],
) -> tuple[Server, Monitoring | None, Console | None]:
    """Listen on the bound ports. `servers` has the server, and those of a played cluster."""
    dispatcher = Dispatcher(broker, handlers, SingleBatches())
    server = Server(broker, bound, dispatcher)
    if http is None or broker.traffic is None:
        return server, None, None
    # Imported here, because it takes tens of milliseconds, and most brokers do not need it.
    from odradek.broker.metrics.loop_delay import LoopDelay
    from odradek.broker.metrics.monitoring import Monitoring
    from odradek.broker.metrics.observed import Observed

    observed = Observed(
        broker=broker,
        servers=servers,
        traffic=broker.traffic,
        loop_delay=LoopDelay(broker.loop),
        started_ms=broker.clock.timer_ms(),
    )
    where = f"{http.listener.host or '*'}:{http.port}"
    console = None
    if broker.config.odradek_console:
        from odradek.broker.console.console import Console

        console = Console(observed, dispatcher)
        logger.info("the console is at http://%s/", where)
    logger.info("HTTP listens on %s: /metrics, /healthz, /readyz", where)
    if console is None:
        return server, Monitoring(observed, http), None
    monitoring = Monitoring(observed, http, console.routes(), console.error_response)
    return server, monitoring, console


def _check_libraries() -> None:
    """Raise ConfigError if the registry cannot be served."""
    from odradek.broker.registry.libraries import check_libraries  # few brokers need it

    check_libraries()


def _start_registry(broker: Broker, bound: BoundListener) -> RestServer:
    """Serve the schema registry."""
    # Imported here, because it takes tens of milliseconds, and most brokers do not need it.
    from odradek.broker.registry.rest_server import RestServer

    return RestServer(broker, bound)
