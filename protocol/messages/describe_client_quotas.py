"""DescribeClientQuotas (key 48): quotas of users, client ids, addresses (KIP-546)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Float64, Int8, Int16, Int32, Message, String, Struct


class DescribeClientQuotasComponentData(Struct):
    entity_type: String
    match_type: Int8
    match: String | None


class DescribeClientQuotasRequest(
    Message, key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    components: list[DescribeClientQuotasComponentData]
    strict: Bool


class DescribeClientQuotasEntityData(Struct):
    entity_type: String
    entity_name: String | None


class DescribeClientQuotasValueData(Struct):
    key: String
    value: Float64


class DescribeClientQuotasEntryData(Struct):
    entity: list[DescribeClientQuotasEntityData]
    values: list[DescribeClientQuotasValueData]


class DescribeClientQuotasResponse(
    Message, key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    entries: list[DescribeClientQuotasEntryData] | None = None
