"""Members of consumer groups (KIP-848), as a consumer plays them, at next to no cost.

Each heartbeat may bring an assignment; it is taken over at once, and acknowledged by a heartbeat
that names what is owned. The others name nothing.
"""

from collections import Counter
from uuid import uuid4

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from tests.bench.swarm import Swarm, now
from tests.support.wire import request_frame

VERSION = 1
REBALANCE_MS = 300_000
RETRY_SECONDS = 0.05
JOIN = 0
LEAVE = -1

JOIN_AGAIN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
TRY_AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class ConsumerGroup:
    """What the members of one group share; `trips`: seconds that heartbeats took."""

    def __init__(
        self,
        swarm: Swarm,
        port: int,
        group_id: str,
        beat_every_s: float,
        topic: str,
        partitions: int,
    ) -> None:
        self.swarm = swarm
        self.port = port
        self.group_id = group_id
        self.beat_every_s = beat_every_s
        self.topic = topic
        self.members: list[ConsumerMember] = []
        self.trips: list[float] = []
        self._partitions = partitions
        self.epochs: Counter[int] = Counter()
        self.sizes: Counter[int] = Counter()

    def add(self, count: int) -> "list[ConsumerMember]":
        """Connect so many members; they do nothing else yet."""
        new = [ConsumerMember(self, len(self.members) + number) for number in range(count)]
        self.members += new
        self.swarm.await_greetings()
        self.epochs[JOIN] += count
        self.sizes[0] += count
        return new

    def is_stable(self) -> bool:
        """Whether all members are in the same epoch, and all partitions are owned, evenly."""
        count = len(self.members)
        epoch = max(self.epochs)
        if epoch == JOIN or self.epochs[epoch] != count:
            return False
        fewer = self._partitions // count
        more = self._partitions % count
        return self.sizes[fewer] + self.sizes[fewer + 1] == count and (
            self.sizes[fewer + 1] == more
        )

    def disturb(self) -> None:
        """Begin a rebalance: a member leaves and comes back."""
        self.members[0].leave(comes_back=True)

    def leave(self) -> None:
        """Have all members leave."""
        for member in self.members:
            member.leave()
        self.swarm.run_until(lambda: all(member.has_left for member in self.members))

    @property
    def generation(self) -> int:
        """The newest epoch that anybody has heard of."""
        return max(self.epochs)


class ConsumerMember:
    """One member."""

    def __init__(self, group: ConsumerGroup, number: int) -> None:
        self._group = group
        self._client_id = f"consumer-{number}"
        self._member_id = str(uuid4())
        self._epoch = JOIN
        self._owned: list[ConsumerGroupHeartbeatTopicPartitions] = []
        self._size = 0
        self._beats = False
        self._leaves = self._comes_back = False
        self.has_left = False
        self._frame = b""  # of a heartbeat that says nothing new
        self._peer = group.swarm.connect(group.port, self._answered)

    def join(self) -> None:
        """Send the first heartbeat."""
        self._set(JOIN, [])
        self._peer.send(
            self._frame_of(
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[self._group.topic],
                topic_partitions=[],
            )
        )

    def beat(self) -> None:
        """Send a heartbeat, if the member has joined and nothing is under way."""
        if self._epoch > JOIN and not self._peer.is_waiting:
            self._peer.send(self._frame)

    def leave(self, *, comes_back: bool = False) -> None:
        """Leave, after the answer to what is under way."""
        self._leaves = True
        self._comes_back = comes_back
        if not self._peer.is_waiting:
            self._send_leave()

    def _send_leave(self) -> None:
        self._set(LEAVE, [])
        self._peer.send(self._frame_of())

    def _frame_of(self, **words: object) -> bytes:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            **words,  # type: ignore[arg-type] # its own fields
        )
        return request_frame(request, VERSION, 1, self._client_id)

    def _answered(self, answer: bytes) -> None:
        if self._epoch > JOIN:
            self._group.trips.append(now() - self._peer.sent_at)
        response: ConsumerGroupHeartbeatResponse = ConsumerGroupHeartbeatResponse.decode(
            answer[1:], VERSION
        )
        if self._epoch == LEAVE and self._comes_back:
            self._leaves = False
            self.join()
        elif self._epoch == LEAVE:
            self.has_left = True
        elif self._leaves:
            self._send_leave()
        elif response.error_code == ErrorCode.NONE:
            self._accepted(response)
        else:
            self._refused(response)

    def _refused(self, response: ConsumerGroupHeartbeatResponse) -> None:
        error = response.error_code
        if error in TRY_AGAIN:
            self._group.swarm.call_at(now() + RETRY_SECONDS, self.join)
        elif error in JOIN_AGAIN:
            self.join()
        else:
            what = f"{ErrorCode(error).name} ({response.error_message})"
            raise AssertionError(f"a member was refused: {what}")

    def _accepted(self, response: ConsumerGroupHeartbeatResponse) -> None:
        given = response.assignment
        owned = self._owned if given is None else given.topic_partitions
        is_new = self._size != _size(owned) or (given is not None and not self._owns(given))
        self._set(response.member_epoch, owned)
        if is_new:
            self._peer.send(self._frame_of(topic_partitions=owned))
        if not self._beats:
            self._beats = True
            self._beat_later()

    def _owns(self, given: ConsumerGroupHeartbeatAssignment) -> bool:
        return _pairs(given.topic_partitions) == _pairs(self._owned)

    def _set(self, epoch: int, owned: list[ConsumerGroupHeartbeatTopicPartitions]) -> None:
        group = self._group
        group.epochs[self._epoch] -= 1
        if not group.epochs[self._epoch]:
            del group.epochs[self._epoch]
        group.sizes[self._size] -= 1
        is_same_epoch = epoch == self._epoch
        self._epoch, self._owned, self._size = epoch, owned, _size(owned)
        group.epochs[epoch] += 1
        group.sizes[self._size] += 1
        if not is_same_epoch:
            self._frame = self._frame_of()

    def _beat_later(self) -> None:
        self._group.swarm.call_at(now() + self._group.beat_every_s, self._beat_in_time)

    def _beat_in_time(self) -> None:
        self._beat_later()
        self.beat()


def _size(owned: list[ConsumerGroupHeartbeatTopicPartitions]) -> int:
    return sum(len(topic.partitions) for topic in owned)


def _pairs(owned: list[ConsumerGroupHeartbeatTopicPartitions]) -> set[tuple[bytes, int]]:
    return {(topic.topic_id, index) for topic in owned for index in topic.partitions}
