"""Counts requests around their handlers, and how long they take until the response is there.

The time includes the wait of a Fetch for records and of a JoinGroup for other members. It does not
include reading and decoding the request, nor encoding and sending the response. Requests whose
handler raises, and those whose client is gone before the response is there, have no time.
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

from .durations import BOUNDS_S
from .traffic import RequestTraffic, TopicTraffic, Traffic

# Called with a request and its response.
Note = Callable[[Traffic, RequestContext, Any, Any], None]

MAX_SOFTWARE_LENGTH = 64


def counted(traffic: Traffic, key: ApiKey, version: int, handle: Handler) -> Handler:
    """The handler of one version of an API, with the counting around it."""
    counts = traffic.requests.setdefault(key, {}).setdefault(version, RequestTraffic())
    durations, note = counts.answered, _NOTES.get(key)
    by_bound, shortest = durations.counts, BOUNDS_S[0]

    def serve(context: RequestContext, request: object) -> object:
        began = monotonic()
        try:
            result = handle(context, request)
        except Exception:
            counts.unanswered += 1
            raise
        if isinstance(result, Struct):
            seconds = monotonic() - began
            if seconds <= shortest:  # most requests
                by_bound[0] += 1
                durations.sum_s += seconds
            else:
                durations.add(seconds)
            if note is not None:
                note(traffic, context, request, result)
            return result
        if result is None:
            durations.add(monotonic() - began)
            return None
        if context.meter is not None:
            result = context.meter.timed(result)
        later = partial(note, traffic, context, request) if note is not None else None
        return _counted_later(counts, later, began, result)

    return serve


def _counted_later(
    counts: RequestTraffic,
    note: Callable[[object], None] | None,
    began: float,
    pending: Awaitable[object],
) -> asyncio.Future[object]:
    """Count a request that has to wait when its response is there."""

    def done(future: asyncio.Future[object]) -> None:
        if future.cancelled() or future.exception() is not None:
            counts.unanswered += 1
            return
        counts.answered.add(monotonic() - began)
        if note is not None and future.result() is not None:
            note(future.result())

    future = asyncio.ensure_future(pending)
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
