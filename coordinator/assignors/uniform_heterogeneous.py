"""The uniform assignor for members that subscribe to different topics.

Guarantee: for each topic, the loads of its subscribers differ by at most one, or no move of a
partition of that topic improves them (the more loaded subscribers own none of it, or the limit of
rounds below is reached). If all subscribers of a topic have the same subscription, this is the best
possible balance. If subscriptions overlap, loads may still differ from topic to topic (9, 10, 11),
because chains of moves through several topics are not searched. The number of moves is not minimal
either: topics are balanced one after the other, so a member may give a partition of one topic and
get one of the next.

Three steps:
1. Every member keeps the partitions of its target whose topic it still subscribes to.
2. Each free partition goes to the least loaded subscriber of its topic. Topics with the most
   partitions per subscriber come first (they leave the least choice), then topics with fewer
   subscribers, then by id.
3. Topic by topic in that order, partitions move from the most to the least loaded subscribers until
   their loads differ by at most one. This repeats until a whole round moves nothing, at most 16
   times.

Members are represented by their index in the order of their ids, which also breaks ties. `_owners`
is the whole assignment. At the end, targets are made from it for the members that have changed.

Kafka: UniformHeterogeneousAssignmentBuilder. Given the same order of members, the result is equal.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable

from odradek.coordinator.runtime.steps import Step, in_order, stepping, stepping_if_many
from odradek.protocol.primitives import uuid_text

from .assignment import NOTHING, Assignment, AssignorError, GroupSpec, TopicsView
from .load_levels import LeastLoadedFirst, MostLoadedFirst
from .uniform_homogeneous import partition_count

MAX_ROUNDS = 16
_NO_OWNER = -1
_UUID = struct.Struct(">qq")  # Java compares the halves of a Uuid as signed numbers


class HeterogeneousBuilder:
    """Computes one assignment; call `build` once."""

    def __init__(self, spec: GroupSpec, topics: TopicsView, step: Step) -> None:
        """Raises AssignorError for an unknown topic."""
        self._step = step
        self._members = [spec.members[member_id] for member_id in sorted(spec.members)]
        self._loads = [0] * len(self._members)
        self._touched: set[int] = set()
        self._subscribers: defaultdict[bytes, list[int]] = defaultdict(list)
        for index, member in enumerate(self._members):
            for topic_id in stepping(member.subscribed_topic_ids, step):
                self._subscribers[topic_id].append(index)
        self._owners = {
            topic_id: [_NO_OWNER] * partition_count(topics, topic_id)
            for topic_id in stepping(sorted(self._subscribers), step)
        }

    def build(self) -> dict[str, Assignment]:
        """Return the new target of every member. Raises AssignorError."""
        self._keep_targets()
        topic_ids = list(in_order(list(self._owners), self._step, key=self._rank))
        for topic_id in topic_ids:
            self._distribute(topic_id)
        self._balance([each for each in topic_ids if len(self._subscribers[each]) > 1])
        return self._targets()

    def _rank(self, topic_id: bytes) -> tuple[float, int, tuple[int, ...]]:
        count, subscribers = len(self._owners[topic_id]), len(self._subscribers[topic_id])
        return -count / subscribers, subscribers, _UUID.unpack(topic_id)

    def _keep_targets(self) -> None:
        for index, member in enumerate(self._members):
            for topic_id, partitions in stepping(member.assignment.items(), self._step):
                if topic_id not in member.subscribed_topic_ids:
                    self._touched.add(index)
                    continue
                owners = self._owners[topic_id]
                if max(partitions, default=-1) >= len(owners):
                    raise AssignorError(
                        f"{member.member_id} has partition {max(partitions)} of topic "
                        f"{uuid_text(topic_id)}, which has {len(owners)}"
                    )
                for partition in partitions:
                    owners[partition] = index
                self._loads[index] += len(partitions)

    def _distribute(self, topic_id: bytes) -> None:
        owners = self._owners[topic_id]
        if _NO_OWNER not in owners:
            return
        takers = LeastLoadedFirst(self._by_load(topic_id), self._loads)
        for partition, owner in enumerate(stepping(owners, self._step)):
            if owner == _NO_OWNER:
                self._move(owners, partition, takers.take())

    def _by_load(self, topic_id: bytes) -> list[int]:
        """Return the topic's subscribers by ascending load, then by index."""
        return sorted(self._subscribers[topic_id], key=self._loads.__getitem__)

    def _move(self, owners: list[int], partition: int, taker: int) -> None:
        giver = owners[partition]
        if giver != _NO_OWNER:
            self._loads[giver] -= 1
            self._touched.add(giver)
        owners[partition] = taker
        self._loads[taker] += 1
        self._touched.add(taker)

    def _balance(self, topic_ids: list[bytes]) -> None:
        last_moved: bytes | None = None
        for _ in range(MAX_ROUNDS):
            for topic_id in stepping(topic_ids, self._step):
                if topic_id == last_moved:
                    return  # a whole round without a move
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Balance the subscribers of one topic. Return whether any partition moved."""
        owners = self._owners[topic_id]
        busiest_owner = max(map(self._loads.__getitem__, owners), default=0)
        if busiest_owner - min(map(self._loads.__getitem__, self._subscribers[topic_id])) <= 1:
            return False
        held = _by_owner(stepping(owners, self._step))
        subscribers = self._by_load(topic_id)
        takers = LeastLoadedFirst(subscribers, self._loads)
        givers = MostLoadedFirst(subscribers, self._loads)
        has_moved = False
        while (giver := _next_giver(givers, held)) is not None:
            self._step()
            taker = takers.take()
            if givers.level - takers.level <= 1:
                break
            self._move(owners, held[giver].pop(), taker)
            has_moved = True
        return has_moved

    def _targets(self) -> dict[str, Assignment]:
        fresh: dict[int, dict[bytes, list[int]]] = {index: {} for index in self._touched}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(stepping(owners, self._step)):
                if owner in fresh:
                    fresh[owner].setdefault(topic_id, []).append(partition)
        targets = {member.member_id: member.assignment for member in self._members}
        for index, topics in stepping(fresh.items(), self._step):
            member = self._members[index]
            topic_ids = stepping_if_many(topics, self._step)
            target = {topic_id: frozenset(topics[topic_id]) for topic_id in topic_ids}
            if target != member.assignment:
                targets[member.member_id] = target or NOTHING
        return targets


def _by_owner(owners: Iterable[int]) -> dict[int, list[int]]:
    """Return the partitions by owner, ascending; the last ones move first."""
    held: dict[int, list[int]] = {}
    for partition, owner in enumerate(owners):
        held.setdefault(owner, []).append(partition)
    return held


def _next_giver(givers: MostLoadedFirst, held: dict[int, list[int]]) -> int | None:
    """Return the most loaded subscriber that owns partitions of the topic; None if none does."""
    while (giver := givers.give()) is not None and not held.get(giver):
        givers.exclude()
    return giver
