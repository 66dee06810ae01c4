"""A broker without a server, and the context of a request from a client on 127.0.0.1."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import served_versions
from odradek.broker.requests.error_responses import handle_or_refuse
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Message
from tests.support.log_box import NOW_MS
from tests.support.partition_logs import UnsyncedFiles


@asynccontextmanager
async def broker_with_topic(directory: Path, partitions: int) -> AsyncIterator[Broker]:
    """A broker whose clock stands at NOW_MS, with the topic "t"."""
    config = BrokerConfig.from_texts(
        {"log.dirs": str(directory), "listeners": "PLAINTEXT://localhost:9092"}
    )
    loop = asyncio.get_running_loop()
    broker = Broker(config, loop, {"PLAINTEXT": 1}, now_ms=lambda: NOW_MS, files=UnsyncedFiles())
    await broker.admin.topics.create([NewTopic(name="t", partition_count=partitions)])
    yield broker
    await broker.close()


def request_context(
    broker: Broker, version: int, now_ms: int, api_key: ApiKey = ApiKey.METADATA
) -> RequestContext:
    """A request in `version` that arrives at `now_ms` on the first listener."""
    listener = broker.config.open_listeners[0]
    session = Session(listener, ("127.0.0.1", 40000), "127.0.0.1")
    served = served_versions(HANDLERS)
    return RequestContext(broker, session, served, version, "test", now_ms, api_key)


def handled(context: RequestContext, request: Message) -> Any:
    """What the handler returns as dispatch gets it, a response or an awaitable of one."""
    key = type(request).SPEC.key
    assert key is not None
    return handle_or_refuse(HANDLERS[key], context, request)
