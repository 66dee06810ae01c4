"""AlterClientQuotas (key 49): set and remove quotas of users, client ids and addresses."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Float64, Int16, Int32, Message, String, Struct


class AlterClientQuotasEntityData(Struct):
    entity_type: String
    entity_name: String | None


class AlterClientQuotasOpData(Struct):
    key: String
    value: Float64
    remove: Bool


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[AlterClientQuotasEntityData]
    ops: list[AlterClientQuotasOpData]


class AlterClientQuotasRequest(
    Message, key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    entries: list[AlterClientQuotasRequestEntryData]
    validate_only: Bool


class AlterClientQuotasResponseEntryData(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    entity: list[AlterClientQuotasEntityData]


class AlterClientQuotasResponse(
    Message, key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    throttle_time_ms: Int32 = 0
    entries: list[AlterClientQuotasResponseEntryData]
