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


# The principal of every client of a listener that does not authenticate its clients.
ANONYMOUS = Principal("User", "ANONYMOUS")
