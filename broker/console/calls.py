"""One request of the console, as its handler sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from odradek.broker.metrics.observed import ObservedBroker
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import Dispatcher
from odradek.protocol.schema import Message

Response = TypeVar("Response", bound=Message)

CLIENT_ID = "odradek-console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler of the console may use.

    `context` is that of a request of the same principal: its permissions, and slices, in which the
    handler runs. `observed` is the broker with its server and metrics.
    """

    context: RequestContext
    observed: ObservedBroker
    dispatcher: Dispatcher

    async def ask(self, request: Message, response: type[Response]) -> Response:
        """Serve a request of Kafka's protocol with the permissions of the same principal.

        Raises ApiError.
        """
        answer = await self.dispatcher.ask(self.context.session, CLIENT_ID, request)
        assert isinstance(answer, response)
        return answer
