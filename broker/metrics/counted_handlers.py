"""Counts requests around their handlers, and how long they take until the response is there.

The time includes the wait of a Fetch for records and of a JoinGroup for other members. It does not
include reading and decoding the request, nor encoding and sending the response.

Every request is counted. Timing each of them would be most of the cost, so after a timed request of
an API's version those of the next milliseconds are not timed: it stands for them. A request that is
timed has no time if its handler raises, or if its client is gone before the response is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import Handler
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.storage.log import RecordsSlice

from .traffic import RequestTraffic, TopicTraffic, Traffic

# Called with a request and its response.
Note = Callable[[Traffic, RequestContext, Any, Any], None]

MAX_SOFTWARE_LENGTH = 64
TIMED_EVERY_MS = 10


def counted(traffic: Traffic, key: ApiKey, version: int, handle: Handler) -> Handler:
    """The handler of one version of an API, with the counting around it."""
    counts = traffic.requests.setdefault(key, {}).setdefault(version, RequestTraffic())
    note = _NOTES.get(key)
    if note is not None:
        handle = _noted(traffic, note, handle)

    def serve(context: RequestContext, request: object) -> object:
        if context.now_ms < counts.timed_again_at_ms:  # most requests of a busy broker
            counts.untimed += 1
            return handle(context, request)
        counts.timed_again_at_ms = context.now_ms + TIMED_EVERY_MS
        return _timed(counts, handle, context, request)

    return serve


def _timed(
    counts: RequestTraffic, handle: Handler, context: RequestContext, request: object
) -> object:
    """Handle a request, and count it with its time when its response is there."""
    began = monotonic()
    try:
        result = handle(context, request)
    except Exception:
        counts.unanswered += 1
        raise
    if result is None or isinstance(result, (Struct, bytearray)):
        counts.time(monotonic() - began)
        return result

    def done(future: asyncio.Future[object]) -> None:
        if future.cancelled() or future.exception() is not None:
            counts.unanswered += 1
        else:
            counts.time(monotonic() - began)

    future = _started(context, result)
    future.add_done_callback(done)
    return future


def _started(context: RequestContext, pending: Awaitable[object]) -> asyncio.Future[object]:
    """The work of a handler as a future. Quotas count the time that it works."""
    if context.meter is not None:
        pending = context.meter.timed(pending)
    return asyncio.ensure_future(pending)


def _noted(traffic: Traffic, note: Note, handle: Handler) -> Handler:
    """The handler, with `note` called for each response."""

    def serve(context: RequestContext, request: object) -> object:
        result = handle(context, request)
        if isinstance(result, Struct):
            note(traffic, context, request, result)
            return result
        return _note_later(partial(note, traffic, context, request), _started(context, result))

    return serve


def _note_later(
    note: Callable[[object], None], future: asyncio.Future[object]
) -> asyncio.Future[object]:
    def done(future: asyncio.Future[object]) -> None:
        if not future.cancelled() and future.exception() is None:
            note(future.result())

    future.add_done_callback(done)
    return future


def _note_fetch(
    traffic: Traffic, context: RequestContext, _request: FetchRequest, response: FetchResponse
) -> None:
    for topic in response.responses:
        key = topic.topic or topic.topic_id
        counts = traffic.by_key.get(key)
        if counts is None:
            counts = _find_topic(traffic, context, key)
        for partition in topic.partitions:
            records = partition.records
            if partition.error_code:
                counts.failed_fetch += 1
            elif isinstance(records, RecordsSlice):
                counts.bytes_out += records.size_bytes
            elif records:  # converted for an old client
                counts.bytes_out += len(cast(bytes, records))


def _find_topic(traffic: Traffic, context: RequestContext, key: str | bytes) -> TopicTraffic:
    """The counts of the topic with that name or id."""
    topics = context.broker.metadata.topics
    topic = topics.get(key) if isinstance(key, str) else topics.by_id.get(key)
    if topic is None:
        return traffic.without_topic
    counts = traffic.by_key[key] = traffic.topics[topic.name]
    return counts


def _note_software(
    _traffic: Traffic,
    context: RequestContext,
    request: ApiVersionsRequest | None,
    response: ApiVersionsResponse,
) -> None:
    """Remember what software the client is (KIP-511)."""
    if request is not None and context.api_version >= 3 and response.error_code == ErrorCode.NONE:
        name, version = request.client_software_name, request.client_software_version
        context.session.software = name[:MAX_SOFTWARE_LENGTH], version[:MAX_SOFTWARE_LENGTH]


_NOTES: Mapping[ApiKey, Note] = MappingProxyType(
    {ApiKey.FETCH: _note_fetch, ApiKey.API_VERSIONS: _note_software}
)
