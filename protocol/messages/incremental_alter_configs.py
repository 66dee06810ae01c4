"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from settings (KIP-339)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct


class IncrementalAlterConfigsConfig(Struct):
    name: String
    config_operation: Int8
    value: String | None


class IncrementalAlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: list[IncrementalAlterConfigsConfig]


class IncrementalAlterConfigsRequest(
    Message, key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    resources: list[IncrementalAlterConfigsResource]
    validate_only: Bool


class IncrementalAlterConfigsResourceResponse(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsResponse(
    Message, key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    throttle_time_ms: Int32 = 0
    responses: list[IncrementalAlterConfigsResourceResponse]
