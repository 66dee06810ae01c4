"""ListConfigResources (key 74): the resources that have settings, by type.

v0 lists only client metrics subscriptions.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Int8, Int16, Int32, Message, String, Struct, since


class ListConfigResourcesRequest(
    Message, key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+"
):
    resource_types: Annotated[list[Int8], since(1)] = []


class ListConfigResourcesConfigResource(Struct):
    resource_name: String
    resource_type: Annotated[Int8, since(1), IGNORABLE] = 16


class ListConfigResourcesResponse(
    Message, key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ListConfigResourcesConfigResource] = []
