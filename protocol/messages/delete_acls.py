"""DeleteAcls (key 31): delete the access control entries that match filters."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Message, String, Struct


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Message, key=ApiKey.DELETE_ACLS, versions="1-3", flexible="2+"):
    filters: list[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    matching_acls: list[DeleteAclsMatchingAcl]


class DeleteAclsResponse(Message, key=ApiKey.DELETE_ACLS, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult]
