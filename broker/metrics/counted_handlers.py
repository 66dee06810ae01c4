"""Counts requests around their handlers, and how long they take until the response is there.

The time includes the wait of a Fetch for records and of a JoinGroup for other members. It does not
include reading and decoding the request, nor encoding and sending the response. Requests whose
handler raises, and those whose client is gone before the response is there, are counted without a
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial, wraps
from time import perf_counter
from typing import Any

from msgspec import Struct

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import Handler
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse

from .traffic import RequestTraffic, TopicTraffic, Traffic

# Called with a request and its response.
Note = Callable[[RequestContext, Any, Any], None]

MAX_SOFTWARE_LENGTH = 64


def counted_handlers(handlers: Mapping[ApiKey, Handler], traffic: Traffic) -> dict[ApiKey, Handler]:
    """The handlers, each with the counting around it."""
    notes: dict[ApiKey, Note] = {
        ApiKey.PRODUCE: partial(_note_produce, traffic),
        ApiKey.FETCH: partial(_note_fetch, traffic),
        ApiKey.API_VERSIONS: _note_software,
    }
    return {
        key: _counted(handle, traffic.requests[key], notes.get(key))
        for key, handle in handlers.items()
    }


def _counted(handle: Handler, requests: RequestTraffic, note: Note | None) -> Handler:
    counts, add_duration = requests.count_by_version, requests.durations.add

    def finish(context: RequestContext, request: object, response: object, began: float) -> None:
        add_duration((perf_counter() - began) * 1000)
        if note is not None and response is not None:
            note(context, request, response)

    @wraps(handle)
    def serve(context: RequestContext, request: object) -> object:
        began = perf_counter()
        # Only ApiVersions is served without a decoded request: a client may send any version of it.
        version = 0 if request is None else context.api_version
        counts[version] = counts.get(version, 0) + 1
        result = handle(context, request)
        if result is None or isinstance(result, Struct):
            finish(context, request, result, began)
            return result

        def done(future: asyncio.Future[object]) -> None:
            if not future.cancelled() and future.exception() is None:
                finish(context, request, future.result(), began)

        pending = asyncio.ensure_future(result)
        pending.add_done_callback(done)
        return pending

    return serve


def _note_produce(
    traffic: Traffic, context: RequestContext, _request: ProduceRequest, response: ProduceResponse
) -> None:
    """Count the refused batches. The others are counted where they are appended."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                counts = _counts_of(traffic, context, topic.name, topic.topic_id)
                counts.failed_produce += 1


def _note_fetch(
    traffic: Traffic, context: RequestContext, _request: FetchRequest, response: FetchResponse
) -> None:
    for topic in response.responses:
        counts = _counts_of(traffic, context, topic.topic, topic.topic_id)
        for partition in topic.partitions:
            if partition.error_code:
                counts.failed_fetch += 1
                continue
            counts.fetched += 1
            records = partition.records
            if isinstance(records, bytes | memoryview):  # converted for an old client, or none
                counts.bytes_out += len(records)
            elif records is not None:
                counts.bytes_out += records.size_bytes


def _counts_of(
    traffic: Traffic, context: RequestContext, name: str, topic_id: bytes
) -> TopicTraffic:
    """The counts of a topic that a response names by name or by id."""
    if name in traffic.topics:
        return traffic.topics[name]
    topics = context.broker.metadata.topics
    topic = topics.get(name) if name else topics.by_id.get(topic_id)
    return traffic.without_topic if topic is None else traffic.topics[topic.name]


def _note_software(
    context: RequestContext, request: ApiVersionsRequest | None, response: ApiVersionsResponse
) -> None:
    """Remember what software the client is (KIP-511)."""
    if request is not None and context.api_version >= 3 and response.error_code == ErrorCode.NONE:
        name, version = request.client_software_name, request.client_software_version
        context.session.software = name[:MAX_SOFTWARE_LENGTH], version[:MAX_SOFTWARE_LENGTH]
