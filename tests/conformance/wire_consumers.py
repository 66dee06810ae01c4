"""Consumer groups (KIP-848) made by raw requests: members that say what they are told to."""

import time
from collections.abc import Mapping, Sequence

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from tests.conformance.wire_groups import WAIT_SECONDS, commit, find_coordinator
from tests.support.wire import WireClient

BEAT = 1
# Members are left to themselves, and new targets are made at once.
SETTINGS = {
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "1800000",
    "group.consumer.assignment.interval.ms": "0",
}


class WireConsumer:
    """A member of a consumer group, on a connection of its own, under an id of its own."""

    def __init__(
        self,
        port: int,
        group: str,
        member_id: str,
        *topics: str,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.client = WireClient(port, client_id=f"{member_id}-client")
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self._subscribed: Sequence[str] | None = topics or None
        self._regex, self._instance, self._assignor = regex, instance, assignor
        self._owned: list[ConsumerGroupHeartbeatTopicPartitions] = []

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        return sum(len(topic.partitions) for topic in self._owned)

    def beat(self, epoch: int | None = None) -> None:
        """Say everything, and take what is told."""
        leaves = epoch is not None and epoch < 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self._instance,
            rebalance_timeout_ms=-1 if leaves else 300_000,
            subscribed_topic_names=None if leaves else self._subscribed,
            subscribed_topic_regex=None if leaves else self._regex,
            server_assignor=self._assignor,
            topic_partitions=None if leaves else self._owned,
        )
        if not self.epoch:
            find_coordinator(self.client, self.group)
        answer = self.client.ask(request, ConsumerGroupHeartbeatResponse, BEAT)
        deadline = time.monotonic() + WAIT_SECONDS
        while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
            answer = self.client.ask(request, ConsumerGroupHeartbeatResponse, BEAT)
        assert answer.error_code == ErrorCode.NONE, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = [
                ConsumerGroupHeartbeatTopicPartitions(
                    topic_id=topic.topic_id, partitions=topic.partitions
                )
                for topic in answer.assignment.topic_partitions
            ]

    def leave(self, *, for_a_while: bool = False) -> None:
        """Leave the group; a static member may come back."""
        self.beat(-2 if for_a_while else -1)

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets as this member."""
        whose = (self.member_id, self.epoch)
        commit(self.client, self.group, topic, offsets, member=whose, version=9)


def share_out(partitions: int, *members: WireConsumer) -> None:
    """Let them go on until they have all partitions between them, and stand at one epoch."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        for member in members:
            member.beat()
        count = sum(member.partition_count for member in members)
        if count == partitions and len({member.epoch for member in members}) == 1:
            return
        assert time.monotonic() < deadline, count
        time.sleep(0.02)
