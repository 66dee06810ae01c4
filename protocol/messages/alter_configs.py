"""AlterConfigs (key 33): replace all settings of topics and brokers.

A setting that is not named is reset to its default. Deprecated: clients should use
IncrementalAlterConfigs (KIP-339).
"""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct


class AlterConfigsConfig(Struct):
    name: String
    value: String | None


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: list[AlterConfigsConfig]


class AlterConfigsRequest(Message, key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Message, key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
