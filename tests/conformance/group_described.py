"""A group as its broker describes it, asked again and again while its members work."""

import contextlib
import threading
from collections import Counter
from typing import NamedTuple, Self

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.describe_groups import (
    DescribeGroupsGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    decode_versioned,
)
from tests.conformance.group_member import PATIENCE_SECONDS, Partition
from tests.support.wire import WireClient

EVERY_SECONDS = 0.1
STABLE = "Stable"
CLASSIC_VERSION, CONSUMER_VERSION = 6, 1
NOT_OF_THIS_TYPE = ErrorCode.GROUP_ID_NOT_FOUND


class Described(NamedTuple):
    """One answer; what each member has, by member id."""

    type: str
    state: str
    shares: dict[str, frozenset[Partition]]

    @property
    def sizes(self) -> list[int]:
        """How many partitions the members have, in order."""
        return sorted(map(len, self.shares.values()))

    def owned_twice(self) -> list[Partition]:
        """Partitions that two members have."""
        owners = Counter(at for share in self.shares.values() for at in share)
        return [at for at, count in owners.items() if count > 1]


class GroupWatch:
    """Asks for the description ten times a second; keeps each in which a partition has two owners.

    A broker that is away, or still loads, is asked again.
    """

    def __init__(self, bootstrap: str, group: str) -> None:
        self._port = int(bootstrap.rsplit(":", 1)[1])
        self._group = group
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._looked = threading.Condition()
        self.last: Described | None = None
        self.looks = 0
        self.faults: list[Described] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> Described | None:
        """A description that was asked for after this call; None if there is no such group."""
        with self._looked:
            wanted = self.looks + 2  # one may be on its way
            assert self._looked.wait_for(lambda: self.looks >= wanted, PATIENCE_SECONDS)
            return self.last

    def assert_sound(self) -> None:
        """Whenever one looked, each partition had one owner."""
        assert self.looks > 0
        assert self.faults == []

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            with (
                contextlib.suppress(OSError),
                WireClient(self._port, timeout_s=PATIENCE_SECONDS) as client,
            ):
                self._ask(client)

    def _ask(self, client: WireClient) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            found = describe(client, self._group)
            with self._looked:
                self.last = found
                self.looks += 1
                self._looked.notify_all()
            if found and found.owned_twice():
                self.faults.append(found)


def describe(client: WireClient, group: str) -> Described | None:
    """Ask for a group of either type; None if it is of neither, or not to be had now."""
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    answer = client.ask(request, ConsumerGroupDescribeResponse, CONSUMER_VERSION).groups[0]
    if answer.error_code == ErrorCode.NONE:
        return _consumer_group(answer)
    if answer.error_code != NOT_OF_THIS_TYPE:
        return None
    classic = client.ask(
        DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, CLASSIC_VERSION
    ).groups[0]
    return None if classic.error_code != ErrorCode.NONE else _classic_group(classic)


def _consumer_group(answer: ConsumerGroupDescribeGroup) -> Described:
    shares = {
        member.member_id: frozenset(
            (topic.topic_name, partition)
            for topic in member.assignment.topic_partitions
            for partition in topic.partitions
        )
        for member in answer.members
    }
    return Described("consumer", answer.group_state, shares)


def _classic_group(answer: DescribeGroupsGroup) -> Described:
    shares = {
        member.member_id: _classic_share(bytes(member.member_assignment))
        for member in answer.members
    }
    return Described("classic", answer.group_state, shares)


def _classic_share(assignment: bytes) -> frozenset[Partition]:
    if not assignment:
        return frozenset()
    said = decode_versioned(ConsumerProtocolAssignment, assignment)
    return frozenset(
        (topic.topic, partition)
        for topic in said.assigned_partitions
        for partition in topic.partitions
    )
