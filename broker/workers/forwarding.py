"""The requests that a worker sends on to the broker's own process, and how that answers them.

A worker answers what concerns its partitions and its own connections. All else (topics, groups,
transactions, configs, the nodes of the cluster) is the state of the broker's own process. Clients
send few of these requests to a worker. They are forwarded as whole frames, with what the worker
knows about the client, and so are the responses. Kafka: EnvelopeRequest (KIP-590).
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Mapping
from functools import partial

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS, NODE_HANDLERS
from odradek.broker.node import BrokerNode
from odradek.broker.processes.channel import Channel
from odradek.broker.processes.worker_messages import (
    ForwardCancelled,
    ForwardedRequest,
    ForwardedResponse,
)
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.quotas.request_meter import MeteredElsewhere
from odradek.broker.requests.context import NodeContext
from odradek.broker.requests.dispatch import (
    Answer,
    Dispatcher,
    Framed,
    RefusedRequestError,
    SlicedAnswer,
    served_versions,
)
from odradek.broker.requests.named_leaders import naming_leaders
from odradek.broker.requests.route import NodeHandler
from odradek.broker.security.session import Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from odradek.protocol.schema import DecodeError

logger = logging.getLogger("odradek.workers")

_API_KEY = struct.Struct(">h")


def no_groups(context: NodeContext, request: ListGroupsRequest) -> ListGroupsResponse:  # noqa: ARG001 # a handler
    return ListGroupsResponse(groups=[])


def no_transactions(
    context: NodeContext,  # noqa: ARG001 # a handler
    request: ListTransactionsRequest,  # noqa: ARG001 # a handler
) -> ListTransactionsResponse:
    return ListTransactionsResponse(transaction_states=[])


# What a worker answers itself. A client that lists groups or transactions asks every node, and each
# names those that it coordinates: a worker coordinates none.
WORKER_HANDLERS: Mapping[ApiKey, NodeHandler] = {
    **naming_leaders(NODE_HANDLERS),
    ApiKey.LIST_GROUPS: no_groups,
    ApiKey.LIST_TRANSACTIONS: no_transactions,
}


# --- in a worker


class ForwardedAnswer(Answer):
    """The answer to a forwarded request: `response` is its whole frame."""

    def __init__(self, waiting: asyncio.Future[bytes]) -> None:
        super().__init__(correlation_id=0, version=0, flexible_header=False)
        self.pending = waiting
        self._waiting = waiting

    def arrived(self, response: ForwardedResponse) -> None:
        """Pass the response on to the connection that waits for it."""
        if self._waiting.done():
            return
        if response.throttle_ms:
            self.meter = MeteredElsewhere(response.throttle_ms)
        if response.frame is None:
            self._waiting.set_exception(RefusedRequestError(response.reason))
        else:
            self._waiting.set_result(response.frame)

    def encoded(self) -> Framed:
        """The response."""
        return bytearray(self.response), []


class Forwarder:
    """Sends requests to the broker's own process, and passes its responses on."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: dict[int, ForwardedAnswer] = {}
        self._last_number = 0

    def forward(self, session: Session, frame: memoryview) -> ForwardedAnswer:
        """Send a request. Its answer fails with RefusedRequestError if there is no response."""
        self._last_number = number = self._last_number + 1
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiting.add_done_callback(partial(self._ended, number))
        self._waiting[number] = answer = ForwardedAnswer(waiting)
        request = ForwardedRequest(
            number,
            bytes(frame),
            session.listener.name,
            (session.peer_host, session.peer_port),
            session.local_host,
            session.principal,
            session.token_authenticated,
            session.software,
        )
        self._channel.send(request)
        return answer

    def answered(self, response: ForwardedResponse) -> None:
        """Pass a response on to the connection that waits for it."""
        answer = self._waiting.get(response.number)
        if answer is not None:
            answer.arrived(response)

    def _ended(self, number: int, waiting: asyncio.Future[bytes]) -> None:
        del self._waiting[number]
        if waiting.cancelled():
            self._channel.send(ForwardCancelled(number))


class WorkerDispatcher(Dispatcher):
    """Serves the requests that a worker answers, and forwards the others.

    Forwarded requests are counted where they are answered.
    """

    def __init__(self, node: BrokerNode, forwarder: Forwarder) -> None:
        super().__init__(node, WORKER_HANDLERS, SingleBatches(), lost_writes=None)
        self._served = served_versions(HANDLERS)  # those that are forwarded are served, too
        self._forwarder = forwarder

    def dispatch(self, session: Session, frame: memoryview) -> Answer | bytes | None:
        """Serve or forward one request. See Dispatcher.dispatch."""
        is_raw_token = session.guard is not None and session.guard.takes_raw_tokens
        if is_raw_token or len(frame) < _API_KEY.size:
            return super().dispatch(session, frame)
        (api_key,) = _API_KEY.unpack_from(frame)
        if api_key in WORKER_HANDLERS:
            return super().dispatch(session, frame)
        if session.guard is not None and not session.guard.admits(session, api_key):
            raise RefusedRequestError
        return self._forwarder.forward(session, frame)


# --- in the broker's own process


class ForwardedRequests:
    """Serves the requests that one worker has forwarded."""

    def __init__(
        self, broker: Broker, dispatcher: Dispatcher, send: Callable[[object], object]
    ) -> None:
        self._broker = broker
        self._dispatcher = dispatcher
        self._send = send
        self._listeners = {item.name: item for item in broker.config.open_listeners}
        self._running: dict[int, asyncio.Task[None]] = {}

    def serve(self, request: ForwardedRequest) -> None:
        """Serve a request; the response is sent when it is there."""
        task = asyncio.ensure_future(self._respond(request))
        self._running[request.number] = task
        task.add_done_callback(lambda _: self._running.pop(request.number, None))

    def cancel(self, number: int) -> None:
        """Drop a request whose client is gone."""
        task = self._running.get(number)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Drop all requests: the worker has ended."""
        for task in list(self._running.values()):
            task.cancel()

    async def _respond(self, request: ForwardedRequest) -> None:
        session = Session(self._listeners[request.listener], request.peer, request.local_host)
        session.principal = request.principal
        session.token_authenticated = request.token_authenticated
        session.software = request.software
        try:
            frame, throttle_ms = await self._answer(session, memoryview(request.frame))
            response = ForwardedResponse(request.number, frame, throttle_ms=throttle_ms)
        except (DecodeError, RefusedRequestError, ApiError) as error:
            response = ForwardedResponse(request.number, None, str(error))
        except Exception:  # the root of a forwarded request
            logger.exception("a forwarded request of %s failed", session)
            text = "the request failed inside the broker"
            response = ForwardedResponse(request.number, None, text)
        self._send(response)

    async def _answer(self, session: Session, frame: memoryview) -> tuple[bytes | None, int]:
        """Serve one request, as a connection does. Returns the response and the throttle time."""
        answer = self._dispatcher.dispatch(session, frame)
        if answer is None or isinstance(answer, bytes):
            return answer, 0
        if isinstance(answer, SlicedAnswer):
            answer.begin(frame)
        await self._dispatcher.complete(answer)
        out, _ = answer.encoded()
        throttle_ms = 0
        if answer.meter is not None:
            answer.meter.finish()
            throttle_ms = answer.meter.throttle_ms
        return bytes(out), throttle_ms
