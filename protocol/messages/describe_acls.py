"""DescribeAcls (key 29): the access control entries that match a filter."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Message, String, Struct


class DescribeAclsRequest(Message, key=ApiKey.DESCRIBE_ACLS, versions="1-3", flexible="2+"):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DescribeAclsAcl(Struct):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Struct):
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    acls: list[DescribeAclsAcl]


class DescribeAclsResponse(Message, key=ApiKey.DESCRIBE_ACLS, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    resources: list[DescribeAclsResource] = []
