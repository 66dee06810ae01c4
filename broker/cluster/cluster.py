"""The nodes and partitions of a played cluster, and what their changes do in the broker.

Which node leads what is kept in memory. In the metadata log every partition belongs to the broker's
own node. What clients can remember is real there: with every change of a leader the partition gets
a new leader epoch, in the metadata and in its log. A coordinator that moves loads its partition of
the internal topic again.

A restart places all partitions again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from odradek.broker.broker import Broker
from odradek.coordinator.metadata.placement import check_replicas
from odradek.coordinator.metadata.topic_creation import DEFAULT, MorePartitions, NewTopic
from odradek.coordinator.metadata.topics import NO_LEADER, Topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .partition_roles import (
    Roles,
    cancelled,
    completed,
    elected,
    moved,
    new_roles,
    not_eligible,
    reassigned,
    shrunk,
    spread,
    with_node,
    without_node,
)

logger = logging.getLogger("odradek.cluster")

# The replicas of an internal topic, as Kafka's defaults ask for, if there are so many nodes.
INTERNAL_REPLICAS = 3
# How long the replicas that a reassignment adds take to get all records.
REASSIGNMENT_S = 0.2
ALL_RECORDS = 1 << 62  # more than any follower lacks


class Cluster:
    """Which nodes live, and the roles of each partition."""

    def __init__(
        self,
        broker: Broker,
        racks: Mapping[int, str | None],
        default_replication_factor: int,
        on_leaders_moved: Callable[[], object],
    ) -> None:
        """`racks` has the rack of each node, and so all nodes.

        `on_leaders_moved` is called after a change that has given partitions other leaders.
        """
        self.racks = racks
        self.live = set(racks)
        self.default_replication_factor = default_replication_factor
        self._on_leaders_moved = on_leaders_moved
        self._broker = broker
        self._topics = broker.metadata.topics
        # Nodes that replicate nothing, and partitions whose followers lag by so many records.
        self._silent: set[int] = set()
        self._lagging: dict[TopicPartition, int] = {}
        self.held_back: dict[TopicPartition, int] = {}  # of both, what is in force
        # The end of the log when a replica left the in-sync set, by partition and node.
        self._ends: dict[TopicPartition, dict[int, int]] = {}
        self._roles: dict[bytes, dict[int, Roles]] = {}  # by topic id
        # The reassignments that last less than REASSIGNMENT_S yet.
        self._under_way: dict[TopicPartition, asyncio.TimerHandle] = {}

    # -- what clients see -------------------------------------------------------------------------

    @property
    def controller_id(self) -> int:
        """The node that clients see as the controller."""
        return min(self.live, default=min(self.racks))

    def roles(self, topic: str, index: int) -> Roles:
        """The roles of a partition. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        known = self._topics.get(topic)
        if known is None or index not in known.partitions:
            text = f"there is no partition {index} of {topic}"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return self._roles_of(known, index)

    def leader(self, topic: str, index: int) -> int:
        """The node that leads a partition; -1: none, or there is no such partition."""
        try:
            return self.roles(topic, index).leader
        except ApiError:
            return NO_LEADER

    def min_isr(self, topic: str, index: int) -> int:
        """How many replicas must be in sync for acks=all: never more than there are."""
        log = self._broker.log_manager.find(topic, index)
        wanted = 1 if log is None else log.config.min_insync_replicas
        return min(wanted, len(self.roles(topic, index).replicas))

    def _roles_of(self, topic: Topic, index: int) -> Roles:
        of_topic = self._roles.get(topic.id)
        if of_topic is None:
            of_topic = self._roles[topic.id] = {}
            self._forget_deleted()
        roles = of_topic.get(index)
        if roles is None:
            factor = self.default_replication_factor
            if topic.is_internal:
                factor = min(INTERNAL_REPLICAS, len(self.racks))
            elif 0 in of_topic:  # a partition that was added later
                factor = len(of_topic[0].replicas)
            replicas = spread(topic.name, index, factor, self.racks, self.live)
            roles = of_topic[index] = new_roles(replicas, self.live)
        return roles

    def _forget_deleted(self) -> None:
        if len(self._roles) > 2 * len(self._topics) + 16:
            kept = self._topics.by_id
            self._roles = {key: roles for key, roles in self._roles.items() if key in kept}

    # -- topics -----------------------------------------------------------------------------------

    def placed(self, topic: Topic, request: NewTopic | MorePartitions) -> None:
        """Place the partitions of a new or enlarged topic as the request asks."""
        of_topic = self._roles.setdefault(topic.id, {})
        if isinstance(request, MorePartitions):
            first = len(topic.partitions) - len(request.assignments or ())
            for index, replicas in enumerate(request.assignments or (), first):
                of_topic[index] = new_roles(replicas, self.live)
            return
        for of_partitions in (self._lagging, self._ends, self.held_back):
            for key in [key for key in of_partitions if key.topic == topic.name]:
                del of_partitions[key]  # of a topic of this name that was deleted
        for key in [key for key in self._under_way if key.topic == topic.name]:
            self._end_wait(key)
        for index, replicas in request.assignments:
            of_topic[index] = new_roles(replicas, self.live)
        if request.replication_factor != DEFAULT and not topic.is_internal:
            for index in topic.partitions:
                factor = request.replication_factor
                replicas = spread(topic.name, index, factor, self.racks, self.live)
                of_topic[index] = new_roles(replicas, self.live)

    # -- nodes ------------------------------------------------------------------------------------

    def node_lost(self, node: int) -> None:
        """A node is gone: others lead its partitions, and it is in no in-sync set.

        Raises KAFKA_STORAGE_ERROR if the metadata log cannot be written. Then nothing has changed.
        """
        partitions = self._all()
        for key in partitions:  # those that nobody has asked about are placed now
            self.roles(*key)
        live, silent = set(self.live), set(self._silent)
        self.live.discard(node)
        self._silent.discard(node)
        try:
            self._change(
                partitions,
                lambda topic, index, roles: without_node(
                    roles, node, self.live, self.min_isr(topic, index), unclean=self._unclean(topic)
                ),
            )
        except ApiError:
            self.live, self._silent = live, silent
            raise
        logger.info("node %d is gone", node)

    def node_back(self, node: int, *, was_killed: bool = False) -> None:
        """A node is there again, and has caught up with the leaders.

        What it had may be lost if it `was_killed`: it is not eligible as leader any more. Raises as
        `node_lost`.
        """
        self._silent.discard(node)
        if node in self.live:
            self._hold_back(self._all())
            return
        self.live.add(node)
        try:
            self._change(
                self._all(),
                lambda topic, index, roles: with_node(
                    not_eligible(roles, node) if was_killed else roles,
                    node,
                    self.live,
                    self.min_isr(topic, index),
                ),
            )
        except ApiError:
            self.live.discard(node)
            raise
        logger.info("node %d is there", node)
        for key, roles in list(self.reassignments()):
            if node in (roles.adding or roles.replicas) and key not in self._under_way:
                self._complete(key)

    def fall_silent(self, node: int) -> None:
        """A node replicates nothing any more, and nobody has noticed it yet."""
        self._silent.add(node)
        self._hold_back(self._all())

    def _unclean(self, topic: str) -> bool:
        log = self._broker.log_manager.find(topic, 0)
        return log is not None and log.config.unclean_leader_election_enable

    # -- partitions -------------------------------------------------------------------------------

    def move_leader(self, topic: str, index: int, to: int) -> None:
        """Let a node lead a partition. Raises ELIGIBLE_LEADERS_NOT_AVAILABLE, and as `roles`."""
        led = moved(self.roles(topic, index), to, self.live)
        if led is None:
            text = f"node {to} is not in sync with {topic}-{index}, or is not there"
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
        self._set(TopicPartition(topic, index), led)

    def shrink_isr(self, topic: str, index: int, isr: Sequence[int]) -> None:
        """Let only these nodes, and the leader, be in sync. Raises INVALID_REQUEST, and as `roles`.

        They must be in sync now.
        """
        roles = self.roles(topic, index)
        for node in isr:
            if node not in roles.isr:
                text = f"node {node} is not in sync with {topic}-{index}: {list(roles.isr)} are"
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
        self._set(TopicPartition(topic, index), shrunk(roles, isr))

    def restore_isr(self, topic: str, index: int) -> None:
        """Let all live replicas be in sync again. Raises as `roles`."""
        roles = self.roles(topic, index)
        for node in roles.replicas:
            if node in self.live:
                roles = with_node(roles, node, self.live, self.min_isr(topic, index))
        self._set(TopicPartition(topic, index), roles)

    def elect_preferred(self, topic: str, index: int) -> None:
        """Raises ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, and as `roles`."""
        roles = self.roles(topic, index)
        if roles.leader == roles.preferred:
            text = "Leader election not needed for topic partition."
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, text)
        led = moved(roles, roles.preferred, self.live)
        if led is None:
            text = f"The preferred leader, broker {roles.preferred}, was not available."
            raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text)
        self._set(TopicPartition(topic, index), led)

    def elect_all_preferred(self) -> None:
        """Let the preferred leaders lead where they are in sync."""
        self._change(
            self._all(), lambda _, __, roles: moved(roles, roles.preferred, self.live) or roles
        )

    def elect_unclean(self, topic: str, index: int) -> None:
        """Raises ELECTION_NOT_NEEDED, ELIGIBLE_LEADERS_NOT_AVAILABLE, and as `roles`."""
        roles = self.roles(topic, index)
        if roles.leader != NO_LEADER:
            text = "Leader election not needed for topic partition."
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, text)
        led = elected(roles, self.live, unclean=True)
        if led.leader == NO_LEADER:
            text = "Eligible topic partition leaders are not available."
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
        self._set(TopicPartition(topic, index), led)

    def hold_back(self, topic: str, index: int, records: int) -> None:
        """Let the followers of a partition lack its newest records; 0: none.

        Raises UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        self._broker.log_manager.get(topic, index)
        key = TopicPartition(topic, index)
        self._lagging[key] = records
        self._hold_back([key])

    def served(self, topic: Topic) -> None:
        """The logs of a new or enlarged topic are there."""
        self._hold_back([TopicPartition(topic.name, index) for index in topic.partitions])

    def _hold_back(self, keys: Iterable[TopicPartition]) -> None:
        """Let logs show what their followers have.

        While fewer replicas are in sync than min.insync.replicas, nothing new is shown (KIP-966).
        """
        for key in keys:
            log = self._broker.log_manager.find(*key)
            if log is None or not log.is_online:
                continue
            roles, records = self.roles(*key), self._lagging.get(key, 0)
            is_late = roles.leader not in self._silent and not self._silent.isdisjoint(roles.isr)
            if is_late or len(roles.isr) < self.min_isr(*key):
                records = ALL_RECORDS
            if records == self.held_back.get(key, 0):
                continue
            if records:
                self.held_back[key] = records
            else:
                del self.held_back[key]
            log.hold_back(records)

    def check_in_sync(self, log: PartitionLog) -> None:
        """Raise NOT_ENOUGH_REPLICAS if fewer are in sync than acks=all needs, and as `roles`."""
        isr, needed = self.roles(*log.key).isr, self.min_isr(*log.key)
        if len(isr) < needed:
            text = f"{len(isr)} replicas of {log.name} are in sync, {needed} are needed"
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, text)
        if log.key in self.held_back:
            self._hold_back([log.key])  # min.insync.replicas may be lower now

    def find_led(self, topic: str, index: int) -> PartitionLog:
        """The log of a partition, for a marker.

        Raises NOT_LEADER_OR_FOLLOWER if no node leads it, and as `check_in_sync`.
        """
        log = self._broker.log_manager.get(topic, index)
        if self.leader(topic, index) == NO_LEADER:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"no node leads {log.name}")
        self.check_in_sync(log)
        return log

    # -- reassignments ----------------------------------------------------------------------------

    def reassign(
        self,
        topic: str,
        index: int,
        replicas: Sequence[int] | None,
        *,
        may_change_factor: bool = True,
        at_once: bool = False,
    ) -> None:
        """Begin to move a partition to other nodes; None cancels that.

        It ends after REASSIGNMENT_S, and not before a node that stays is in sync. If `at_once`, it
        is refused unless it can end now.

        Raises INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS,
        and as `roles`.
        """
        roles = self.roles(topic, index)
        key = TopicPartition(topic, index)
        if replicas is None:
            if not (roles.adding or roles.removing):
                text = "No partition reassignment is in progress."
                raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, text)
            self._end_wait(key)
            self._set(key, cancelled(roles, self.live))
            return
        check_replicas(self.racks, replicas)
        if roles.adding or roles.removing:
            roles = cancelled(roles, self.live)
        before = len(roles.replicas)
        if before != len(replicas) and not may_change_factor:
            text = f"The replication factor is changed from {before} to {len(replicas)}"
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        roles = reassigned(roles, replicas)
        if at_once and not self._can_complete(roles):
            dead = [node for node in replicas if node not in self.live]
            why = f"{dead} do not run" if dead else "none of them is in sync"
            text = f"{topic}-{index} cannot move to {list(replicas)}: {why}"
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        self._end_wait(key)
        self._set(key, roles)
        if at_once or not roles.adding:
            self._complete(key)
        else:
            timer = self._broker.loop.call_later(REASSIGNMENT_S, self._complete, key)
            self._under_way[key] = timer

    def _end_wait(self, key: TopicPartition) -> None:
        timer = self._under_way.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _complete(self, key: TopicPartition) -> None:
        self._end_wait(key)
        with suppress(ApiError):  # the topic has been deleted
            roles = self.roles(*key)
            is_running = roles.adding or roles.removing
            if is_running and self._can_complete(roles):
                self._set(key, completed(roles, self.live))

    def _can_complete(self, roles: Roles) -> bool:
        """Whether the replicas that are added are there, and some of those that stay are in sync.

        Kafka: PartitionReassignmentReplicas.maybeCompleteReassignment.
        """
        return self.live.issuperset(roles.adding) and bool(completed(roles, self.live).isr)

    def reassignments(self) -> Iterator[tuple[TopicPartition, Roles]]:
        """The partitions that are being reassigned."""
        for key in self._all():
            roles = self.roles(*key)
            if roles.adding or roles.removing:
                yield key, roles

    # -- changes ----------------------------------------------------------------------------------

    def _all(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, index)
            for topic in self._topics.values()
            for index in topic.partitions
        ]

    def _change(
        self, keys: Iterable[TopicPartition], change: Callable[[str, int, Roles], Roles]
    ) -> None:
        before = {key: self.roles(*key) for key in keys}
        self._apply({key: new for key, old in before.items() if (new := change(*key, old)) != old})

    def _set(self, key: TopicPartition, roles: Roles) -> None:
        if roles != self.roles(*key):
            self._apply({key: roles})

    def _apply(self, changed: Mapping[TopicPartition, Roles]) -> None:
        """Take over changed roles.

        Partitions with another leader, or that have lost replicas, get another leader epoch. It is
        written first: if the metadata log cannot be written, nothing changes.
        """
        broker, old = self._broker, {key: self.roles(*key) for key in changed}
        led_again = [
            key
            for key, roles in changed.items()
            if roles.leader != old[key].leader or set(old[key].replicas) - set(roles.replicas)
        ]
        if led_again:
            broker.controller.lead_again(led_again, broker.clock.now_ms())
        for key, roles in changed.items():
            self._roles[self._topics[key.topic].id][key.partition] = roles
            self._note_ends(key, old[key], roles)
        for key in led_again:
            log = broker.log_manager.find(*key)
            if log is not None and log.is_online:
                self._led_again(log, old[key], changed[key])
        self._hold_back(changed)
        if led_again:
            self._on_leaders_moved()

    def _note_ends(self, key: TopicPartition, old: Roles, new: Roles) -> None:
        """Note what the replicas have that are not in sync any more."""
        log = self._broker.log_manager.find(*key)
        if log is None:
            return
        ends = self._ends.setdefault(key, {})
        for node in set(old.isr) - set(new.isr):
            ends[node] = log.log_end_offset
        for node in new.isr:
            if node != new.leader or node in old.isr:
                ends.pop(node, None)
        for node in ends.keys() - set(new.replicas):
            del ends[node]  # if it is added again, it gets all records

    def _led_again(self, log: PartitionLog, old: Roles, new: Roles) -> None:
        """Let a log have another leader, which may lack records (an unclean election)."""
        if new.leader not in (*old.isr, *old.eligible, NO_LEADER):
            end = self._ends[log.key].pop(new.leader, log.log_end_offset)
            self._broker.maintenance.truncate(log, end, self._broker.clock.now_ms())
        partition = self._topics[log.topic].partitions[log.partition]
        log.become_leader(partition.leader_epoch)
        if new.leader != old.leader:
            is_led = new.leader != NO_LEADER
            self._broker.coordinators.logs.log_moved(log, is_led=is_led)
