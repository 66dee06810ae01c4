"""Puts errors into some partitions of a request, while the others are served.

Requests and responses of all APIs are alike in this: they have lists of topics, and these have
lists of partitions. So the declarations of the messages say where the partitions are. A `Selector`
splits a message by them. What it has chosen is not done, and gets the error; the rest is handled,
and the errors are added to its response. Three kinds of requests differ:

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
from functools import cache
from typing import Any, NamedTuple

import msgspec

from odradek.broker.fetching.fetch_sessions import FINAL_EPOCH, split_key
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.error_responses import has_error, partition_errors, response_class
from odradek.broker.requests.route import Handler
from odradek.broker.shares.sessions import SessionKey
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.declaration import ListOf, fields_of, present_fields
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.share_fetch import (
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Struct, WireType, replace

TEXT = "a fault that the test has asked for"
FIRST_FETCH_BY_ID = 13
INDEXES = ("partition_index", "partition", "index", "partition_id")
TOPICS = ("topic", "topic_name", "name")
NAMES = (*TOPICS, "topic_id", "group_id", "transactional_id", "producer_id", *INDEXES)
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


class Selector(NamedTuple):
    """Chooses partitions by topic and index; None: any. `find_name`: of a topic id."""

    topic: str | None
    partition: int | None
    find_name: Callable[[bytes], str | None]

    def split(self, whole: Any, *, is_topic: bool = False) -> tuple[Any, Any]:
        """What is chosen of a message or of a part of it, and the rest. None: nothing."""
        chosen: dict[str, list[Any]] = {}
        rest: dict[str, list[Any]] = {}
        for name in _lists_of(whole):
            pairs = [
                self._split_partition(item) if is_topic else self._split_item(item)
                for item in getattr(whole, name) or ()
            ]
            chosen[name] = [pair[0] for pair in pairs if pair[0] is not None]
            if chosen[name]:
                rest[name] = [pair[1] for pair in pairs if pair[1] is not None]
        if not rest:
            return None, whole
        return replace(whole, **chosen), replace(whole, **rest) if any(rest.values()) else None

    def _split_item(self, item: Any) -> tuple[Any, Any]:
        """Split an item of a list that is not in a topic."""
        if isinstance(item, str):
            return (item, None) if self.topic in (None, item) else (None, item)
        if not isinstance(item, Struct):
            return None, item
        if not _is_topic(type(item)):
            return self.split(item)
        if self.topic is not None and self.topic != self._name(item):
            return None, item
        if self.partition is not None and _has_partitions(type(item)):
            return self.split(item, is_topic=True)
        if hasattr(item, "error_code"):  # the error is the topic's, not that of its partitions
            return replace(item, **{name: [] for name in _lists_of(item)}), None
        return item, None

    def _split_partition(self, item: Any) -> tuple[Any, Any]:
        index = next((getattr(item, name) for name in INDEXES if hasattr(item, name)), item)
        return (item, None) if index == self.partition else (None, item)

    def _name(self, item: Any) -> str | None:
        topic_id = getattr(item, "topic_id", ZERO_UUID)
        if topic_id != ZERO_UUID:
            return self.find_name(topic_id)
        return next((getattr(item, name) for name in TOPICS if hasattr(item, name)), None)


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
        """Whether the request is about such a partition."""
        selector = self._selector(topic, partition)
        return self._asks_for_all(topic) or selector.split(self._named)[0] is not None

    def choose(
        self, topic: str | None, partition: int | None
    ) -> Callable[[ErrorCode], None] | None:
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
            response = await result_of(handle(context, replace(request, max_wait_ms=0)))
            self._resend(response.session_id)
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
        if self._context.api_key is ApiKey.METADATA and self._context.api_version == 0:
            return not request.topics
        if self._context.api_key is ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            return not request.topics
        groups = getattr(request, "groups", None) or [request]
        return any(getattr(each, "topics", ()) is None for each in groups)

    def _chosen_places(self) -> Iterator[tuple[Any, Any]]:
        """The topics and partitions of a request of a session that have an error."""
        for _, chosen, _ in self._errors:
            for topic in chosen.topics:
                for partition in topic.partitions:
                    yield topic, partition

    def _resend(self, session_id: int) -> None:
        by_id = self._context.api_version >= FIRST_FETCH_BY_ID
        self._context.broker.fetching.sessions.resend(
            session_id,
            [
                (topic.topic_id if by_id else topic.topic, partition.partition)
                for topic, partition in self._chosen_places()
            ],
        )

    async def _share_fetch(self, handle: Handler, request: ShareFetchRequest) -> Any:
        """Serve the request as if its session did not have the chosen partitions."""
        sessions = self._context.broker.coordinators.shares.sessions
        member = SessionKey(request.group_id or "", request.member_id or "")
        places = [
            (topic.topic_id, partition.partition_index)
            for topic, partition in self._chosen_places()
        ]
        left: Any = request
        for selector, _, _ in self._errors:
            left = selector.split(left)[1] or replace(left, topics=[])
        with suppress(ApiError):  # there is no session yet
            for place in places:
                sessions.find(member).partitions.pop(place, None)
        try:
            response = handle(self._context, replace(left, max_wait_ms=0))
        finally:  # it has decided what it reads
            if request.share_session_epoch != FINAL_EPOCH:
                with suppress(ApiError):  # there is none
                    sessions.find(member).partitions.update(dict.fromkeys(places, True))
        return await result_of(response)


async def result_of(response: Any) -> Any:
    """What a handler has returned, or returns later."""
    return await response if inspect.isawaitable(response) else response


def named(context: RequestContext, request: Any) -> Any:
    """The request, which names the partitions of its session, too."""
    if isinstance(request, FetchRequest) and request.session_epoch > 0:
        keys = dict.fromkeys(context.broker.fetching.sessions.partitions_of(request.session_id))
        by_id = context.api_version >= FIRST_FETCH_BY_ID
        named_topics: list[Any] = [*request.topics, *request.forgotten_topics_data]
        for topic in named_topics:
            for partition in topic.partitions:
                index = partition if isinstance(partition, int) else partition.partition
                keys.pop((topic.topic_id if by_id else topic.topic, index), None)
        others = [
            FetchTopic(
                topic=name,
                topic_id=topic_id,
                partitions=[FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=0)],
            )
            for name, topic_id, index in map(split_key, keys)
        ]
        return replace(request, topics=[*request.topics, *others])
    if isinstance(request, ShareFetchRequest) and request.share_session_epoch > 0:
        member = SessionKey(request.group_id or "", request.member_id or "")
        places: dict[tuple[bytes, int], object] = {}
        with suppress(ApiError):  # the handler says that there is no session
            places |= context.broker.coordinators.shares.sessions.find(member).partitions
        named_queues: list[Any] = [*request.topics, *request.forgotten_topics_data]
        for topic in named_queues:
            for partition in topic.partitions:
                index = partition if isinstance(partition, int) else partition.partition_index
                places.pop((topic.topic_id, index), None)
        more = [
            ShareFetchTopic(
                topic_id=topic_id,
                partitions=[ShareFetchPartition(partition_index=index, acknowledgement_batches=[])],
            )
            for topic_id, index in places
        ]
        return replace(request, topics=[*request.topics, *more])
    return request


def merged(response: Any, errors: Any, version: int) -> Any:
    """The response with the items of `errors`, in place of its own that have the same names."""
    changes = {}
    for name in _lists_of(errors):
        if not getattr(errors, name):
            continue
        items = {_names(item, version): item for item in getattr(response, name) or ()}
        for item in getattr(errors, name):
            key = _names(item, version)
            has_items = any(getattr(item, inner) for inner in _lists_of(item))
            items[key] = merged(items[key], item, version) if has_items and key in items else item
        changes[name] = list(items.values())
    return replace(response, **changes)


def _names(item: Any, version: int) -> tuple[object, ...]:
    return tuple(
        getattr(item, field.name)
        for field, _ in present_fields(type(item), version)
        if field.name in NAMES
    )


@cache
def has_topic_error(declared: type[Struct], version: int) -> bool:
    """Whether a response has a place for the error of a topic, or of its partitions."""
    return any(
        (_is_topic(item) and has_error(item, version)) or has_topic_error(item, version)
        for field, _ in present_fields(declared, version)
        if isinstance(field.wire, ListOf) and not isinstance(item := field.wire.item, WireType)
    )


def _lists_of(part: Any) -> tuple[str, ...]:
    declared: type = type(part)
    return _lists(declared)


@cache
def _lists(declared: type[msgspec.Struct]) -> tuple[str, ...]:
    """The lists of a struct in which topics and partitions may be."""
    return tuple(
        field.name
        for field in fields_of(declared)
        if isinstance(field.wire, ListOf)
        and "forgotten" not in field.name
        and (
            not isinstance(field.wire.item, WireType)
            or "topic" in field.name
            or field.name.startswith("partition")
        )
    )


def _is_topic(declared: type) -> bool:
    return "Topic" in declared.__name__


@cache
def _has_partitions(declared: type[msgspec.Struct]) -> bool:
    """Whether a topic has a list of partitions, or of their indexes."""
    wires = [field.wire for field in fields_of(declared) if field.name in _lists(declared)]
    return any(
        isinstance(wire, ListOf)
        and (
            isinstance(wire.item, WireType)
            or any(field.name in INDEXES for field in fields_of(wire.item))
        )
        for wire in wires
    )
