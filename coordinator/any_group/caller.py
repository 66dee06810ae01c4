"""The client that sent a request to a group."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

# Whether a client may describe the topic of a name; None: every topic.
MayDescribe: TypeAlias = Callable[[str], bool] | None


class Caller(NamedTuple):
    """The client that sent a request, the request's API version, and what the client may see."""

    client_id: str
    client_host: str
    api_version: int
    may_describe: MayDescribe = None
