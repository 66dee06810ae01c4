"""Puts errors into some partitions of a request, while the others are served.

What a `Selector` has chosen of a request is not done, and gets the error. The rest is handled, and
the errors are added to its response. Three kinds of requests differ:

- A Fetch and a ShareFetch do not name all partitions that they ask about: a session has the others.
  A Fetch is served whole, and at once instead of when there are records, and the errors take the
  place of what was read. The session sends these partitions again. A ShareFetch acquires what it
  reads, so the session does not have the partitions while it is served.
- A request that may ask about everything is served whole, and its response is split.
- Those that count the requests of a session are served if nothing is left of them, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from odradek.broker.fetching.fetch_sessions import FINAL_EPOCH, split_key
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.error_responses import partition_errors, response_class
from odradek.broker.requests.route import Handler
from odradek.broker.shares.sessions import SessionKey
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.share_fetch import (
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from odradek.protocol.schema import replace

from .selected_partitions import Selector, has_topic_error, merged

TEXT = "a fault that the test has asked for"
# They may ask about all topics, or do not name partitions as their responses do.
SERVED_WHOLE = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    }
)

Fail = Callable[[ErrorCode], None]


class PartitionErrors:
    """The errors that faults put into partitions of one request."""

    def __init__(self, context: RequestContext, request: Any) -> None:
        self._context = context
        self._request = request
        self._named = named(context, request)
        self._left = self._named  # None: nothing
        self._errors: list[tuple[Selector, Any, ErrorCode]] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    def find(self, topic: str | None, partition: int | None) -> bool:
        """Whether the request names such a partition."""
        selector = self._selector(topic, partition)
        return self._asks_for_all(topic) or selector.split(self._named)[0] is not None

    def choose(self, topic: str | None, partition: int | None) -> Fail | None:
        """Return what gives an error to such partitions; None if there are none without one."""
        response = response_class(type(self._request))
        if self._left is None or not has_topic_error(response, self._context.api_version):
            return None
        selector = self._selector(topic, partition)
        chosen, left = selector.split(self._left)
        if chosen is None and not self._asks_for_all(topic):
            return None

        def fail(code: ErrorCode) -> None:
            if self._context.api_key in SERVED_WHOLE:
                self._errors.append((selector, None, code))
            else:
                self._left = left
                self._errors.append((selector, chosen, code))

        return fail

    async def serve(self, handle: Handler) -> Any:
        """Handle the rest, and return its response with the errors. None: there is no response."""
        context, request, version = self._context, self._request, self._context.api_version
        if isinstance(request, FetchRequest):
            response = await self._fetch(handle, request)
        elif isinstance(request, ShareFetchRequest):
            response = await self._share_fetch(handle, request)
        elif context.api_key in SERVED_WHOLE:
            response = await result_of(handle(context, request))
        elif self._left is not None:
            response = await result_of(handle(context, self._left))
        elif context.api_key is ApiKey.SHARE_ACKNOWLEDGE:
            response = await result_of(handle(context, replace(request, topics=[])))
        elif getattr(request, "acks", None) == 0:
            response = None
        else:
            _, chosen, code = self._errors[0]
            response = partition_errors(chosen, version, code, TEXT)
        if response is None or getattr(response, "error_code", None):
            return response
        for selector, chosen, code in reversed(self._errors):  # the first one has the last word
            source = selector.split(response)[0] if chosen is None else chosen
            if source is not None:
                errors = partition_errors(source, version, code, TEXT)
                response = merged(response, errors, version)
        return response

    def _selector(self, topic: str | None, partition: int | None) -> Selector:
        by_id = self._context.broker.metadata.topics.by_id

        def find_name(topic_id: bytes) -> str | None:
            found = by_id.get(topic_id)
            return None if found is None else found.name

        return Selector(topic, partition, find_name)

    def _asks_for_all(self, topic: str | None) -> bool:
        """Whether the request asks about all topics, and there is this one."""
        if self._context.api_key not in SERVED_WHOLE:
            return False
        if topic is not None and topic not in self._context.broker.metadata.topics:
            return False
        request = self._request
        api = self._context.api_key, self._context.api_version
        if api in ((ApiKey.METADATA, 0), (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)):
            return not request.topics
        groups = getattr(request, "groups", None) or [request]
        return any(getattr(each, "topics", ()) is None for each in groups)

    def _chosen(self) -> Iterator[tuple[Any, Any]]:
        """The topics and partitions of a request of a session that have an error."""
        for _, chosen, _ in self._errors:
            for topic in chosen.topics:
                for partition in topic.partitions:
                    yield topic, partition

    async def _fetch(self, handle: Handler, request: FetchRequest) -> Any:
        """Serve the request at once. Its session sends the chosen partitions again."""
        response = await result_of(handle(self._context, replace(request, max_wait_ms=0)))
        keys = [(topic.topic or topic.topic_id, each.partition) for topic, each in self._chosen()]
        self._context.broker.fetching.sessions.resend(response.session_id, keys)
        return response

    async def _share_fetch(self, handle: Handler, request: ShareFetchRequest) -> Any:
        """Serve the request as if its session did not have the chosen partitions."""
        sessions = self._context.broker.coordinators.shares.sessions
        places = [(topic.topic_id, each.partition_index) for topic, each in self._chosen()]
        left: Any = request
        for selector, _, _ in self._errors:
            left = selector.split(left)[1] or replace(left, topics=[])
        with suppress(ApiError):  # there is no session yet
            for place in places:
                sessions.find(_member(request)).partitions.pop(place, None)
        try:
            response = handle(self._context, replace(left, max_wait_ms=0))
        finally:  # it has decided what it reads
            if request.share_session_epoch != FINAL_EPOCH:
                with suppress(ApiError):  # there is none
                    partitions = sessions.find(_member(request)).partitions
                    partitions.update(dict.fromkeys(places, True))
        return await result_of(response)


async def result_of(response: Any) -> Any:
    """What a handler has returned, or returns later."""
    return await response if inspect.isawaitable(response) else response


def named(context: RequestContext, request: Any) -> Any:
    """The request, which also names the partitions of its session; what it says itself is last."""
    others: list[Any] = []
    if isinstance(request, FetchRequest) and request.session_epoch > 0:
        kept = context.broker.fetching.sessions.partitions_of(request.session_id)
        dropped = {
            (topic.topic or topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        }
        for name, topic_id, index in (split_key(key) for key in kept if key not in dropped):
            wanted = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=0)
            others.append(FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted]))
    elif isinstance(request, ShareFetchRequest) and request.share_session_epoch > 0:
        gone = {
            (topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        }
        with suppress(ApiError):  # the handler says that there is no session
            session = context.broker.coordinators.shares.sessions.find(_member(request))
            for topic_id, index in (place for place in session.partitions if place not in gone):
                queue = ShareFetchPartition(partition_index=index, acknowledgement_batches=[])
                others.append(ShareFetchTopic(topic_id=topic_id, partitions=[queue]))
    return replace(request, topics=[*others, *request.topics]) if others else request


def _member(request: ShareFetchRequest) -> SessionKey:
    return SessionKey(request.group_id or "", request.member_id or "")
