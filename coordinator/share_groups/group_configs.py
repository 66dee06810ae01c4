"""Settings of share groups: what consumer groups have too, and how records are delivered.

Kafka: GroupConfig, ShareGroupConfig, ShareGroupConfigProvider.
"""

from odradek.config.group_config import COPY_RECORD, DEAD_LETTER_QUEUE, GROUP_KEYS
from odradek.config.key import Value
from odradek.coordinator.any_group.group_settings import ShareGroupSettings
from odradek.coordinator.modern_groups.group_configs import GroupConfigs


class ShareGroupConfigs(GroupConfigs[ShareGroupSettings]):
    """The settings of each share group; a change applies to the next request."""

    def record_lock_duration_ms(self, group_id: str) -> int:
        """How long a delivered record stays locked."""
        return self.number(
            group_id, "share.record.lock.duration.ms", self.broker.record_lock_duration_ms
        )

    def delivery_count_limit(self, group_id: str) -> int:
        """How often a record is delivered before it is archived."""
        return self.number(group_id, "share.delivery.count.limit", self.broker.delivery_count_limit)

    def max_record_locks(self, group_id: str) -> int:
        """How many records of a partition may be in flight."""
        return self.number(
            group_id, "share.partition.max.record.locks", self.broker.partition_max_record_locks
        )

    def reads_committed(self, group_id: str) -> bool:
        """Whether records of open and aborted transactions are not delivered."""
        return self._value(group_id, "share.isolation.level") == "read_committed"

    def may_renew(self, group_id: str) -> bool:
        """Whether members may renew their locks."""
        return bool(self._value(group_id, "share.renew.acknowledge.enable"))

    def offset_reset(self, group_id: str) -> str:
        """Where a partition without a start offset begins: earliest, latest, by_duration:…"""
        return str(self._value(group_id, "share.auto.offset.reset"))

    def dead_letter_queue(self, group_id: str) -> str:
        """The topic of the group's dead-letter queue (KIP-1191); empty if it has none."""
        return str(self._value(group_id, DEAD_LETTER_QUEUE))

    def copies_dead_letters(self, group_id: str) -> bool:
        """Whether the queue gets the keys and values of the records."""
        return bool(self._value(group_id, COPY_RECORD))

    def _value(self, group_id: str, name: str) -> Value:
        text = self.overrides_of(group_id).get(name)
        return GROUP_KEYS[name].default if text is None else GROUP_KEYS[name].parse(text)
