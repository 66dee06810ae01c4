"""The uniform assignor for members that subscribe to different topics.

What it promises: among the subscribers of any one topic loads differ by at most one, or no more can
be had by moving a partition of that topic (the busier ones have none of it, or the rounds below are
used up). Where all subscribers of a topic subscribe to the same topics, that is the best balance
there is; where subscriptions overlap, loads may still slope from topic to topic (9, 10, 11), for
chains of moves through several topics are not looked for. Nor are moves the fewest possible, as
topics are evened out one after the other: a member may give of one what it gets back of the next.

Three steps:
1. every member keeps the partitions of its target whose topic it still subscribes to;
2. the partitions nobody holds go to the least loaded subscriber, one by one, the topics with most
   partitions a subscriber first (they leave the least choice), ties to the topic with fewer
   subscribers, then by id;
3. topic by topic in that order, partitions move from the most to the least loaded subscribers until
   their loads differ by no more than one; again and again, until a whole round has moved nothing,
   at most 16 times.

Members are numbers here, in the order of their ids, which also breaks the ties. `_owners` is the
whole assignment; targets are written from it at the end, for those members only that were touched.

Kafka: UniformHeterogeneousAssignmentBuilder. Given the same order of members, the result is equal.
"""

import struct
from collections import defaultdict

from odradek.protocol.primitives import uuid_text

from .assignment import NOTHING, Assignment, AssignorError, GroupSpec, TopicsView
from .load_levels import LeastLoadedFirst, MostLoadedFirst
from .uniform_homogeneous import partition_count

MAX_ROUNDS = 16
_NO_OWNER = -1
_UUID = struct.Struct(">qq")  # Java compares the halves of a Uuid with their sign


class HeterogeneousBuilder:
    """One assignment in the making; `build` once."""

    def __init__(self, spec: GroupSpec, topics: TopicsView) -> None:
        """Raises AssignorError for a topic that does not exist."""
        self._members = [spec.members[member_id] for member_id in sorted(spec.members)]
        self._loads = [0] * len(self._members)
        self._touched: set[int] = set()
        self._subscribers: defaultdict[bytes, list[int]] = defaultdict(list)
        for index, member in enumerate(self._members):
            for topic_id in member.subscribed_topic_ids:
                self._subscribers[topic_id].append(index)
        self._owners = {
            topic_id: [_NO_OWNER] * partition_count(topics, topic_id)
            for topic_id in sorted(self._subscribers)
        }

    def build(self) -> dict[str, Assignment]:
        """The new target of every member; raises AssignorError."""
        self._keep_targets()
        in_order = sorted(self._owners, key=self._rank)
        for topic_id in in_order:
            self._distribute(topic_id)
        self._balance([each for each in in_order if len(self._subscribers[each]) > 1])
        return self._targets()

    def _rank(self, topic_id: bytes) -> tuple[float, int, tuple[int, ...]]:
        count, subscribers = len(self._owners[topic_id]), len(self._subscribers[topic_id])
        return -count / subscribers, subscribers, _UUID.unpack(topic_id)

    def _keep_targets(self) -> None:
        for index, member in enumerate(self._members):
            for topic_id, partitions in member.assignment.items():
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
        for partition, owner in enumerate(owners):
            if owner == _NO_OWNER:
                self._move(owners, partition, takers.take())

    def _by_load(self, topic_id: bytes) -> list[int]:
        """The topic's subscribers, the least loaded first; equals in their order."""
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
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return  # once around, and nothing was moved since
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Whether any partition moved."""
        owners = self._owners[topic_id]
        busiest_owner = max(map(self._loads.__getitem__, owners), default=0)
        if busiest_owner - min(map(self._loads.__getitem__, self._subscribers[topic_id])) <= 1:
            return False
        held = _by_owner(owners)
        subscribers = self._by_load(topic_id)
        takers = LeastLoadedFirst(subscribers, self._loads)
        givers = MostLoadedFirst(subscribers, self._loads)
        has_moved = False
        while (giver := _next_giver(givers, held)) is not None:
            taker = takers.take()
            if givers.level - takers.level <= 1:
                break
            self._move(owners, held[giver].pop(), taker)
            has_moved = True
        return has_moved

    def _targets(self) -> dict[str, Assignment]:
        fresh: dict[int, dict[bytes, list[int]]] = {index: {} for index in self._touched}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                if owner in fresh:
                    fresh[owner].setdefault(topic_id, []).append(partition)
        targets = {member.member_id: member.assignment for member in self._members}
        for index, topics in fresh.items():
            member = self._members[index]
            target = {topic_id: frozenset(topics[topic_id]) for topic_id in topics}
            if target != member.assignment:
                targets[member.member_id] = target or NOTHING
        return targets


def _by_owner(owners: list[int]) -> dict[int, list[int]]:
    """The partitions of each owner, in order: the last ones move first."""
    held: dict[int, list[int]] = {}
    for partition, owner in enumerate(owners):
        held.setdefault(owner, []).append(partition)
    return held


def _next_giver(givers: MostLoadedFirst, held: dict[int, list[int]]) -> int | None:
    """The most loaded subscriber that still has partitions of the topic to give."""
    while (giver := givers.give()) is not None and not held.get(giver):
        givers.exclude()
    return giver
