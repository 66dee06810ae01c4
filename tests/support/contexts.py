"""The context of a request that comes from a client on 127.0.0.1."""

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import served_versions
from odradek.broker.requests.session import Session
from odradek.protocol.api_keys import ApiKey


def request_context(
    broker: Broker, version: int, now_ms: int, api_key: ApiKey = ApiKey.METADATA
) -> RequestContext:
    """A request in `version` that arrives at `now_ms` on the first listener."""
    listener = broker.config.open_listeners[0]
    session = Session(listener, ("127.0.0.1", 40000), "127.0.0.1")
    served = served_versions(HANDLERS)
    return RequestContext(broker, session, served, version, "test", now_ms, api_key)
