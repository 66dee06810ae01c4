"""A real broker for tests: see Broker, and plugin.py for pytest."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.protocol.api_keys import ApiKey
    from odradek.protocol.errors import ErrorCode

    from .broker import Broker, LeftoverClient, Record, Snapshot
    from .fault import Fault, FaultEvent
    from .injected import BrokerError, Injected

__all__ = [
    "ApiKey",
    "Broker",
    "BrokerError",
    "ErrorCode",
    "Fault",
    "FaultEvent",
    "Injected",
    "LeftoverClient",
    "Record",
    "Snapshot",
]


def __getattr__(name: str) -> object:
    """Import the names above when they are used: every pytest session imports this package."""
    if name not in __all__:
        raise AttributeError(f"odradek.broker.testing has no {name}")
    from odradek.broker.testing import broker, fault

    return getattr(fault if name == "FaultEvent" else broker, name)
