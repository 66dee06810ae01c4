"""Who a client is, after authentication.

Kafka: KafkaPrincipal; its default principal builder.
"""

from typing import NamedTuple


class Principal(NamedTuple):
    """An authenticated identity. `kind` is Kafka's principal type, "User" for every client."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


USER = "User"


def parse_principal(text: str) -> Principal:
    """Parse a principal, "User:alice". Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text} is not a principal, TYPE:NAME")
    return Principal(kind, name)


class RefusedClientError(Exception):
    """A client has proved who it is, and may not connect all the same."""


# The principal of every client of a listener that does not authenticate its clients.
ANONYMOUS = Principal(USER, "ANONYMOUS")
