"""The settings of the groups whose assignments the coordinator computes, of every type."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.any_group.group_settings import (
    ConsumerGroupSettings,
    ShareGroupSettings,
    StreamsGroupSettings,
)
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs, OverridesOf
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.streams_groups.group_configs import StreamsGroupConfigs


class GroupConfigsByType(NamedTuple):
    """The settings of each type of group: the broker's, and what is set on single groups."""

    consumer: ConsumerGroupConfigs
    share: ShareGroupConfigs
    streams: StreamsGroupConfigs

    @classmethod
    def of(cls, config: BrokerConfig, overrides_of: OverridesOf) -> Self:
        """Make the settings of a broker's configuration; `overrides_of` as in GroupConfigs."""
        return cls(
            ConsumerGroupConfigs(ConsumerGroupSettings.of(config), overrides_of),
            ShareGroupConfigs(ShareGroupSettings.of(config), overrides_of),
            StreamsGroupConfigs(StreamsGroupSettings.of(config), overrides_of),
        )

    def update(self, config: BrokerConfig) -> None:
        """Replace the broker's values."""
        self.consumer.update(ConsumerGroupSettings.of(config))
        self.share.update(ShareGroupSettings.of(config))
        self.streams.update(StreamsGroupSettings.of(config))

    def warnings(self, group_ids: Iterable[str]) -> Iterator[str]:
        """Yield a line for each override of these groups that does not apply as written."""
        names = list(group_ids)
        yield from self.consumer.warnings(names)
        yield from self.share.warnings(names)
        yield from self.streams.warnings(names)
