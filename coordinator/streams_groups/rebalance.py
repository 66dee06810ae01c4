"""The steps of a rebalance after a heartbeat of one member.

    update_topology   the first member's topology is stored; others are compared with it
    configure         compare the topology with the cluster's topics, if one of them has changed
    bump_epoch        raise the group epoch if the member, the topics, the settings of the assignor,
                      or whether the topology is ready have changed
    update_target     compute new targets if the group epoch has risen, at most once per assignment
                      interval, and not during the initial rebalance delay
    reconcile         move the member one step towards its target

Kafka: the methods that GroupMetadataManager.streamsGroupHeartbeat calls.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from odradek.coordinator.assignors.assignment import AssignorError
from odradek.coordinator.modern_groups.target_assignment import is_due, write_targets
from odradek.coordinator.modern_groups.topic_checks import has_checked_topics
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.steps import stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatTopology

from .configuration import ConfiguredTopology, configure
from .deadlines import GroupKey, StreamsDeadlines
from .draft import StreamsDraft
from .group import is_reconciled
from .group_configs import NUM_STANDBY_REPLICAS, StreamsGroupConfigs
from .member import StreamsMember
from .reconciliation import ReconcileInputs, reconcile
from .records import current_assignment_record, target_epoch_record, target_record, topology_record
from .status import StatusCode
from .sticky_assignor import MemberSpec, assign
from .tasks import NOTHING, Tasks
from .topology import Topology, topology_value

logger = logging.getLogger("odradek.groups")


class Target(NamedTuple):
    """A member's target, and the group epoch for which it was computed."""

    epoch: int
    tasks: Tasks


class Configured(NamedTuple):
    """A configured topology, the hash of its topics, and whether they have changed."""

    topology: ConfiguredTopology
    metadata_hash: int
    has_changed: bool


class StreamsRebalance:
    """The steps for all streams groups."""

    def __init__(
        self, *, topics: ClusterTopics, configs: StreamsGroupConfigs, deadlines: StreamsDeadlines
    ) -> None:
        self._topics = topics
        self._configs = configs
        self._deadlines = deadlines

    # -- the topology ------------------------------------------------------------------------------

    def update_topology(
        self, draft: StreamsDraft, member: StreamsMember, sent: StreamsGroupHeartbeatTopology | None
    ) -> Topology:
        """Return the group's topology; store the one that was sent if the group has none.

        Raises ApiError: INVALID_REQUEST for another topology, UNKNOWN_SERVER_ERROR.
        """
        topology = draft.group.topology
        if sent is not None:
            if sent.epoch < 0:  # Kafka could not load its record
                text = f"the epoch of a topology must not be negative, as {sent.epoch} is"
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
            new = Topology(topology_value(sent, draft.step))
            if topology is None:
                draft.records.append(topology_record(draft.group_id, new.value))
                return new
            if topology.epoch <= new.epoch and not topology.is_like(new, draft.step):
                raise ApiError(ErrorCode.INVALID_REQUEST, "the topology of a group cannot change")
        if topology is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group has lost its topology")
        if member.topology_epoch < topology.epoch:
            draft.add_status(
                StatusCode.STALE_TOPOLOGY,
                f"The member's topology has epoch {member.topology_epoch}, the group's has epoch "
                f"{topology.epoch}.",
            )
        return topology

    def configure(self, draft: StreamsDraft, topology: Topology) -> Configured:
        """Compare the topology with the cluster's topics, unless nothing can have changed.

        Raises ApiError: STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR.
        """
        group, known = draft.group, draft.group.configured
        draft.topics_checked_offset = self._topics.last_change_offset
        if known is not None and not self._may_have_changed(draft, topology):
            return Configured(known, group.metadata_hash, has_changed=False)
        required_topics = topology.required_topics(draft.step)
        metadata_hash = self._topics.group_hash(required_topics, draft.step)
        has_changed = metadata_hash != group.metadata_hash
        if known is None or has_changed:
            known = configure(topology, self.partition_count, draft.step)
            draft.then.append(partial(group.note_configured, known))
        return Configured(known, metadata_hash, has_changed)

    def _may_have_changed(self, draft: StreamsDraft, topology: Topology) -> bool:
        group, step = draft.group, draft.step
        if has_checked_topics(group, self._topics):
            return False
        topics = stepping(topology.required_topics(step), step)
        return self._topics.may_have_changed(topics, group.topics_checked_offset)

    def partition_count(self, topic: str) -> int | None:
        """Return the number of partitions of a topic; None if it does not exist."""
        topic_id = self._topics.id_of(topic)
        return None if topic_id is None else self._topics.partition_count(topic_id)

    # -- the epoch ---------------------------------------------------------------------------------

    def bump_epoch(self, draft: StreamsDraft, configured: Configured, *, changed: bool) -> None:
        """Raise the group epoch if `changed` (the member has), or if the targets must change."""
        topology = configured.topology
        draft.validated_topology_epoch = topology.epoch if topology.is_ready else -1
        draft.assignment_configs = self._configs.assignment_configs(draft.group_id)
        group = draft.group
        reasons = {
            "a member has changed": changed,
            "its topics have changed": configured.has_changed,
            "its topology is ready, or no longer": (
                draft.validated_topology_epoch != group.validated_topology_epoch
            ),
            "its settings have changed": draft.assignment_configs != group.assignment_configs,
        }
        reason = next((text for text, applies in reasons.items() if applies), None)
        if reason is not None:
            draft.bump_epoch(configured.metadata_hash, reason)

    # -- the targets -------------------------------------------------------------------------------

    def update_target(
        self, draft: StreamsDraft, updated: StreamsMember, topology: ConfiguredTopology
    ) -> Target:
        """Return the member's target; compute all targets first if they are due.

        Raises ApiError UNKNOWN_SERVER_ERROR if the assignor fails.
        """
        group = draft.group
        if self._is_delayed(draft):
            detail = "Assignment delayed due to the configured initial rebalance delay."
            draft.add_status(StatusCode.ASSIGNMENT_DELAYED, detail)
            return Target(group.assignment_epoch, NOTHING)
        if is_due(group, draft.epoch, draft.now, self._configs):
            members = {**group.members, updated.member_id: updated}
            if group.previous_id(updated) != updated.member_id:
                del members[group.previous_id(updated)]
            targets = self.compute_targets(draft, members, topology)
            return Target(draft.epoch, targets[updated.member_id])
        if group.assignment_epoch < draft.epoch:
            detail = "Assignment delayed due to the configured assignment interval."
            draft.add_status(StatusCode.ASSIGNMENT_DELAYED, detail)
        return Target(group.assignment_epoch, group.target(group.previous_id(updated)))

    def _is_delayed(self, draft: StreamsDraft) -> bool:
        """Whether the initial rebalance delay has not passed.

        If the group is empty, the draft is about its first member, with which the delay starts.
        """
        delays = self._deadlines.initial_delays
        key = GroupKey(draft.group.partition, draft.group_id)
        if draft.group.is_empty:
            delay_ms = self._configs.initial_rebalance_delay_ms(draft.group_id)
            if delay_ms > 0:
                at_ms = draft.now.timer_ms + delay_ms
                # A delay of a deleted group of that name does not count.
                start = delays.schedule if draft.is_new else delays.schedule_if_absent
                draft.then.append(partial(start, key, at_ms))
                return True
        return key in delays

    def compute_targets(
        self,
        draft: StreamsDraft,
        members: Mapping[str, StreamsMember],
        topology: ConfiguredTopology,
    ) -> dict[str, Tasks]:
        """Compute the targets of all members for the epoch of the draft, and write the new ones.

        Raises ApiError UNKNOWN_SERVER_ERROR if the assignor fails.
        """
        group = draft.group
        warn = partial(draft.log, logging.WARNING, "group %s: %s", group.group_id)
        targets = dict.fromkeys(members, NOTHING)
        if topology.is_ready and topology.subtopologies is not None:
            specs = {
                member_id: MemberSpec(
                    member.process_id,
                    member.assigned.tasks,
                    (
                        draft.task_offsets.get(member_id) or group.task_offsets_of(member_id)
                    ).restored,
                )
                for member_id, member in members.items()
            }
            replicas = int(draft.assignment_configs.get(NUM_STANDBY_REPLICAS, 0))
            try:
                targets = assign(specs, topology.subtopologies, replicas, draft.step, warn)
            except AssignorError as error:
                logger.error(
                    "group %s, epoch %d: no targets: %s", group.group_id, draft.epoch, error
                )
                raise
        write_targets(draft, targets, target_record, target_epoch_record)
        return targets

    # -- the member --------------------------------------------------------------------------------

    def reconcile(
        self, draft: StreamsDraft, member: StreamsMember, target: Target, owned: Tasks | None
    ) -> StreamsMember:
        """Move the member one step towards its target, and write it if it has changed.

        `owned`: the tasks it reports. A member that must give up tasks gets a deadline of its
        rebalance timeout. Raises ApiError FENCED_MEMBER_EPOCH.
        """
        if is_reconciled(member, target.epoch):
            return member
        inputs = ReconcileInputs(
            target=target.tasks,
            epoch=target.epoch,
            owners=draft.group.owners,
            owned=owned,
            step=draft.step,
        )
        reconciled = reconcile(member, inputs)
        if reconciled == member:
            return member
        record = current_assignment_record(draft.group_id, reconciled, draft.step)
        draft.records.append(record)
        key, timeout_ms = draft.group.key_of(member.member_id), reconciled.rebalance_timeout_ms
        update = self._deadlines.update_rebalance
        draft.then.append(partial(update, key, reconciled, timeout_ms, draft.now))
        return reconciled
