"""One broker's part: the administrator, who makes what is asked about, and the tested client."""

import time
from collections.abc import Callable
from typing import Any

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_acls import CreateAclsCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.primitives import random_uuid, uuid_text
from odradek.protocol.schema import Message
from tests.conformance.authorization.grants import (
    ADMINISTRATOR_HOST,
    CLIENT_HOST,
    everything,
)
from tests.conformance.authorization.plain import refusals, unordered
from tests.conformance.authorization.probes import (
    ALTERED,
    BEATING,
    BEATING_MEMBER,
    CONSUMERS,
    DATA,
    DOOMED,
    GROUP,
    OTHER,
    OTHER_GROUP,
    OTHER_TRANSACTION,
    SHARED,
    SHARING,
    STREAMING,
    STREAMS,
    TRANSACTION,
    Probe,
    streams_member,
)
from tests.conformance.conversation import Conversation, Versions, patiently
from tests.support.requests import build

# Kafka's controller may learn of entries a little after its broker, which can be asked.
CONTROLLER_LAG_S = 0.02
# And the broker, of entries that the controller has answered for.
BROKER_LAG_S = 0.3
ANY = 1
EPOCH_OF_RESOLVED_REGEX = 2


# Sends a request of the administrator: its key, version and values.
Ask = Callable[..., Any]


class Side:
    """One broker, with everything that the probes name."""

    def __init__(self, port: int, versions: Versions) -> None:
        self.client = Conversation(port, versions, own_host=CLIENT_HOST)
        self._admin = Conversation(port, versions, own_host=ADMINISTRATOR_HOST)

    def close(self) -> None:
        """End both connections."""
        self.client.close()
        self._admin.close()

    # -- what is asked about ----------------------------------------------------------------------

    def prepare(self) -> None:
        """Protect all types of resources, and make topics, groups and transactional ids."""
        create_entries(self._ask, list(everything(ADMINISTRATOR_HOST)))
        for name in (DATA, OTHER, DOOMED):
            self._admin.create_topic(name)
        for name in (GROUP, OTHER_GROUP):
            self._admin.wait_for_coordinator(name)
            offsets = [
                {"name": DATA, "partitions": [{"partition_index": 0, "committed_offset": 7}]}
            ]
            commit = {"group_id": name, "generation_id_or_member_epoch": -1, "topics": offsets}
            self._ask(ApiKey.OFFSET_COMMIT, 9, **commit)
        for name in (TRANSACTION, OTHER_TRANSACTION):
            patiently(lambda name=name: self._new_transactional_id(name))
        self._beat(CONSUMERS, "consumer-of-the-matrix", 0, [DATA])
        patiently(self._is_assigned)
        self._admin.wait_for_coordinator(STREAMS)
        self._ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, **streams_member(STREAMS, [DATA]))
        self._leave_streams_group(STREAMS)
        patiently(self._has_share_coordinator)
        for name in (SHARED, SHARING, ALTERED):
            self._share_beat(name, 0, [DATA, OTHER])
            patiently(lambda name=name: self._has_share_state(name))
            self._share_beat(name, -1)

    def _has_share_coordinator(self) -> bool | None:
        keys = [f"{SHARED}:{uuid_text(self._topic_id(DATA))}:0"]
        answer = self._ask(ApiKey.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=keys)
        return answer.coordinators[0].error_code == ErrorCode.NONE or None

    def _share_beat(self, group: str, epoch: int, topics: list[str] | None = None) -> Any:
        beat = {"member_epoch": epoch, "subscribed_topic_names": topics}
        member = {"group_id": group, "member_id": BEATING_MEMBER, **beat}
        return self._ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **member)

    def _has_share_state(self, group: str) -> bool | None:
        asked = [{"group_id": group, "topics": None}]
        answer = self._ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked)
        return len(answer.groups[0].topics) == 2 or None

    def _new_transactional_id(self, name: str) -> bool | None:
        self._ask(ApiKey.FIND_COORDINATOR, 6, key_type=1, coordinator_keys=[name])
        new = {"producer_id": -1, "producer_epoch": -1, "transaction_timeout_ms": 60_000}
        answer = self._ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=name, **new)
        return answer.error_code == ErrorCode.NONE or None

    def _is_assigned(self) -> bool | None:
        answer = self._ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[CONSUMERS])
        return (
            any(member.target_assignment.topic_partitions for member in answer.groups[0].members)
            or None
        )

    def _beat(self, group: str, member: str, epoch: int, topics: list[str]) -> Any:
        return self._ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=topics,
            topic_partitions=[],
        )

    def _leave_streams_group(self, group: str) -> None:
        leaves = {"group_id": group, "member_id": BEATING_MEMBER, "member_epoch": -1}
        self._ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, **leaves)
        self._ask(ApiKey.DELETE_GROUPS, 2, groups_names=[STREAMING])

    def administer(self, request: Message, version: int) -> tuple[Any, set[str]]:
        """What the administrator is answered, and the messages of errors."""
        answer = self._admin.ask(request, version)
        if isinstance(request, CreateAclsRequest | DeleteAclsRequest):
            time.sleep(BROKER_LAG_S)
        _, plain = self._admin.transcript.lines[-1]
        return unordered(plain), refusals(answer, (ErrorCode.INVALID_REQUEST,))

    # -- one row ----------------------------------------------------------------------------------

    def grant(self, entries: list[CreateAclsCreation]) -> None:
        """Replace the client's entries; return when they are in force."""
        replace_entries(self._ask, entries)

    def try_probe(self, probe: Probe) -> tuple[Any, set[str]]:
        """What the client is answered, as plain values, and the messages of refusals.

        What the request has done is undone.
        """
        refused: set[str] = set()
        if probe.has_answer:
            answer = self.client.ask(
                probe.request(self._topic_id), probe.version, probe.change, title=probe.title
            )
            refused = refusals(answer)
        else:
            self.client.tell(probe.request(self._topic_id), probe.version)
        _, plain = self.client.transcript.lines[-1]
        if probe.key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._beat(BEATING, BEATING_MEMBER, -1, [])
        if probe.key is ApiKey.STREAMS_GROUP_HEARTBEAT:
            self._leave_streams_group(STREAMING)
        if probe.key is ApiKey.SHARE_GROUP_HEARTBEAT:
            self._share_beat(SHARING, -1)
        if probe.topic is not None:
            self._restore(probe.topic, plain)
        return unordered(plain), refused

    def _restore(self, name: str, answer: Any) -> None:
        """Delete a topic that was created, or create it again, if the answer says success."""
        topics = answer if isinstance(answer, list) else answer.get("topics") or answer["responses"]
        if not any(topic["name"] == name and not topic["error_code"] for topic in topics):
            return
        if name == DOOMED:
            self._admin.wait_until_gone(name)
            self._admin.create_topic(name)
        else:
            self._admin.wait_for_topic(name)
            self._ask(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout_ms=30_000)
            self._admin.wait_until_gone(name)

    def assigned_by_regex(self, regex: str) -> set[str]:
        """The topics that a new member of a new group gets for an expression."""
        group, member = f"m-{random_uuid().hex()}", random_uuid().hex()
        beat = {
            "group_id": group,
            "member_id": member,
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_regex": regex,
            "topic_partitions": [],
        }
        first = build(ConsumerGroupHeartbeatRequest, 1, member_epoch=0, **beat)
        assert self.client.silently(first, 1).error_code == ErrorCode.NONE

        def resolved() -> set[str] | None:
            """The first epoch is that of the join, the second that of the resolved topics."""
            answer = self._ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[group])
            [described] = answer.groups
            if described.assignment_epoch < EPOCH_OF_RESOLVED_REGEX:
                epoch = described.members[0].member_epoch
                later = {"group_id": group, "member_id": member, "member_epoch": epoch}
                quiet = build(ConsumerGroupHeartbeatRequest, 1, rebalance_timeout_ms=-1, **later)
                self.client.silently(quiet, 1)
                return None
            target = described.members[0].target_assignment.topic_partitions
            return {partitions.topic_name for partitions in target}

        found: set[str] = patiently(resolved)
        return found

    def _topic_id(self, name: str) -> bytes:
        topic_id: bytes = self._admin.wait_for_topic(name).topic_id
        return topic_id

    def _ask(self, key: ApiKey, version: int, **values: Any) -> Any:
        return self._admin.silently(build(request_class(HANDLERS[key]), version, **values), version)


def replace_entries(ask: Ask, entries: list[CreateAclsCreation]) -> None:
    """Replace the entries for the client's host; return when they are in force."""
    of_client = _entries_of(CLIENT_HOST)
    answer = ask(ApiKey.DELETE_ACLS, 3, filters=[of_client])
    assert answer.filter_results[0].error_code == ErrorCode.NONE, answer
    create_entries(ask, entries)

    def in_force() -> bool | None:
        described = ask(ApiKey.DESCRIBE_ACLS, 3, **of_client)
        return sum(len(one.acls) for one in described.resources) == len(entries) or None

    patiently(in_force)
    time.sleep(CONTROLLER_LAG_S)


def create_entries(ask: Ask, entries: list[CreateAclsCreation]) -> None:
    """Create entries."""
    names = CreateAclsCreation.__struct_fields__  # type: ignore[attr-defined] # schema.py hides the base
    creations = [{name: getattr(one, name) for name in names} for one in entries]
    answer = ask(ApiKey.CREATE_ACLS, 3, creations=creations)
    assert not any(one.error_code for one in answer.results), answer


def _entries_of(host: str | None) -> dict[str, Any]:
    """A filter for the entries of a host, or for all."""
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": host,
        "operation": ANY,
        "permission_type": ANY,
    }
