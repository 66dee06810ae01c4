"""One request of the console, as its handler sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.metrics.observed import Observed
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.authorizer import CLUSTER_NAME, Authorizer, refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.broker.security.session import Session
from odradek.broker.turns.slices import Slices
from odradek.protocol.schema import Message

from .groups.positions import Positions
from .sorted_topics import SortedTopics
from .survey import Survey

if TYPE_CHECKING:
    from .recent_lines import RecentLines  # its lines are views, and those know calls

T = TypeVar("T")
Response = TypeVar("Response", bound=Message)

CLIENT_ID = "odradek-console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler of the console may use.

    `session` is that of the client; the handler runs in `slices`. `observed` is the broker with its
    server and metrics, `topics` are the names of its topics in order, `survey` is what takes long
    to count, `positions` are where groups have committed offsets, and `recent_lines` are those of
    the broker's log. `authorizer` is the broker's, with decisions of its own. `keyless` counts the
    records without a key that are written, whose partitions are taken in turns.

    A handler asks the broker by Kafka's own requests where there is one (`ask`), so that checks and
    permissions are those of any client. What it reads from the broker directly, it may show only
    after `check`.
    """

    session: Session
    slices: Slices
    observed: Observed
    dispatcher: Dispatcher
    authorizer: Authorizer
    topics: SortedTopics
    survey: Survey
    positions: Positions
    recent_lines: RecentLines
    keyless: Iterator[int]

    async def ask(
        self, request: Message, response: type[Response], size_bytes: int = 0
    ) -> Response:
        """Serve a request of Kafka's protocol, in its highest version, as if the client sent it.

        Produce is charged to the client's quota with `size_bytes`. A client that is throttled
        waits here. Raises ApiError. Errors of parts of the request are in the response.
        """
        answer = await self.dispatcher.ask(self.session, CLIENT_ID, request, size_bytes)
        assert isinstance(answer, response)
        return answer

    def sliced(self, items: Iterable[T]) -> Iterator[T]:
        """The items. Other requests are served between two of them. A dict is copied first."""
        return self.slices.of(items)

    @property
    def principal(self) -> Principal:
        """Who the client is."""
        return self.session.principal or ANONYMOUS

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the client may perform an operation on a resource."""
        if not self.authorizer.has_rules:
            return True
        host = self.session.peer_host
        return self.authorizer.allows(self.principal, host, operation, resource_type, name)

    def may_on_cluster(self, operation: AclOperation) -> bool:
        """Whether the client may perform an operation on the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_see_settings(self, resource_type: ResourceType, name: str) -> bool:
        """Whether the client may see the settings of a topic or a group."""
        return self.may(AclOperation.DESCRIBE_CONFIGS, resource_type, name)

    def may_change(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the console is not read-only, and the client may perform an operation."""
        is_read_only = self.observed.broker.config.odradek_console_read_only
        return not is_read_only and self.may(operation, resource_type, name)

    def may_change_cluster(self, operation: AclOperation) -> bool:
        """Whether the console is not read-only, and the client may perform it on the cluster."""
        return self.may_change(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def check(self, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        """Raise the AUTHORIZATION_FAILED error of the type if the client is refused."""
        if not self.may(operation, resource_type, name):
            raise refusal(resource_type)

    def check_topic(self, operation: AclOperation, name: str) -> None:
        """Raise TOPIC_AUTHORIZATION_FAILED if the client may not perform an operation."""
        self.check(operation, ResourceType.TOPIC, name)

    def check_cluster(self, operation: AclOperation = AclOperation.DESCRIBE) -> None:
        """Raise CLUSTER_AUTHORIZATION_FAILED if the client may not perform an operation."""
        self.check(operation, ResourceType.CLUSTER, CLUSTER_NAME)
