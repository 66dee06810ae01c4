"""What a handler knows about its request: the client, the version, and what the client may do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec import Struct

from odradek.broker.broker import Broker
from odradek.broker.common.nodes import Node
from odradek.broker.quotas.request_meter import RequestMeter
from odradek.broker.security.authorizer import CLUSTER_NAME, refusal
from odradek.broker.security.decision import Question
from odradek.broker.security.operations import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    ResourceType,
    bit_field,
)
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.broker.security.session import Session
from odradek.broker.turns.slices import Slices
from odradek.coordinator.any_group.caller import MayDescribe
from odradek.coordinator.metadata.topic_creation import Permits, unlimited
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.schema import VersionRange

T = TypeVar("T")


class ServedVersions(NamedTuple):
    """The versions of each API that has a handler.

    `advertised` by ApiVersions, and `accepted` in requests: these may be more.
    """

    advertised: Mapping[ApiKey, VersionRange]
    accepted: Mapping[ApiKey, VersionRange]


class RequestContext(Struct, eq=False):
    """One request: who sent it, in which version, and when it arrived (`now_ms`, wall clock).

    `meter` measures what the request uses, if there are quotas. `slices` is set if it is served in
    slices. `names_leaders`: a partition has an error that names the leader (named_leaders.py).
    """

    broker: Broker
    session: Session
    served: ServedVersions
    api_version: int
    client_id: str | None
    now_ms: int
    api_key: ApiKey
    meter: RequestMeter | None = None
    slices: Slices | None = None
    names_leaders: bool = False

    def sliced(self, items: Iterable[T]) -> Iterable[T]:
        """Iterate over items. If there are many, other requests are served between two of them.

        A handler uses this for each loop whose length a client or the broker's state decides, so
        that a long request does not hold up the event loop. What the handler has looked up before
        an item may have changed when it gets the item. A dict or a set is copied first, because
        other requests may change it meanwhile; pass `iter(d.items())` to avoid the copy if no other
        request can. How it works: broker/turns/slices.py.
        """
        return items if self.slices is None else self.slices.of(items)

    @property
    def step(self) -> Step:
        """A function that long work calls between its items: other requests may be served then.

        It does for functions outside of handlers what `sliced` does for a loop (runtime/steps.py).
        """
        return no_step if self.slices is None else self.slices.step

    @property
    def permits(self) -> Permits:
        """The permits of the client to create and delete partitions."""
        return unlimited if self.meter is None else self.meter.take_permits

    @property
    def principal(self) -> Principal:
        """Who the client is."""
        return self.session.principal or ANONYMOUS

    @property
    def client_host(self) -> str:
        """The client's address as Kafka prints it in group descriptions: with a leading slash."""
        return f"/{self.session.peer_host}"

    def advertised(self) -> tuple[str, int]:
        """The host and port at which this client is to connect to the broker."""
        return self.broker.nodes.own_address(self.session.listener, self.session.local_host)

    def nodes(self) -> list[Node]:
        """All nodes, with the addresses at which this client is to connect to them."""
        return self.broker.nodes.all(self.session.listener, self.session.local_host)

    def leader_of(self, topic: str, partition: int) -> Node | None:
        """The node that leads a partition whose log is served; None if none does."""
        nodes = self.broker.nodes
        leader = nodes.leader(self.broker.config.node_id, topic, partition)
        return next((node for node in self.nodes() if node.id == leader), None)

    def authorize(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        is_logged: bool = True,
    ) -> bool:
        """Whether the client may perform `operation` on a resource.

        If not, the handler makes the response, because each API has its own response to a refusal.
        `is_logged` is False where the client did not ask for this resource, or may be authorized
        by another one.
        """
        session, authorizer = self.session, self.broker.security.authorizer
        if not authorizer.has_rules:
            return True
        principal = session.principal or ANONYMOUS  # as `principal`, without the call: a hot path
        host = session.peer_host
        if authorizer.allows(principal, host, operation, resource_type, name):
            return True
        if is_logged:
            question = Question(principal, host, operation, resource_type, name)
            authorizer.log_denial(question, self.api_key, self.broker.clock.timer_ms())
        return False

    def authorize_cluster(self, operation: AclOperation, *, is_logged: bool = True) -> bool:
        """Whether the client may perform `operation` on the cluster."""
        return self.authorize(operation, ResourceType.CLUSTER, CLUSTER_NAME, is_logged=is_logged)

    def topic_filter(self) -> MayDescribe:
        """Whether the client may describe the topic of a name; None if it may describe all."""
        if not self.broker.security.authorizer.has_rules:
            return None
        return partial(self.authorize, AclOperation.DESCRIBE, ResourceType.TOPIC, is_logged=False)

    def authorize_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the client may perform `operation` on at least one resource of the type."""
        return self.broker.security.authorizer.allows_on_any(
            self.principal, self.session.peer_host, operation, resource_type
        )

    def check(self, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        """Raise the AUTHORIZATION_FAILED error of the type if the client is refused."""
        if not self.authorize(operation, resource_type, name):
            raise refusal(resource_type)

    def check_topic(self, operation: AclOperation, name: str) -> None:
        """Raise TOPIC_AUTHORIZATION_FAILED if the client may not perform `operation`."""
        self.check(operation, ResourceType.TOPIC, name)

    def check_group(self, operation: AclOperation, group_id: str) -> None:
        """Raise GROUP_AUTHORIZATION_FAILED if the client may not perform `operation`."""
        self.check(operation, ResourceType.GROUP, group_id)

    def check_cluster(self, operation: AclOperation) -> None:
        """Raise CLUSTER_AUTHORIZATION_FAILED if the client may not perform `operation`.

        The message says what is needed. Kafka: AuthHelper.authorizeClusterOperation.
        """
        if not self.authorize_cluster(operation):
            text = f"Request {self.api_key.display_name} needs {operation.name} permission."
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        """The operations that the client may perform on a resource, as a bit field (KIP-430)."""
        return bit_field(
            operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.authorize(operation, resource_type, name, is_logged=False)
        )

    def authorized_cluster_operations(self) -> int:
        """The operations on the cluster, as a bit field; 0 if the client may not describe it."""
        if not self.authorize_cluster(AclOperation.DESCRIBE):
            return 0
        return self.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
