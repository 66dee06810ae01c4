"""The clients that have asked for their subscription, and when each may ask or push again.

A client is known by its instance id, which the broker draws when the client asks first. The times
of its requests are kept, so that a client that asks or pushes too soon is refused. A client may
push at once after it has asked: clients spread their first push over an interval.

An instance is forgotten when its connection closes, and when it has been silent for three
intervals, or a minute. There are at most MAX_INSTANCES; a new one takes the place of the one that
has been silent for the longest time. A client whose instance was forgotten gets a new one with its
next request, and the same subscription id.

Kafka: ClientMetricsInstance, ClientMetricsManager (its cache and timer).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from odradek.broker.admin.subscriptions import Subscriptions, Wanted, subscription_id
from odradek.broker.security.session import Session
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import uuid_text

MAX_INSTANCES = 16_384
SHORTEST_LIFE_MS = 60_000
INTERVALS_OF_LIFE = 3
# Of a client id and the like. There may be many instances.
MAX_ATTRIBUTE_LENGTH = 256
NEVER_MS = -(1 << 62)
UNKNOWN_SOFTWARE = ("unknown", "unknown")

Attributes = Mapping[str, str | None]


def attributes_of(id_: bytes, session: Session, client_id: str | None) -> Attributes:
    """What the broker knows of a client. Kafka: ClientMetricsInstanceMetadata."""
    name, version = session.software or UNKNOWN_SOFTWARE
    return {
        "client_instance_id": uuid_text(id_),
        "client_id": None if client_id is None else client_id[:MAX_ATTRIBUTE_LENGTH],
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": session.peer_host,
        "client_source_port": str(session.peer_port),
    }


def life_ms(push_interval_ms: int) -> int:
    """How long a client is remembered after its last request."""
    return max(SHORTEST_LIFE_MS, INTERVALS_OF_LIFE * push_interval_ms)


class ClientInstance:
    """One client. `version` is that of the subscriptions from which `wanted` was made.

    `last_error` is the error of its last request.
    """

    __slots__ = (
        "attributes",
        "expires_at_ms",
        "id",
        "is_terminating",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "subscription_id",
        "version",
        "wanted",
    )

    def __init__(self, id_: bytes, attributes: Attributes, wanted: Wanted, version: int) -> None:
        self.id = id_
        self.attributes = attributes
        self.wanted = wanted
        self.version = version
        self.subscription_id = subscription_id(wanted, id_)
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.last_get_ms = NEVER_MS
        self.last_push_ms = NEVER_MS
        self.expires_at_ms = 0

    def may_get(self, now_ms: int) -> bool:
        """Whether it may ask for its subscription. If so, it has asked now."""
        last_ms = max(self.last_get_ms, self.last_push_ms)
        if now_ms - last_ms < self.wanted.push_interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether it may push. If so, it has pushed now."""
        is_first = self.last_get_ms > self.last_push_ms
        if not is_first and now_ms - self.last_push_ms < self.wanted.push_interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientInstances:
    """All instances. Times are those of a clock that never jumps."""

    def __init__(self, subscriptions: Subscriptions, max_instances: int = MAX_INSTANCES) -> None:
        self._subscriptions = subscriptions
        self._max_instances = max_instances
        self._by_id: OrderedDict[bytes, ClientInstance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._by_id

    def heard_of(
        self,
        id_: bytes,
        attributes: Callable[[], Attributes],
        now_ms: int,
        step: Step = no_step,
    ) -> tuple[ClientInstance, bool]:
        """The instance of a client that sends a request, and whether it was made now.

        If the subscriptions have changed, it is made again, so the client may ask at once.
        """
        instance = self._by_id.get(id_)
        is_new = instance is None or instance.version < self._subscriptions.version
        if instance is None or is_new:
            known = attributes() if instance is None else instance.attributes
            instance = self._by_id[id_] = self._make(id_, known, step)
            if len(self._by_id) > self._max_instances:
                self._by_id.popitem(last=False)
        self._by_id.move_to_end(id_)
        instance.expires_at_ms = now_ms + life_ms(instance.wanted.push_interval_ms)
        return instance, is_new

    def _make(self, id_: bytes, attributes: Attributes, step: Step) -> ClientInstance:
        version = self._subscriptions.version  # it may change in a step
        wanted = self._subscriptions.wanted_of(attributes, step)
        return ClientInstance(id_, attributes, wanted, version)

    def forget(self, id_: bytes) -> None:
        """Forget a client, because its connection has closed."""
        self._by_id.pop(id_, None)

    def remove_expired(self, now_ms: int) -> None:
        """Forget the clients that have been silent for too long."""
        expired = [each.id for each in self._by_id.values() if each.expires_at_ms <= now_ms]
        for id_ in expired:
            del self._by_id[id_]
