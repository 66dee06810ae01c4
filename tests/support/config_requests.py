"""Raw requests that change configurations."""

from collections.abc import Mapping

from odradek.coordinator.metadata.config_changes import AlterOperation
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)


def alter_configs_request(
    kind: int, resource: str, values: Mapping[str, str | None]
) -> IncrementalAlterConfigsRequest:
    """Set keys of one resource; None deletes one. `kind`: Kafka's ConfigResource.Type."""
    configs = [
        IncrementalAlterConfigsConfig(
            name=name,
            config_operation=AlterOperation.DELETE if value is None else AlterOperation.SET,
            value=value,
        )
        for name, value in values.items()
    ]
    changed = IncrementalAlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=configs
    )
    return IncrementalAlterConfigsRequest(resources=[changed], validate_only=False)
