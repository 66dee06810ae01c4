"""The settings of streams groups: those of all modern groups, and three more.

Kafka: GroupMetadataManager.streamsGroupAssignmentConfigs, streamsGroupInitialRebalanceDelayMs.
"""

from odradek.coordinator.any_group.group_settings import StreamsGroupSettings
from odradek.coordinator.modern_groups.group_configs import GroupConfigs

NUM_STANDBY_REPLICAS = "num.standby.replicas"


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
        return {NUM_STANDBY_REPLICAS: str(replicas)}
