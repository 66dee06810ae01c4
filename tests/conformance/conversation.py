"""A conversation: raw requests to one broker, in a row, and the transcript of what it answered."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from odradek.protocol.primitives import random_uuid
from odradek.protocol.schema import Message, VersionRange
from tests.conformance.transcript import Transcript
from tests.support.wire import ConnectionEndedError, WireClient

CLOSED = "closed"
LONGEST_TITLE = 600
PATIENCE_SECONDS = 100.0
WAITS_AFTER_SECONDS = 0.7
Versions = Mapping[int, VersionRange]
Change = Callable[[Any], Any]


def advertised_versions(port: int, api_version: int = 2) -> Versions:
    """What a broker says that it serves, by API key."""
    with WireClient(port) as client:
        answer = client.ask(ApiVersionsRequest(), ApiVersionsResponse, api_version)
    return {one.api_key: VersionRange(one.min_version, one.max_version) for one in answer.api_keys}


class Conversation:
    """Asks one broker, and writes the answers down.

    `versions` are the reference's, so that both brokers are asked the same.
    """

    def __init__(
        self,
        port: int,
        versions: Versions,
        *,
        client_id: str = "talk",
        own_host: str | None = None,
    ) -> None:
        """`own_host` is the address by which the broker knows this client."""
        self.transcript = Transcript(port)
        self.client_id = client_id
        self._own_host = own_host
        self._port = port
        self._versions = versions
        self._client: WireClient | None = None

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def client(self) -> WireClient:
        """The connection, a new one if the broker closed the last."""
        if self._client is None:
            self._client = WireClient(self._port, client_id=self.client_id, own_host=self._own_host)
        return self._client

    def versions_of(self, request: type[Message]) -> range:
        """Every version of an API that Kafka serves and we speak."""
        spec = request.SPEC
        assert spec.key is not None
        theirs = self._versions[spec.key]
        return range(
            max(theirs.lowest, spec.versions.lowest), min(theirs.highest, spec.versions.highest) + 1
        )

    # -- what is written down ---------------------------------------------------------------------

    def ask(
        self,
        request: Message,
        version: int,
        change: Change | None = None,
        *,
        title: str | None = None,
    ) -> Any:
        """Send a request, write down its answer, and return it; None when the broker hung up.

        `title` names the line, which otherwise shows the request. `change` takes from the answer
        what other conversations may have left there.
        """
        try:
            answer = self.client.ask(request, response_of(type(request)), version)
        except (ConnectionEndedError, ConnectionResetError):
            self.close()
            self._note(request, version, CLOSED, title)
            return None
        self._note(request, version, change(answer) if change else answer, title)
        return answer

    def ask_raw(self, title: str, payload: bytes, change: Change | None = None) -> None:
        """Send a frame of any bytes, write down the frame that comes back, or that none does."""
        self.client.send_frame(payload)
        try:
            answer = self.client.read_frame()
        except (ConnectionEndedError, ConnectionResetError):
            self.close()
            self.transcript.write(title, CLOSED)
            return
        self.transcript.write(title, change(answer) if change else answer)

    def ask_while_waiting(
        self, act: Message, act_version: int, request: Message, version: int
    ) -> None:
        """Send a request that waits, then another on a connection of its own; write down the
        first one's answer.
        """
        self.client.send(self.client.frame_of(request, version))
        time.sleep(WAITS_AFTER_SECONDS)
        with WireClient(self._port, client_id=self.client_id) as other:
            other.ask(act, response_of(type(act)), act_version)
        answer = self.client.read_answer(response_of(type(request)), version)
        self._note(request, version, answer)

    def tell(self, request: Message, version: int) -> None:
        """Send a request that gets no answer; write down whether the connection outlives it."""
        self.client.send(self.client.frame_of(request, version))
        try:
            self.client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._note(request, version, "still open")
        except (ConnectionEndedError, ConnectionResetError):
            self.close()
            self._note(request, version, CLOSED)

    def _note(
        self, request: Message, version: int, answer: object, title: str | None = None
    ) -> None:
        shown = f"{type(request).__name__} v{version} {request!r}"[:LONGEST_TITLE]
        self.transcript.write(title or shown, answer)

    # -- what is only needed ----------------------------------------------------------------------

    def silently(self, request: Message, version: int) -> Any:
        """Send a request and return its answer without a note."""
        return self.client.ask(request, response_of(type(request)), version)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> MetadataResponseTopic:
        """A topic that is there and has leaders; dots in config keys are written as underscores."""
        wish = CreateTopicsTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[
                CreateTopicsConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        answer: CreateTopicsResponse = self.silently(CreateTopicsRequest(topics=[wish]), 5)
        assert answer.topics[0].error_code == ErrorCode.NONE, answer
        topic = self.wait_for_topic(name)
        for partition in range(partitions):
            self._wait_for_log(name, partition)
        return topic

    def _wait_for_log(self, name: str, partition: int) -> None:
        """Kafka's Metadata knows of a partition before its log is there."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[wanted])]
        )

        def found() -> bool | None:
            answer: ListOffsetsResponse = self.silently(request, 5)
            return answer.topics[0].partitions[0].error_code == ErrorCode.NONE or None

        patiently(found)

    def wait_for_topic(self, name: str) -> MetadataResponseTopic:
        """What Metadata says of a topic as soon as it is whole."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )

        def found() -> MetadataResponseTopic | None:
            answer: MetadataResponse = self.silently(request, 12)
            topic = answer.topics[0]
            errors = [topic.error_code, *(one.error_code for one in topic.partitions)]
            return topic if topic.partitions and not any(errors) else None

        return patiently(found)

    def wait_until_gone(self, name: str) -> None:
        """Return when Metadata does not know a topic any more."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        patiently(lambda: self.silently(request, 12).topics[0].error_code != 0 or None)

    def wait_for_coordinator(self, group: str) -> None:
        """Return when the group's coordinator can be found and is loaded."""
        lookup = FindCoordinatorRequest(coordinator_keys=[group])
        offsets = OffsetFetchRequest(group_id=group, topics=[])

        def found() -> bool | None:
            answer: FindCoordinatorResponse = self.silently(lookup, 4)
            return answer.coordinators[0].error_code == ErrorCode.NONE or None

        def loaded() -> bool | None:
            answer: OffsetFetchResponse = self.silently(offsets, 6)
            return answer.error_code == ErrorCode.NONE or None

        patiently(found)
        patiently(loaded)

    def new_producer_id(self) -> int:
        """A producer id, of epoch 0."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def drawn() -> int | None:
            answer: InitProducerIdResponse = self.silently(request, 4)
            return answer.producer_id if answer.error_code == 0 else None

        return patiently(drawn)


def patiently(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it is not None: Kafka's brokers learn things in their time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := look()) is None:
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)
    return found


def response_of(request: type[Message]) -> type[Message]:
    """The response class that belongs to a request class."""
    module = sys.modules[request.__module__]
    found: type[Message] = getattr(module, request.__name__.replace("Request", "Response"))
    return found


def only(answer: Message, *fields: str) -> dict[str, Any]:
    """Some fields of an answer."""
    return {name: getattr(answer, name) for name in fields}


def unknown_id() -> bytes:
    """A topic id that no topic has."""
    return random_uuid()


__all__ = [
    "ApiKey",
    "Conversation",
    "advertised_versions",
    "only",
    "patiently",
    "unknown_id",
]
