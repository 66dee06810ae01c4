"""Finds clients of earlier tests that make topics or join groups in the present one.

A reset keeps connections: clients may be shared by tests on purpose. A consumer that a test has not
closed joins its group again, so the next test does not find what it expects. To end connections
would not help, because clients connect again. So what the connections that are older than the last
reset do is noted, and the report of a failed test shows it.

The requests that make topics and join groups are watched by a wrapper around their handlers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.route import Handler
from odradek.broker.security.session import Session
from odradek.protocol.api_keys import ApiKey

from .calls import LeftoverClient

MAKE_TOPICS = (ApiKey.METADATA, ApiKey.CREATE_TOPICS)
JOIN_GROUPS = (
    ApiKey.JOIN_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
)
_JOIN_EPOCH = 0


class LeftoverClients:
    """Records what connections from before the last reset do.

    `handlers` are the given handlers, wrapped so that they record.
    """

    def __init__(self, handlers: Mapping[ApiKey, Handler]) -> None:
        self._test = ""  # that the last reset prepared
        # Connections older than the last reset, with the test during which each connected.
        self._earlier: dict[Session, str] = {}
        self._found: dict[Session, LeftoverClient] = {}
        self.handlers = {
            **handlers,
            **{key: self._noting_topics(handlers[key]) for key in MAKE_TOPICS},
            **{key: self._noting_groups(handlers[key]) for key in JOIN_GROUPS},
        }

    def begin(self, test: str, connected: Iterable[Session]) -> None:
        """Begin a test: note what these connections do from now on. `test` is "" if unknown."""
        self._earlier = {each: self._earlier.get(each, self._test) for each in connected}
        self._found = {}
        self._test = test

    def found(self) -> list[LeftoverClient]:
        """The clients of earlier tests that have done something, one for each connection."""
        return list(self._found.values())

    # -- the handlers -----------------------------------------------------------------------------

    def _noting_groups(self, handle: Handler) -> Handler:
        @functools.wraps(handle)
        def handle_and_note(context: RequestContext, request: Any) -> Any:
            # Epoch 0 joins; a JoinGroup has none. After a reset, a heartbeat with another epoch is
            # refused.
            joins = getattr(request, "member_epoch", _JOIN_EPOCH) == _JOIN_EPOCH
            if joins and context.session in self._earlier:
                _add(self._leftover_client(context).groups, [request.group_id])
            return handle(context, request)

        return handle_and_note

    def _noting_topics(self, handle: Handler) -> Handler:
        @functools.wraps(handle)
        def handle_and_note(context: RequestContext, request: Any) -> Any:
            response = handle(context, request)
            if context.session not in self._earlier or not inspect.isawaitable(response):
                return response  # only a handler that returns an awaitable can create a topic
            topics = context.broker.metadata.topics
            names = [topic.name for topic in request.topics or ()]
            missing = [name for name in names if name is not None and name not in topics]
            return self._note_made(context, missing, response) if missing else response

        return handle_and_note

    async def _note_made(
        self, context: RequestContext, missing: list[str], response: Awaitable[Any]
    ) -> Any:
        answer = await response
        topics = context.broker.metadata.topics
        # A topic with an error may have been created by another client meanwhile.
        served = {topic.name for topic in answer.topics if not topic.error_code}
        if made := [name for name in missing if name in topics and name in served]:
            _add(self._leftover_client(context).topics, made)
        return answer

    def _leftover_client(self, context: RequestContext) -> LeftoverClient:
        session = context.session
        found = self._found.get(session)
        if found is None:
            software, version = session.software or ("", "")
            found = self._found[session] = LeftoverClient(
                client_id=context.client_id or "",
                software=software,
                software_version=version,
                address=str(session),
                connected_after=self._earlier.get(session, ""),
            )
        return found


def _add(names: list[str], new: Iterable[str]) -> None:
    names += [name for name in new if name not in names]
