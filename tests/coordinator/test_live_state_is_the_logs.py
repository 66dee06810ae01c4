"""Whatever is said to a coordinator, its journaled state is what its log says.

The first invariant of ARCHITECTURE.md. The requests are random, most of them wrong; appends fail,
records do not fit or cannot be written. After each step the logs are read into a new coordinator,
and everything journaled is compared: so a failed append has changed nothing, and a restart at any
moment loses nothing that was journaled, and finds nothing else.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.groups import group_decisions
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.protocol.records.share_group import SHARE_GROUP_TYPES
from odradek.protocol.records.streams_group import STREAMS_GROUP_TYPES
from odradek.protocol.schema import Message, replace
from odradek.storage.log import AppendOrigin
from tests.support.both_lives import assert_cleaned_log_agrees, assert_log_agrees
from tests.support.groups import WALL_AHEAD_MS, subscription
from tests.support.heartbeats import Heartbeats
from tests.support.journals import CODEC
from tests.support.lengths import by_length
from tests.support.messages import sample
from tests.support.stretches import InSteps

GROUPS = ("g", "h", "s")
TOPICS = ("t", "u")
INSTANCES = (None, None, "i", "j")
MEMBERS = ("m1", "m2", "m3")
PROTOCOLS: tuple[Mapping[str, bytes], ...] = (
    {"range": subscription("t")},
    {"range": subscription("t", "u"), "sticky": subscription("u")},
    {"sticky": subscription("u")},
    {"range": b"not a subscription"},
)
# A client id that is no UTF-8 arrives with each of its bytes replaced by three: too long a string.
UNWRITABLE = "\N{REPLACEMENT CHARACTER}" * 20_000
FAILURES = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
groups = st.sampled_from(GROUPS)
# Most of the time a group has members of one protocol.
mostly_classic = st.sampled_from(["g", "g", "g", "h", "s"])
mostly_consumers = st.sampled_from(["h", "h", "h", "g", "s"])
one_in_six = st.integers(0, 5).map(lambda number: not number)
topics = st.sampled_from(TOPICS)
instances = st.sampled_from(INSTANCES)


class GroupsConversation(RuleBasedStateMachine):
    """Groups of both protocols and of others, their offsets, and those of transactions."""

    @initialize(in_steps=st.booleans())
    def start(self, in_steps: bool) -> None:
        """Decisions `in_steps` are replayed into copies of their groups."""
        slicer = InSteps() if in_steps else None
        self.few_records = group_decisions.FEW_RECORDS
        if in_steps:
            group_decisions.FEW_RECORDS = -1
        self.beats = Heartbeats(assignment_interval_ms=0, slicer=slicer)
        self.offsets = count(1)
        for name in TOPICS:
            self.beats.topic(name, 2)
        for instance in ("i", None):
            self.everybody_joins_and_syncs("g", instance)
        for member_id in MEMBERS[:2]:
            self.beats.join(member_id, "t", group_id="h")

    # -- classic members ---------------------------------------------------------------------------

    @rule(
        data=st.data(),
        group_id=mostly_classic,
        instance=instances,
        protocols=st.sampled_from(PROTOCOLS),
        protocol_type=st.sampled_from(["consumer", "consumer", "consumer", "connect"]),
        version=st.sampled_from([3, 3, 9]),
        unwritable=one_in_six,
        session_ms=st.sampled_from([10_000, 20_000]),
    )
    def join(self, data: st.DataObject, group_id: str, unwritable: bool, **words: Any) -> None:
        client_id = UNWRITABLE if unwritable else "client"
        member_id = self.a_member(data, group_id)
        self.beats.groups.send_join(member_id, group_id=group_id, client_id=client_id, **words)

    @rule(group_id=mostly_classic, newcomer=st.sampled_from([*INSTANCES, "nobody"]))
    def everybody_joins_and_syncs(self, group_id: str, newcomer: str | None) -> None:
        """What classic members do to make a stable group, here with one more."""
        send_join = partial(self.beats.groups.send_join, group_id=group_id, version=3)
        if newcomer != "nobody":
            send_join(instance=newcomer)
        group = self.state.find_classic(group_id)
        if group is None:
            return
        for member in [*group.members.values()]:
            send_join(
                member.member_id,
                instance=member.group_instance_id,
                protocols=dict(member.protocols),
                protocol_type=member.protocol_type,
                client_id=member.client_id,
            )
        shares = {one: b"share of " + one.encode() for one in group.members}
        for member_id in shares:
            self.send_sync(member_id, group.generation_id, shares, group_id=group_id)

    @rule(
        data=st.data(),
        group_id=mostly_classic,
        instance=instances,
        generation=st.sampled_from([None, 1]),
    )
    def sync(
        self, data: st.DataObject, group_id: str, instance: str | None, generation: int | None
    ) -> None:
        group = self.state.find_classic(group_id)
        if generation is None:
            generation = group.generation_id if group is not None else 0
        member_id = self.a_member(data, group_id)
        self.send_sync(member_id, generation, {}, group_id=group_id, instance=instance)

    @rule(data=st.data(), group_id=mostly_classic, instance=instances)
    def leave(self, data: st.DataObject, group_id: str, instance: str | None) -> None:
        who = self.a_member(data, group_id)
        identity = LeaveGroupMemberIdentity(member_id=who, group_instance_id=instance)
        self.beats.groups.coordinator.members.leave_group(group_id, [identity])

    @rule(group_id=mostly_classic, fails=st.booleans())
    def everybody_leaves(self, group_id: str, fails: bool) -> None:
        group = self.state.find_classic(group_id)
        members = group.members if group is not None else ()
        leaving = [LeaveGroupMemberIdentity(member_id=one) for one in members]
        if fails:
            self.beats.fail_next_append()
        self.beats.groups.coordinator.members.leave_group(group_id, leaving)

    def send_sync(self, *words: Any, **more: Any) -> None:
        self.beats.groups.send_sync(*words, protocol_type=None, **more)

    # -- consumers ---------------------------------------------------------------------------------

    @rule(
        member_id=st.sampled_from(MEMBERS),
        group_id=mostly_consumers,
        names=st.sampled_from([["t"], ["t", "u"], []]),
        regex=st.sampled_from(["", "", "t|u"]),
        instance=instances,
        unwritable=one_in_six,
    )
    def consumer_joins(
        self, member_id: str, names: list[str], unwritable: bool, **words: Any
    ) -> None:
        client_id = UNWRITABLE if unwritable else "client"
        self.beats.join(member_id, *names, client_id=client_id, **words)

    @rule(
        data=st.data(), group_id=mostly_consumers, epoch=st.sampled_from([None, None, None, -1, -2])
    )
    def consumer_beats(self, data: st.DataObject, group_id: str, epoch: int | None) -> None:
        """It says that it has what it is assigned, and so goes on towards its target."""
        group = self.state.find_consumer(group_id)
        if group is None or not group.members:
            return
        member = data.draw(st.sampled_from([*group.members.values()]))
        names = {topic.id: topic.name for topic in self.beats.metadata.state.topics.values()}
        self.beats.beat(
            member.member_id,
            member.member_epoch if epoch is None else epoch,
            owned={
                names[topic_id]: [*partitions]
                for topic_id, partitions in member.assigned.items()
                if topic_id in names
            },
            instance=member.instance_id,
            group_id=group_id,
        )

    # -- offsets -----------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        group_id=groups,
        name=topics,
        partition=st.integers(0, 1),
        retention_ms=st.sampled_from([-1, 5_000]),
        speaks_for_member=st.booleans(),
    )
    def commit(
        self,
        data: st.DataObject,
        group_id: str,
        name: str,
        partition: int,
        retention_ms: int,
        speaks_for_member: bool,
    ) -> None:
        member_id, epoch = "", -1
        if speaks_for_member:
            member_id, epoch = self.a_member(data, group_id), self.epoch(group_id)
        topic = self.beats.metadata.state.topics.get(name)
        if topic is None:
            return
        self.attempt(
            lambda: self.beats.groups.commit(
                next(self.offsets),
                member_id=member_id,
                generation_id=epoch,
                retention_ms=retention_ms,
                topic=(name, topic.id),
                partition=partition,
                group_id=group_id,
            )
        )

    @rule(group_id=groups, name=topics, producer_id=st.integers(1, 2))
    def a_transaction_has_committed_offsets_before_a_restart(
        self, group_id: str, name: str, producer_id: int
    ) -> None:
        key = OffsetCommitKey(group=group_id, topic=name, partition=0)
        value = OffsetCommitValue(offset=next(self.offsets), metadata="", commit_timestamp=0)
        self.write(CODEC.encode(JournalRecord(value, 4, key)), producer_id=producer_id)

    @rule(producer_id=st.integers(1, 2), commits=st.booleans())
    def a_transaction_has_ended_before_a_restart(self, producer_id: int, commits: bool) -> None:
        kind = ControlRecordType.COMMIT if commits else ControlRecordType.ABORT
        marker = (control_key(kind), end_txn_value(0))
        self.write(marker, producer_id=producer_id, is_control=True)

    @rule(types=st.sampled_from([SHARE_GROUP_TYPES, STREAMS_GROUP_TYPES]))
    def a_group_of_another_type_was_there_before_a_restart(
        self, types: Mapping[int, tuple[type[Message], type[Message]]]
    ) -> None:
        if self.state.groups.get("s") is None:
            keys = [replace(sample(key, 0), group_id="s") for key, _ in types.values()]
            values = [sample(value, 0) for _, value in types.values()]
            pairs = zip(keys, values, strict=True)
            self.write(*(CODEC.encode(JournalRecord(value, 0, key)) for key, value in pairs))

    def write(
        self, *stored: tuple[bytes, bytes | None], producer_id: int = -1, is_control: bool = False
    ) -> None:
        """What another broker has written before this one starts."""
        batch = build_batch(
            [Record(*one, 0) for one in stored],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=producer_id >= 0,
            is_control=is_control,
        )
        log = self.beats.groups.logs[0]
        log.fail_next = None
        log.append(batch, now_ms=WALL_AHEAD_MS, origin=AppendOrigin.COORDINATOR)
        self.restart()

    @rule(group_id=groups, name=topics)
    def delete_offsets(self, group_id: str, name: str) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=n) for n in range(2)]
        topic = OffsetDeleteRequestTopic(name=name, partitions=partitions)
        self.attempt(lambda: self.beats.groups.coordinator.offsets.delete(group_id, [topic]))

    @rule(group_id=groups)
    def delete_group(self, group_id: str) -> None:
        self.beats.groups.coordinator.admin.delete([group_id])

    # -- what happens to all -----------------------------------------------------------------------

    @rule(name=topics)
    def a_topic_goes_and_comes_back(self, name: str) -> None:
        topic = self.beats.metadata.state.topics[name]
        self.beats.delete(name)
        self.beats.groups.coordinator.retention.on_topics_deleted([(name, topic.id)])
        self.beats.topic(name, 2)

    @rule(by_ms=st.sampled_from([100, 100, 6_000, 61_000, 8 * 24 * 3_600_000]))
    def time_passes(self, by_ms: int) -> None:
        self.beats.advance(by_ms)

    @rule(error=st.sampled_from(FAILURES))
    def the_next_append_fails(self, error: ErrorCode) -> None:
        self.beats.fail_next_append(error)

    @rule()
    def restart(self) -> None:
        self.beats.groups.logs[0].fail_next = None
        self.beats = self.beats.restarted()

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def the_log_agrees(self) -> None:
        if hasattr(self, "beats"):
            assert_log_agrees(self.beats.groups)

    def teardown(self) -> None:
        """Everybody who waited is answered, if only when the time is up."""
        if not hasattr(self, "beats"):
            return
        group_decisions.FEW_RECORDS = self.few_records
        assert_cleaned_log_agrees(self.beats.groups)
        self.beats.groups.logs[0].fail_next = None
        for _ in range(4):
            self.beats.advance(301_000)
        classic = self.state.of_type(ClassicGroup)
        members = [one for group in classic for one in group.members.values()]
        assert not any(member.join_reply or member.sync_reply for member in members)
        self.the_log_agrees()

    # -- small words -------------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        return self.beats.groups.coordinator.shards.of("g").state

    def a_member(self, data: st.DataObject, group_id: str) -> str:
        """The id of a member, or of one that was promised to become one; or of nobody."""
        known = ["", "", "nobody"]
        group = self.state.find_classic(group_id)
        if group is not None:
            known += [*group.members, *group.pending_joins]
        consumers = self.state.find_consumer(group_id)
        if consumers is not None:
            known += consumers.members
        return data.draw(st.sampled_from(known))

    def epoch(self, group_id: str) -> int:
        classic = self.state.find_classic(group_id)
        if classic is not None:
            return classic.generation_id
        consumers = self.state.find_consumer(group_id)
        return consumers.epoch if consumers is not None else 0

    @staticmethod
    def attempt(call: Callable[[], object]) -> None:
        with suppress(ApiError):
            call()


GroupsConversation.TestCase.settings = settings(
    max_examples=by_length(12, 300), stateful_step_count=by_length(40, 80), deadline=None
)
TestGroups = pytest.mark.slow(GroupsConversation.TestCase)
