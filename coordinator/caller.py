"""The client that sent a request to a group."""

from typing import NamedTuple


class Caller(NamedTuple):
    """The client that sent a request, and the request's API version."""

    client_id: str
    client_host: str
    api_version: int
