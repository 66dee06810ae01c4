"""The settings of streams groups: those of all modern groups, and some more.

The assignor of Kafka 4.4.0 makes no warm-up replicas, and does not use the client tags: what these
are for is described, checked, and told to the members.

Kafka: GroupMetadataManager.streamsGroupAssignmentConfigs, streamsGroupInitialRebalanceDelayMs.
"""

from odradek.config.group_config import GROUP_KEYS
from odradek.coordinator.any_group.group_settings import StreamsGroupSettings
from odradek.coordinator.modern_groups.group_configs import GroupConfigs

NUM_STANDBY_REPLICAS = "num.standby.replicas"
RACK_AWARE_TAGS = "rack.aware.assignment.tags"


class StreamsGroupConfigs(GroupConfigs[StreamsGroupSettings]):
    """The settings of each streams group."""

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        """How long a group without members waits for more members after the first one."""
        name = "streams.initial.rebalance.delay.ms"
        return self.number(group_id, name, self.broker.initial_rebalance_delay_ms)

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """The settings of the assignor, as the group stores them with its epoch."""
        name = f"streams.{NUM_STANDBY_REPLICAS}"
        replicas = self.number(group_id, name, self.broker.num_standby_replicas)
        tags = self._rack_aware_tags(group_id)
        by_tag = {RACK_AWARE_TAGS: ",".join(tags)} if tags else {}
        return {NUM_STANDBY_REPLICAS: str(replicas), **by_tag}

    def _rack_aware_tags(self, group_id: str) -> tuple[str, ...]:
        name = f"streams.{RACK_AWARE_TAGS}"
        text = self.overrides_of(group_id).get(name)
        if text is None:
            return self.broker.rack_aware_assignment_tags
        tags = GROUP_KEYS[name].parse(text)
        assert isinstance(tags, tuple)
        return tags

    def task_offset_interval_ms(self, group_id: str) -> int:
        """How often members report the offsets of their tasks."""
        name = "streams.task.offset.interval.ms"
        return self.number(group_id, name, self.broker.task_offset_interval_ms)

    def acceptable_recovery_lag(self, group_id: str) -> int:
        """How many offsets a task may lack on the member that makes it active."""
        name = "streams.acceptable.recovery.lag"
        return self.number(group_id, name, self.broker.acceptable_recovery_lag)
