"""Consumers of both protocols as a client library runs them, one step of their loop at a time.

They know only what they were answered, and read what they believe to own. An eager classic consumer
gives everything up before it joins again, a cooperative one says what it has and gives up what it
is no longer assigned. Both lead, where they are told that they do, by dealing out the partitions in
turn.
"""

from collections.abc import Sequence
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    decode_versioned,
    encode_versioned,
)
from tests.support.both_lives import assert_log_agrees
from tests.support.groups import GROUP, REBALANCE_MS, SESSION_MS, Waiting
from tests.support.heartbeats import Heartbeats

Place = tuple[str, int]
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
VERSION = 1  # of what consumers say: the first in which they say what they own


def by_topic(places: set[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found


def subscription_bytes(topics: Sequence[str], owned: set[Place], version: int = VERSION) -> bytes:
    said = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=_entries(owned),
    )
    return encode_versioned(said, version)


def assignment_bytes(places: set[Place], version: int = VERSION) -> bytes:
    return encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=_entries(places)), version
    )


def assigned_places(assignment: bytes) -> set[Place]:
    if not assignment:
        return set()
    read = decode_versioned(ConsumerProtocolAssignment, assignment)
    return {(entry.topic, one) for entry in read.assigned_partitions for one in entry.partitions}


def _entries(places: set[Place]) -> list[ConsumerTopicPartitions]:
    return [
        ConsumerTopicPartitions(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(places).items()
    ]


class ClassicConsumer:
    """A consumer of the classic protocol."""

    def __init__(
        self,
        beats: Heartbeats,
        *topics: str,
        instance: str | None = None,
        cooperative: bool = False,
        session_ms: int = SESSION_MS,
    ) -> None:
        self.beats = beats
        self.topics = list(topics)
        self.instance = instance
        self.cooperative = cooperative
        self.session_ms = session_ms
        self.member_id = ""
        self.generation = -1
        self.reads: set[Place] = set()
        self.last_error = ErrorCode.NONE
        self._synced_at = -1
        # A leader looks after the topics: how many partitions they had when it assigned them.
        self._dealt: int | None = None
        self._protocol: str | None = None
        self._waiting: Waiting | None = None
        self._step = self._join

    @property
    def protocols(self) -> dict[str, bytes]:
        name = "cooperative-sticky" if self.cooperative else "range"
        return dict.fromkeys((name, "roundrobin"), subscription_bytes(self.topics, self.reads))

    @property
    def knows_its_assignment(self) -> bool:
        """Whether it has synced since it joined; until then it commits nothing."""
        return self._synced_at == self.generation

    def poll(self) -> None:
        """One step: hear an answer that was waited for, else ask the next thing."""
        self._step()

    def leave(self) -> ErrorCode:
        leaving = [
            LeaveGroupMemberIdentity(
                member_id=self.member_id, group_instance_id=self.instance, reason="bye"
            )
        ]
        response = self.beats.groups.coordinator.members.leave_group(GROUP, leaving)
        assert isinstance(response, LeaveGroupResponse), "the decision takes long"
        self.beats.advance()
        self.reads = set()
        return ErrorCode(response.error_code or response.members[0].error_code)

    def commit(self, offset: int = 1) -> ErrorCode:
        """Commit a partition that it reads."""
        topic, partition = min(self.reads)
        return self.beats.groups.commit(
            offset,
            member_id=self.member_id,
            generation_id=self.generation,
            instance=self.instance,
            topic=(topic, self.beats.metadata.state.topics[topic].id),
            partition=partition,
        )

    def lose_connection(self) -> None:
        """What it waits for will not come: it asks again."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting, self._step = None, self._join

    def rejoin(self) -> None:
        """Ask to join again, of one's own accord."""
        if not self.cooperative:
            self.reads = set()
        self._step = self._join

    # -- its steps ---------------------------------------------------------------------------------

    def _join(self) -> None:
        response = self.beats.groups.send_join(
            self.member_id,
            instance=self.instance,
            protocols=self.protocols,
            session_ms=self.session_ms,
            rebalance_ms=REBALANCE_MS,
        )
        self._hear(response, self._joined)

    def _joined(self, response: JoinGroupResponse) -> None:
        self.last_error = ErrorCode(response.error_code)
        if self.last_error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif self.last_error in LOST:
            self._start_anew()
        elif self.last_error is ErrorCode.NONE:
            self.member_id, self.generation = response.member_id, response.generation_id
            self._protocol = response.protocol_name
            leads = response.leader == self.member_id and not response.skip_assignment
            assignments = self._assign(response) if leads else {}
            self._dealt = self._partition_count() if leads else None
            self._step = lambda: self._sync(assignments)

    def _sync(self, assignments: dict[str, bytes]) -> None:
        response = self.beats.groups.send_sync(
            self.member_id,
            self.generation,
            assignments,
            instance=self.instance,
            protocol_name=self._protocol,
        )
        self._hear(response, self._synced)

    def _synced(self, response: Any) -> None:
        self.last_error = ErrorCode(response.error_code)
        if self.last_error in LOST:
            self._start_anew()
        elif self.last_error is not ErrorCode.NONE:
            self._step = self._join
        else:
            assigned = assigned_places(response.assignment)
            revoked = self.reads - assigned
            self.reads, self._synced_at = assigned, self.generation
            self._step = self._join if revoked else self._heartbeat

    def _heartbeat(self) -> None:
        code = self.beats.groups.heartbeat(self.member_id, self.generation, instance=self.instance)
        self.last_error = code
        if code in LOST:
            self._start_anew()
        elif code is ErrorCode.REBALANCE_IN_PROGRESS or self._dealt not in (
            None,
            self._partition_count(),
        ):
            self.rejoin()

    def _partition_count(self) -> int:
        topics = self.beats.metadata.state.topics
        return sum(len(topics[name].partitions) for name in self.topics if name in topics)

    def _hear(self, response: Any, then: Any) -> None:
        if not isinstance(response, Waiting):
            self._step = self._join
            then(response)
            return
        self._waiting = response

        def hear() -> None:
            if response.done():
                self._waiting, self._step = None, self._join
                then(response.response)

        self._step = hear

    def _start_anew(self) -> None:
        if self.last_error is not ErrorCode.ILLEGAL_GENERATION:
            self.member_id = ""
        self.generation, self.reads = -1, set()
        self._step = self._join

    # -- as a leader -------------------------------------------------------------------------------

    def _assign(self, response: JoinGroupResponse) -> dict[str, bytes]:
        said = {
            member.member_id: decode_versioned(ConsumerProtocolSubscription, member.metadata)
            for member in response.members
        }
        dealt: dict[str, set[Place]] = {member_id: set() for member_id in said}
        owners = {
            (entry.topic, partition): member_id
            for member_id, words in said.items()
            for entry in words.owned_partitions
            for partition in entry.partitions
        }
        for name in sorted({topic for words in said.values() for topic in words.topics}):
            topic = self.beats.metadata.state.topics.get(name)
            able = sorted(member_id for member_id, words in said.items() if name in words.topics)
            for partition in topic.partitions if topic else ():
                member_id = able[partition % len(able)]
                # A cooperative member must have given it up before another one gets it.
                if owners.get((name, partition), member_id) == member_id:
                    dealt[member_id].add((name, partition))
        return {member_id: assignment_bytes(places) for member_id, places in dealt.items()}


class Consumer:
    """A consumer of the consumer protocol."""

    def __init__(
        self, beats: Heartbeats, member_id: str, *topics: str, instance: str | None = None
    ) -> None:
        self.beats = beats
        self.member_id = member_id
        self.topics = list(topics)
        self.instance = instance
        self.epoch = 0
        self.reads: set[Place] = set()
        self.last_error = ErrorCode.NONE

    @property
    def knows_its_assignment(self) -> bool:
        """Always: a heartbeat that joins brings it along."""
        return True

    def poll(self) -> None:
        """A heartbeat; it goes along at once with what it is told."""
        joins = self.epoch == 0
        answer = self.beats.beat(
            self.member_id,
            self.epoch,
            owned={} if joins else by_topic(self.reads),
            topics=self.topics if joins else None,
            instance=self.instance,
            rebalance_timeout_ms=REBALANCE_MS if joins else -1,
        )
        self.beats.advance()
        self.last_error = ErrorCode(answer.error_code)
        if self.last_error is not ErrorCode.NONE:
            if self.last_error is not ErrorCode.NOT_COORDINATOR:
                self.epoch, self.reads = 0, set()
            return
        self.epoch = answer.member_epoch
        assigned = self.beats.assigned(answer)
        if assigned is not None:
            self.reads = {(topic, one) for topic, ones in assigned.items() for one in ones}

    def leave(self) -> ErrorCode:
        code = self.beats.leave(self.member_id, instance=self.instance)
        self.beats.advance()
        self.epoch, self.reads = 0, set()
        return code

    def commit(self, offset: int = 1) -> ErrorCode:
        topic, partition = min(self.reads)
        return self.beats.groups.commit(
            offset,
            member_id=self.member_id,
            generation_id=self.epoch,
            topic=(topic, self.beats.metadata.state.topics[topic].id),
            partition=partition,
        )


def settle(beats: Heartbeats, *members: ClassicConsumer | Consumer) -> None:
    """Everybody goes on until all has been shared out; whatever is written, the log agrees.

    The topic is "t".
    """
    for _ in range(12):
        for member in members:
            before = beats.batches
            member.poll()
            if beats.batches > before:
                assert_log_agrees(beats.groups)
        beats.advance(100)
    shared = sorted(place for member in members for place in member.reads if place[0] == "t")
    assert shared == [("t", partition) for partition in beats.metadata.state.topics["t"].partitions]
