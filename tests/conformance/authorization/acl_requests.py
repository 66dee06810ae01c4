"""Requests for access control entries, valid and not, as an administrator may send them."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.schema import Message
from tests.support.requests import build

VERSIONS = (1, 2, 3)
ENTRY = {
    "resource_type": 2,
    "resource_name": "acl-topic",
    "resource_pattern_type": 3,
    "principal": "User:nobody",
    "host": "10.0.0.1",
    "operation": 3,
    "permission_type": 3,
}
# Those that are valid are in the listings that follow. The codes ANY and MATCH are left out: for an
# entry with one of these Kafka fails, and answers the whole request with UNKNOWN_SERVER_ERROR.
CHANGES: list[dict[str, Any]] = [
    {},
    {},
    {"resource_name": ""},
    {"resource_name": "*"},
    {"resource_name": "acl-"},
    {"resource_name": "acl-", "resource_pattern_type": 4},
    {"resource_name": "not legal \u00e9", "resource_type": 3},
    *({"resource_type": code} for code in (3, 4, 5, 6, 7, 8, 99, -1)),
    {"resource_type": 4, "resource_name": "kafka-cluster"},
    *({"resource_pattern_type": code} for code in (5, -1)),
    *({"operation": code} for code in (2, 4, 12, 13, 14, 15, 16, -1)),
    *({"permission_type": code} for code in (2, 4, -1)),
    *({"principal": text} for text in ("", "nobody", ":", "User:", "Group:nobody", "User:*")),
    *({"host": text} for text in ("", " ", "*", "not a host", "1.2.3.4", "::1")),
    *({"host": text} for text in ("10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "/8")),
    *({"host": text} for text in ("2001:db8::/32", "2001:db8::/129", "::/0", "not a host/8")),
]
ANYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
OF_TEST = {**ANYTHING, "principal_filter": "User:nobody"}
FILTERS: list[dict[str, Any]] = [
    OF_TEST,
    *(
        {
            **OF_TEST,
            "resource_type_filter": kind,
            "pattern_type_filter": pattern_type,
            "resource_name_filter": name,
        }
        for kind, pattern_type, name in product(
            (1, 2, 3, 99), (1, 2, 3, 4, 99), ("acl-topic", "acl-", "*", "", "kafka-cluster", None)
        )
    ),
    *({**OF_TEST, "operation": code} for code in (2, 3, 12, 16, -1)),
    *({**OF_TEST, "permission_type": code} for code in (2, 3, 4)),
    *({**ANYTHING, "principal_filter": text} for text in ("Group:nobody", "", "User:", "nobody")),
    *({**OF_TEST, "host_filter": text} for text in ("*", "10.0.0.1", "")),
]
UNKNOWN = [
    build(CreateAclsRequest, 3, creations=[{**ENTRY, field: 0}])
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type")
]


def acl_requests() -> Iterator[tuple[Message, int]]:
    """The requests in order, each with its version."""
    creations = [{**ENTRY, **change} for change in CHANGES]
    for version in VERSIONS:
        yield build(CreateAclsRequest, version, creations=creations), version
        yield build(CreateAclsRequest, version, creations=[]), version
        yield build(DescribeAclsRequest, version, **FILTERS[0]), version
        yield build(DeleteAclsRequest, version, filters=[]), version
    for wanted in FILTERS:
        yield build(DescribeAclsRequest, 3, **wanted), 3
    for request in UNKNOWN:
        yield request, 3
    fields = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    for field in fields:
        yield build(DescribeAclsRequest, 3, **{**OF_TEST, field: 0}), 3
        yield build(DeleteAclsRequest, 3, filters=[OF_TEST, {**OF_TEST, field: 0}]), 3
    # The first filters of the list select the most entries.
    yield build(DeleteAclsRequest, 3, filters=list(reversed(FILTERS))), 3
    yield build(DescribeAclsRequest, 3, **FILTERS[0]), 3
    for version in VERSIONS:
        yield build(CreateAclsRequest, version, creations=creations), version
        yield build(DeleteAclsRequest, version, filters=FILTERS[:1]), version
