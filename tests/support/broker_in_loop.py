"""A broker on the test's own loop, with files that the test can break, and clients beside it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from odradek.broker.lifecycle.running import RunningBroker, start_broker
from odradek.broker.network.connection import Connection
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.schema import Message
from odradek.storage.files import Files
from tests.support.broker_process import free_ports
from tests.support.wire import WireClient

Response = TypeVar("Response", bound=Message)
P = ParamSpec("P")
R = TypeVar("R")
PRODUCE_VERSION = 9
CLIENTS = 32
LIMIT_SECONDS = 100.0


class BrokerInLoop:
    """Asks by raw requests, each from a thread, so that the loop stays free for the broker."""

    def __init__(self, running: RunningBroker, port: int) -> None:
        self.broker = running.broker
        self.port = port
        self._running = running
        self.clients: list[WireClient] = []
        self._threads = ThreadPoolExecutor(CLIENTS)

    @property
    def connections(self) -> set[Connection]:
        """The broker's side of the connections."""
        return self._running._server.connections

    async def ask(self, request: Message, response: type[Response], version: int) -> Response:
        """Send a request on a connection of its own, and wait for the answer."""
        client = await self._connect()
        answer = self._in_thread(client.ask, request, response, version)
        return await asyncio.wrap_future(answer)

    async def send(self, request: Message, version: int) -> WireClient:
        """Send a request on a connection of its own."""
        client = await self._connect()
        client.send(client.frame_of(request, version))
        return client

    async def answer(self, client: WireClient, response: type[Response], version: int) -> Response:
        """Wait for the answer to what was sent."""
        return await asyncio.wrap_future(self._in_thread(client.read_answer, response, version))

    async def _connect(self) -> WireClient:
        client = await asyncio.wrap_future(self._in_thread(WireClient, self.port))
        self.clients.append(client)
        return client

    def _in_thread(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        return self._threads.submit(work, *args, **kwargs)

    async def produce(
        self, topic: str, batch: bytes, partitions: Sequence[int] = (0,)
    ) -> list[ProducePartitionResponse]:
        """Append the batch to each of the partitions."""
        request = produce_to(topic, batch, partitions)
        answer = await self.ask(request, ProduceResponse, PRODUCE_VERSION)
        return list(answer.responses[0].partition_responses)

    async def stop(self) -> None:
        for client in self.clients:
            client.close()
        await self._running.stop()
        self._threads.shutdown()


def produce_to(
    topic: str,
    batch: bytes,
    partitions: Sequence[int] = (0,),
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """The batch for each of the partitions."""
    data = [ProducePartitionData(index=index, records=batch) for index in partitions]
    topics = [ProduceTopicData(name=topic, partition_data=data)]
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=topics
    )


async def until(condition: Callable[[], object]) -> None:
    """Return when it holds; fail when it does not after a while."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():  # noqa: ASYNC110 # what holds then is no event of the loop's
            await asyncio.sleep(0.005)


@asynccontextmanager
async def broker_in_loop(
    directories: Sequence[Path], files: Files, **settings: str
) -> AsyncIterator[BrokerInLoop]:
    """A broker that serves inside the `async with`. Settings: `log_segment_bytes="1048576"`."""
    (port,) = free_ports(1)
    config = BrokerConfig.from_texts(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": ",".join(map(str, directories)),
            "log.retention.ms": "-1",
        }
        | {name.replace("_", "."): value for name, value in settings.items()}
    )
    running = BrokerInLoop(await start_broker(config, files=files), port)
    try:
        yield running
    finally:
        with suppress(asyncio.CancelledError):
            await running.stop()
