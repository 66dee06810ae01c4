"""Places for long responses: what clients hold as long as they like must leave room for others.

An event stream holds one of the server's connections, which liveness probes need too. An export, or
a whole value, holds megabytes until the client has taken them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from http import HTTPStatus

from odradek.broker.http.messages import HttpError

RETRY_AFTER = (("Retry-After", "5"),)


class Places:
    """At most `max_count` responses at once, and at most `max_of_one` for one address."""

    def __init__(self, what: str, max_count: int, max_of_one: int) -> None:
        """`what` names the responses for those who are refused."""
        self._what = what
        self._max_count = max_count
        self._max_of_one = max_of_one
        self._taken: Counter[str] = Counter()

    async def hold(
        self, address: str, pieces: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a response. Raises HttpError before the first if there is no room."""
        with self._place(address):
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece

    @contextmanager
    def _place(self, address: str) -> Iterator[None]:
        if self._taken.total() >= self._max_count:
            text = f"the broker serves {self._max_count} {self._what} at once: try again later"
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, text, RETRY_AFTER)
        if self._taken[address] >= self._max_of_one:
            text = f"{address} has {self._max_of_one} {self._what} already: try again later"
            raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, text, RETRY_AFTER)
        self._taken[address] += 1
        try:
            yield
        finally:
            self._taken[address] -= 1
            if not self._taken[address]:
                del self._taken[address]
