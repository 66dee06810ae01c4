"""CreateAcls (key 30): add access control entries."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Message, String, Struct


class CreateAclsCreation(Struct):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Message, key=ApiKey.CREATE_ACLS, versions="1-3", flexible="2+"):
    creations: list[CreateAclsCreation]


class CreateAclsResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None


class CreateAclsResponse(Message, key=ApiKey.CREATE_ACLS, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    results: list[CreateAclsResult]
