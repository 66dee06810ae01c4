"""Streams groups: heartbeats by hand (KIP-1071), and how the groups are described.

Targets are computed at once: the groups' `streams.assignment.interval.ms` and
`streams.initial.rebalance.delay.ms` are set to 0.
"""

import time
from typing import Any

import msgspec
from msgspec.structs import replace

from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatEndpoint,
    StreamsGroupHeartbeatKeyValue,
    StreamsGroupHeartbeatTaskOffset,
)
from odradek.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsTopologyUpdateDescription,
    StreamsTopologyUpdateGlobalStore,
    StreamsTopologyUpdateNode,
    StreamsTopologyUpdateSubtopology,
)
from tests.conformance.conversation import Conversation, patiently
from tests.conformance.streams_member import (
    COORDINATOR_LAG_S,
    GROUP_RESOURCE,
    NEWEST,
    ask,
    beat,
    configure,
    describe,
    join,
    reading,
)
from tests.support.config_requests import alter_configs_request
from tests.support.streams_members import internal, subtopology, task_list, topology


def _wait_for_topics(talk: Conversation, *names: str) -> None:
    """Return when the broker has created internal topics."""
    for name in names:
        talk.wait_for_topic(name)


# -- requests that are refused ---------------------------------------------------------------------


def streams_heartbeats_are_checked(talk: Conversation) -> None:
    group = "streams-checked"
    talk.create_topic("streams-source", 1)
    configure(talk, group)
    plain = reading("streams-source")
    a_tag = StreamsGroupHeartbeatTaskOffset(subtopology_id="0", partition=0, offset=1)
    for wrong in (
        join("", "m", plain),
        join(" \t", "m", plain),
        join(group, "", plain),
        join(group, "m", plain, instance_id="i"),
        join(group, "m", plain, rack_id=" "),
        join(group, "m", plain, rebalance_timeout_ms=-1),
        join(group, "m", None),
        join(group, "m", plain, active_tasks=None),
        join(group, "m", plain, standby_tasks=None),
        join(group, "m", plain, warmup_tasks=None),
        join(group, "m", plain, active_tasks=task_list({"0": [0]})),
        join(group, "m", plain, warmup_tasks=task_list({"0": [0]})),
        join(group, "m", plain, task_offsets=[]),
        join(group, "m", plain, task_end_offsets=[a_tag]),
        join(group, "m", topology(subtopology("0", "__consumer_offsets"))),
        join(group, "m", topology(subtopology("0", "not a topic"))),
        join(
            group,
            "m",
            topology(subtopology("0", "streams-source", changelogs=[internal("log", 3)])),
        ),
        beat(group, "", 1),
        beat(group, "", -1),
        beat(group, "m", -2),
        beat(group, "m", -2, instance_id="i"),
        beat(group, "m", -3),
        beat(group, "m", 1),
        beat(group, "m", -1),
        beat(group, "m", 1, topology=plain),
        beat(group, "m", 1, owned={}, active_tasks=None),
        beat(group, "m", 1, owned={}, standby_tasks=None),
    ):
        ask(talk, wrong)


def streams_topologies_that_cannot_work(talk: Conversation) -> None:
    talk.create_topic("streams-good", 2)
    wrong = {
        "nothing": topology(subtopology("0")),
        "empty": topology(),
        "loop": topology(
            subtopology("0", reads=[internal("loop-b")], writes=["loop-a"]),
            subtopology("1", reads=[internal("loop-a")], writes=["loop-b"]),
        ),
        "unwritten": topology(subtopology("0", "streams-good", reads=[internal("never")])),
        "twice": topology(subtopology("0", "streams-good"), subtopology("0", "streams-good")),
        "index": topology(subtopology("0", "streams-good", joined=[([7], [])])),
        "negative": topology(
            subtopology("0", "streams-good", writes=["minus"]),
            subtopology("1", reads=[internal("minus", -1)]),
        ),
    }
    for name, one in wrong.items():
        group = f"streams-wrong-{name}"
        configure(talk, group)
        ask(talk, join(group, "m", one))
        describe(talk, group)


# -- members and tasks -----------------------------------------------------------------------------


def a_streams_member_joins_goes_on_and_leaves(talk: Conversation) -> None:
    talk.create_topic("streams-one", 3)
    group, mine = "streams-one-member", {"0": [0, 1, 2]}
    configure(talk, group)
    ask(talk, join(group, "me", reading("streams-one"), client_tags=_tags(zone="a")))
    describe(talk, group)
    ask(talk, beat(group, "me", 2))
    ask(talk, beat(group, "me", 2, owned=mine))
    ask(talk, beat(group, "me", 2, owned={"0": [0]}))
    ask(talk, beat(group, "me", 2, owned={"0": [3]}))
    ask(talk, beat(group, "me", 2, owned={"1": [0]}))
    for epoch in (1, 3, 99):
        ask(talk, beat(group, "me", epoch, owned=mine))
    ask(talk, beat(group, "stranger", 2))
    ask(talk, beat(group, "me", 2, client_tags=_tags(zone="b")))
    ask(talk, beat(group, "me", 3, owned=mine, process_id="another"))
    describe(talk, group)
    ask(talk, join(group, "me", reading("streams-one")))
    describe(talk, group)
    ask(talk, beat(group, "me", -1))
    ask(talk, beat(group, "me", -1))
    ask(talk, beat(group, "me", 5))
    describe(talk, group)


def _tags(**tags: str) -> list[StreamsGroupHeartbeatKeyValue]:
    return [StreamsGroupHeartbeatKeyValue(key=key, value=value) for key, value in tags.items()]


def two_streams_processes_share_and_hand_over(talk: Conversation) -> None:
    talk.create_topic("streams-two", 4)
    group, plain = "streams-two-members", reading("streams-two")
    everything, half = {"0": [0, 1, 2, 3]}, {"0": [0, 1]}
    configure(talk, group)
    ask(talk, join(group, "first", plain))
    ask(talk, beat(group, "first", 2, owned=everything))
    ask(talk, join(group, "second", plain))
    describe(talk, group)
    ask(talk, beat(group, "second", 3))
    ask(talk, beat(group, "first", 2))
    ask(talk, beat(group, "first", 2, owned=everything))
    describe(talk, group)
    ask(talk, beat(group, "second", 3, owned={}))
    ask(talk, beat(group, "first", 2, owned=half))
    ask(talk, beat(group, "first", 3, owned=half))
    ask(talk, beat(group, "second", 3, owned={}))
    ask(talk, beat(group, "second", 3, owned={"0": [2, 3]}))
    describe(talk, group)
    ask(talk, beat(group, "first", -1))
    ask(talk, beat(group, "second", 3, owned={"0": [2, 3]}))
    describe(talk, group)


def streams_standby_tasks(talk: Conversation) -> None:
    talk.create_topic("streams-copied", 1)
    talk.create_topic("streams-copied-log", 1)
    group = "streams-copies"
    configure(talk, group, streams_num_standby_replicas="1")
    time.sleep(COORDINATOR_LAG_S)
    sent = topology(subtopology("0", "streams-copied", changelogs=[internal("streams-copied-log")]))
    ask(talk, join(group, "first", sent))
    ask(talk, join(group, "second", sent))
    ask(talk, beat(group, "first", 2, owned={"0": [0]}))
    ask(talk, beat(group, "second", 3, owned={}))
    describe(talk, group)
    ask(talk, beat(group, "first", -1))
    standby = task_list({"0": [0]})
    ask(talk, beat(group, "second", 3, owned={}, standby_tasks=standby))
    ask(talk, beat(group, "second", 3, owned={}))
    ask(talk, beat(group, "second", 4, owned={}))
    describe(talk, group)
    talk.silently(
        alter_configs_request(GROUP_RESOURCE, group, {"streams.num.standby.replicas": "0"}), 1
    )
    time.sleep(COORDINATOR_LAG_S)
    ask(talk, beat(group, "second", 4))
    describe(talk, group)


def a_streams_member_with_another_topology(talk: Conversation) -> None:
    talk.create_topic("streams-stale", 1)
    group = "streams-stale-topology"
    configure(talk, group)
    ask(talk, join(group, "first", reading("streams-stale", epoch=2)))
    ask(talk, join(group, "older", reading("streams-stale", epoch=1)))
    ask(talk, beat(group, "older", 3))
    ask(talk, join(group, "newer", reading("streams-stale", epoch=3)))
    ask(talk, join(group, "other", reading("streams-stale-not", epoch=2)))
    describe(talk, group)


def a_streams_shutdown_is_told_to_all(talk: Conversation) -> None:
    talk.create_topic("streams-stopped", 2)
    group, plain = "streams-stopping", reading("streams-stopped")
    configure(talk, group)
    ask(talk, join(group, "first", plain, shutdown_application=True))
    ask(talk, beat(group, "first", 2))
    ask(talk, join(group, "second", plain))
    ask(talk, beat(group, "first", 2, shutdown_application=True))
    ask(talk, beat(group, "second", 3))
    ask(talk, beat(group, "first", -1))
    ask(talk, beat(group, "second", 3, owned={}))
    ask(talk, beat(group, "second", -1, shutdown_application=True))
    ask(talk, join(group, "third", plain))


def endpoints_of_streams_members(talk: Conversation) -> None:
    talk.create_topic("streams-queried", 2)
    group, plain = "streams-queries", reading("streams-queried")
    configure(talk, group)
    first = StreamsGroupHeartbeatEndpoint(host="one", port=8080)
    second = StreamsGroupHeartbeatEndpoint(host="two", port=65535)
    ask(talk, join(group, "first", plain, user_endpoint=first))
    ask(talk, beat(group, "first", 2))
    ask(talk, beat(group, "first", 2, endpoint_information_epoch=-1))
    ask(talk, join(group, "second", plain, user_endpoint=second))
    ask(talk, beat(group, "first", 2, owned={"0": [0, 1]}, endpoint_information_epoch=1))
    ask(talk, beat(group, "first", 2, owned={"0": [0]}, endpoint_information_epoch=2))
    ask(talk, beat(group, "second", 3, owned={}, endpoint_information_epoch=1))
    ask(talk, beat(group, "second", 3, endpoint_information_epoch=3))
    describe(talk, group)


def a_static_streams_member_keeps_its_place(talk: Conversation) -> None:
    talk.create_topic("streams-kept", 2)
    group, plain, mine = "streams-keeps", reading("streams-kept"), {"0": [0, 1]}
    configure(talk, group)
    ask(talk, join(group, "one", plain, instance_id="i"))
    ask(talk, beat(group, "one", 2, owned=mine, instance_id="i"))
    ask(talk, join(group, "two", plain, instance_id="i"))
    ask(talk, beat(group, "two", 2, instance_id="i"))
    ask(talk, beat(group, "two", -2, instance_id="i"))
    ask(talk, beat(group, "two", -1, instance_id="i"))
    ask(talk, beat(group, "one", 2, instance_id="j"))
    ask(talk, beat(group, "one", -1, instance_id="j"))
    ask(talk, beat(group, "one", 2, instance_id=""))
    ask(talk, beat(group, "one", -2, instance_id="i"))
    describe(talk, group)
    ask(talk, beat(group, "one", 2, instance_id="i"))
    ask(talk, join(group, "two", plain, instance_id="i"))
    describe(talk, group)
    ask(talk, beat(group, "one", 2, owned=mine, instance_id="i"))
    ask(talk, beat(group, "two", 2, owned=mine, instance_id="i"))
    ask(talk, beat(group, "two", -1, instance_id="i"))
    describe(talk, group)


def offsets_of_streams_tasks_are_shown(talk: Conversation) -> None:
    talk.create_topic("streams-restored", 2)
    group = "streams-restores"
    configure(
        talk,
        group,
        streams_acceptable_recovery_lag="5000000000",
        streams_task_offset_interval_ms="15000",
        streams_num_warmup_replicas="1",
    )
    time.sleep(COORDINATOR_LAG_S)
    first, again = _offset(0, 7), _offset(1, 2**62)
    ask(talk, join(group, "m", reading("streams-restored"), task_offsets=[first]))
    ask(talk, join(group, "m", reading("streams-restored"), task_end_offsets=[first, again]))
    ask(talk, join(group, "m", reading("streams-restored")))
    mine = {"0": [0, 1]}
    for words in (
        {"task_offsets": [first, again]},
        {"task_end_offsets": [again]},
        {"task_offsets": []},
        {"task_offsets": [first, first]},
        {"task_offsets": [_offset(9, 1)]},
        {"task_offsets": [_offset(-1, -1)]},
        {"task_offsets": [_offset(0, 1, subtopology="9")]},
        {"task_offsets": [first], "task_end_offsets": [again, again]},
    ):
        ask(talk, beat(group, "m", 2, owned=mine, **words))
        describe(talk, group)


def _offset(partition: int, offset: int, subtopology: str = "0") -> StreamsGroupHeartbeatTaskOffset:
    return StreamsGroupHeartbeatTaskOffset(
        subtopology_id=subtopology, partition=partition, offset=offset
    )


def streams_requests_of_version_0(talk: Conversation) -> None:
    talk.create_topic("streams-older", 2)
    group, plain, mine = "streams-old", reading("streams-older"), {"0": [0, 1]}
    configure(talk, group, streams_acceptable_recovery_lag="20000")
    time.sleep(COORDINATOR_LAG_S)
    for version in (0, 1):
        ask(talk, join(group, "m", plain), version)
        ask(talk, beat(group, "m", 2, owned=mine), version)
        describe(talk, group, "streams-old-not", "", version=version)
        ask(talk, beat(group, "m", 9), version)
        ask(talk, beat(group, "", 9), version)
    _recover(talk, group, str(2**31 - 1))
    _recover(talk, group, str(2**31))
    _recover(talk, group, str(2**63 - 1))


def _recover(talk: Conversation, group: str, lag: str) -> None:
    """A lag that version 0 has no room for."""
    change = {"streams.acceptable.recovery.lag": lag}
    talk.ask(alter_configs_request(GROUP_RESOURCE, group, change), 1)
    time.sleep(COORDINATOR_LAG_S)
    for version in (0, 1):
        ask(talk, beat(group, "m", 2), version)


def descriptions_of_topologies_are_refused(talk: Conversation) -> None:
    talk.create_topic("streams-shown", 1)
    group = "streams-shows"
    configure(talk, group)
    ask(talk, join(group, "m", reading("streams-shown")))
    source = StreamsTopologyUpdateNode(
        name="source",
        node_type=1,
        source_topics=["streams-shown"],
        sink_topic=None,
        stores=[],
        successors=["sink"],
    )
    sink = replace(
        source, name="sink", node_type=9, source_topics=[], sink_topic="x", successors=["sink"]
    )
    for description in (
        StreamsTopologyUpdateDescription(subtopologies=[], global_stores=[]),
        StreamsTopologyUpdateDescription(
            subtopologies=[
                StreamsTopologyUpdateSubtopology(subtopology_id="0", nodes=[source, sink])
            ],
            global_stores=[StreamsTopologyUpdateGlobalStore(source=source, processor=sink)],
        ),
    ):
        for group_id, member, epoch in (
            *((group, "m", 0), (group, "m", 7), (group, "m", -1), (group, "other", 0)),
            *((group, "", 0), ("streams-shows-not", "m", 0), ("", "m", 0)),
        ):
            request = StreamsGroupTopologyDescriptionUpdateRequest(
                group_id=group_id,
                member_id=member,
                topology_epoch=epoch,
                topology_description=description,
            )
            talk.ask(request, 0)
    describe(talk, group)


# -- topics ----------------------------------------------------------------------------------------


def streams_source_topics_that_are_missing(talk: Conversation) -> None:
    group = "streams-missing"
    configure(talk, group)
    sent = topology(subtopology("0", "streams-late", "streams-later"))
    ask(talk, join(group, "m", sent))
    describe(talk, group)
    ask(talk, beat(group, "m", 2, owned={}))
    talk.create_topic("streams-late", 2)
    _wait_for_epoch(talk, group, "m", 3)
    talk.create_topic("streams-later", 3)
    _wait_for_epoch(talk, group, "m", 4)
    ask(talk, beat(group, "m", 4, owned={"0": [0, 1, 2]}))
    describe(talk, group)
    wish = CreatePartitionsTopic(name="streams-late", count=4, assignments=None)
    talk.silently(CreatePartitionsRequest(topics=[wish], timeout_ms=9_000, validate_only=False), 3)
    _wait_for_epoch(talk, group, "m", 5)
    describe(talk, group)


def _wait_for_epoch(talk: Conversation, group: str, member: str, epoch: int) -> None:
    """Heartbeats until the member has an epoch: the coordinator learns of topics in its time."""

    def reached() -> bool | None:
        answer = talk.silently(beat(group, member, epoch - 1), NEWEST)
        if answer.error_code:  # its answer with the new epoch has come
            answer = talk.silently(beat(group, member, epoch), NEWEST)
        return answer.member_epoch == epoch or None

    patiently(reached)


def streams_internal_topics_are_created(talk: Conversation) -> None:
    talk.create_topic("streams-lines", 3)
    group = "streams-creates"
    names = [f"{group}-{name}" for name in ("words", "fixed", "counts", "sums")]
    words, fixed, counts, sums = names
    compacted = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    sent = topology(
        subtopology("0", "streams-lines", writes=[words, fixed]),
        subtopology("1", reads=[internal(words)], changelogs=[internal(counts, 0, compacted)]),
        subtopology("2", reads=[internal(fixed, 5)], changelogs=[internal(sums)]),
    )
    configure(talk, group)
    ask(talk, join(group, "m", sent))
    describe(talk, group)
    _wait_for_topics(talk, *names)
    _wait_for_epoch(talk, group, "m", 3)
    ask(talk, beat(group, "m", 3))
    describe(talk, group)
    for name in names:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        found = talk.silently(request, 12).topics[0]
        talk.transcript.write(f"partitions of {name}", len(found.partitions))


def streams_internal_topics_of_another_size(talk: Conversation) -> None:
    talk.create_topic("streams-sized", 3)
    talk.create_topic("streams-sized-log", 2)
    group = "streams-sizes"
    configure(talk, group)
    sent = topology(subtopology("0", "streams-sized", changelogs=[internal("streams-sized-log")]))
    ask(talk, join(group, "m", sent))
    describe(talk, group)


def streams_topics_that_are_joined(talk: Conversation) -> None:
    talk.create_topic("streams-left", 2)
    talk.create_topic("streams-right", 3)
    talk.create_topic("streams-even", 2)
    cases = {
        "differ": topology(
            subtopology("0", "streams-left", "streams-right", joined=[([0, 1], [])])
        ),
        "agree": topology(subtopology("0", "streams-left", "streams-even", joined=[([0, 1], [])])),
        "follow": topology(
            subtopology("0", "streams-right", writes=["follow-repartition"]),
            subtopology(
                "1", "streams-left", reads=[internal("follow-repartition")], joined=[([0], [0])]
            ),
        ),
        "fixed": topology(
            subtopology("0", "streams-right", writes=["fixed-repartition"]),
            subtopology(
                "1", "streams-left", reads=[internal("fixed-repartition", 5)], joined=[([0], [0])]
            ),
        ),
        "largest": topology(
            subtopology("0", "streams-left", writes=["largest-a"]),
            subtopology("1", "streams-right", writes=["largest-b"]),
            subtopology(
                "2", reads=[internal("largest-a"), internal("largest-b")], joined=[([], [0, 1])]
            ),
        ),
    }
    for name, sent in cases.items():
        group = f"streams-joins-{name}"
        configure(talk, group)
        ask(talk, join(group, "m", sent))
        describe(talk, group)
    _wait_for_topics(talk, "follow-repartition", "largest-a", "largest-b")
    for name in ("follow", "largest"):
        _wait_for_epoch(talk, f"streams-joins-{name}", "m", 3)
        describe(talk, f"streams-joins-{name}")


# -- offsets, other types of group, deletion -------------------------------------------------------


def _commit(group: str, member: str, epoch: int, topic: str, partition: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=1, committed_metadata=None
                    )
                ],
            )
        ],
    )


def streams_offsets_are_committed_with_epochs(talk: Conversation) -> None:
    topic = "streams-offsets"
    talk.create_topic(topic, 2)
    talk.create_topic("streams-elsewhere", 1)
    group = "streams-committing"
    configure(talk, group)
    talk.ask(_commit(group, "m", 2, topic, 0), 9)
    ask(talk, join(group, "m", reading(topic)))
    for version in (8, 9):
        for member, epoch in (("m", 2), ("m", 1), ("m", 3), ("", -1), ("stranger", 2)):
            talk.ask(_commit(group, member, epoch, topic, 0), version)
    ask(talk, beat(group, "m", 2, client_tags=_tags(zone="a")))
    for name, partition in ((topic, 0), (topic, 1), (topic, 9), ("streams-elsewhere", 0)):
        talk.ask(_commit(group, "m", 2, name, partition), 9)
    for member, epoch in (("m", 3), ("m", 2), ("stranger", 3), (None, -1), ("", -1)):
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])],
        )
        talk.ask(OffsetFetchRequest(groups=[wanted]), 9)
    for name in (topic, "streams-elsewhere"):
        wish = OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        talk.ask(OffsetDeleteRequest(group_id=group, topics=[wish]), 0)
    ask(talk, beat(group, "m", -1))
    talk.ask(_commit(group, "", -1, topic, 1), 9)


def streams_groups_and_other_types(talk: Conversation) -> None:
    topic = "streams-typed"
    talk.create_topic(topic, 1)
    streams, classic = "streams-typed-group", "streams-was-classic"
    for group in (streams, classic):
        configure(talk, group)
    ask(talk, join(streams, "m", reading(topic)))
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    classic_join = JoinGroupRequest(
        group_id=streams,
        session_timeout_ms=9_000,
        rebalance_timeout_ms=9_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )
    talk.ask(classic_join, 5)
    talk.ask(HeartbeatRequest(group_id=streams, generation_id=1, member_id="m"), 4)
    talk.ask(_commit(classic, "", -1, topic, 0), 9)
    describe(talk, classic, "streams-nowhere", "")
    ask(talk, join(classic, "m", reading(topic)))
    describe(talk, classic)


def streams_groups_are_listed_and_deleted(talk: Conversation) -> None:
    topic = "streams-listed"
    talk.create_topic(topic, 1)
    group = "streams-deleted"
    configure(talk, group)
    ask(talk, join(group, "m", reading(topic)))
    for states in (["Stable"], ["Empty"], ["NotReady"], ["not_ready"]):
        talk.ask(ListGroupsRequest(states_filter=states, types_filter=["streams"]), 5, _only(group))
        if states == ["Stable"]:
            talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
            ask(talk, beat(group, "m", -1))
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    describe(talk, group)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    ask(talk, join(group, "m", reading(topic)))
    describe(talk, group)


def _only(group: str) -> Any:
    """Leave the groups of other conversations out."""

    def change(answer: Any) -> Any:
        groups = [one for one in answer.groups if one.group_id == group]
        return msgspec.structs.replace(answer, groups=groups)

    return change
