"""Settings of all brokers at once, which librdkafka cannot name: an empty name means all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import AlterConfigOpType, ConfigResource

from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

from .answers import check_answer
from .cluster_commands import ClusterCommands

BROKER = ConfigResource.Type.BROKER.value
ALL_BROKERS = ""
SET, DELETE = AlterConfigOpType.SET.value, AlterConfigOpType.DELETE.value


class BrokerDefaults(ClusterCommands):
    """The dynamic settings of all brokers."""

    def settings(self) -> dict[str, str]:
        """The settings that were changed, by name. Secret values are empty. Raises CommandError."""
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=ALL_BROKERS, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=[resource])
        (result,) = self._cluster.bootstrap.ask(request, DescribeConfigsResponse).results
        check_answer("settings of all brokers", result.error_code, result.error_message)
        return {each.name: each.value or "" for each in result.configs}

    def alter(self, configs: Mapping[str, str], removed: Sequence[str]) -> None:
        """Change settings. Raises CommandError."""
        changes = [
            *(_change(name, value, SET) for name, value in configs.items()),
            *(_change(name, None, DELETE) for name in removed),
        ]
        resource = IncrementalAlterConfigsResource(
            resource_type=BROKER, resource_name=ALL_BROKERS, configs=changes
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        answer = self._cluster.bootstrap.ask(request, IncrementalAlterConfigsResponse)
        (result,) = answer.responses
        check_answer("alter all brokers", result.error_code, result.error_message)


def _change(name: str, value: str | None, operation: int) -> IncrementalAlterConfigsConfig:
    return IncrementalAlterConfigsConfig(name=name, config_operation=operation, value=value)
