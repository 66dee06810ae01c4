"""The entries of the authorizer (ACLs): who may do what, added and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import TypeVar

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.paging import PageRequest
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.acls import ANY, WILDCARD, PatternType, Permission
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.create_acls import (
    CreateAclsCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

E = TypeVar("E", bound=IntEnum)


class Acl(View):
    """One entry, in the words of Kafka's tools. `permission` is ALLOW or DENY."""

    principal: str
    operation: str
    permission: str
    resource_type: str
    resource_name: str
    pattern_type: str = PatternType.LITERAL.name
    host: str = WILDCARD


class AclChange(View):
    """An entry to add or to delete."""

    acl: Acl


class AclPage(View):
    """A page of the entries. Without an authorizer every client may do everything.

    `may_change`: there is an authorizer, and the client may add and delete entries.
    """

    total: int
    authorizer: str | None
    may_change: bool
    acls: list[Acl]


class DeletedAcls(View):
    """How many entries were deleted: none if there was no such entry."""

    deleted: int


async def acls(call: Call, request: PageRequest) -> AclPage:
    """List entries, by the resources that they are for."""
    wanted = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answer = await call.ask(wanted, DescribeAclsResponse)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        return AclPage(total=0, authorizer=None, may_change=False, acls=[])
    check_code(answer.error_code, answer.error_message)
    matching = list(_matching(call, answer, request))
    page = islice(matching, request.first, request.first + request.limit)
    return AclPage(
        total=len(matching),
        authorizer=call.observed.broker.config.authorizer_class_name,
        may_change=call.may_change_cluster(AclOperation.ALTER),
        acls=list(page),
    )


def _matching(call: Call, answer: DescribeAclsResponse, request: PageRequest) -> Iterator[Acl]:
    for resource in answer.resources:
        for entry in call.sliced(resource.acls):
            if request.matches(f"{entry.principal} {entry.host} {resource.resource_name}"):
                yield Acl(
                    principal=entry.principal,
                    host=entry.host,
                    operation=AclOperation(entry.operation).name,
                    permission=Permission(entry.permission_type).name,
                    resource_type=ResourceType(resource.resource_type).name,
                    resource_name=resource.resource_name,
                    pattern_type=PatternType(resource.pattern_type).name,
                )


async def add_acl(call: Call, request: AclChange) -> Nothing:
    """Add an entry. One that is there already stays as it is."""
    acl = request.acl
    new = CreateAclsCreation(
        resource_type=_named(ResourceType, acl.resource_type),
        resource_name=acl.resource_name,
        resource_pattern_type=_named(PatternType, acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=_named(AclOperation, acl.operation),
        permission_type=_named(Permission, acl.permission),
    )
    answer = await call.ask(CreateAclsRequest(creations=[new]), CreateAclsResponse)
    check_code(answer.results[0].error_code, answer.results[0].error_message)
    return Nothing()


async def delete_acl(call: Call, request: AclChange) -> DeletedAcls:
    """Delete the entry that is exactly like this."""
    acl = request.acl
    pattern_type = _named(PatternType, acl.pattern_type)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise ApiError(ErrorCode.INVALID_REQUEST, "patternType must be LITERAL or PREFIXED")
    wanted = DeleteAclsFilter(
        resource_type_filter=_named(ResourceType, acl.resource_type),
        resource_name_filter=acl.resource_name,
        pattern_type_filter=pattern_type,
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=_named(AclOperation, acl.operation),
        permission_type=_named(Permission, acl.permission),
    )
    answer = await call.ask(DeleteAclsRequest(filters=[wanted]), DeleteAclsResponse)
    result = answer.filter_results[0]
    check_code(result.error_code, result.error_message)
    return DeletedAcls(deleted=len(result.matching_acls))


def _named(names: type[E], name: str) -> E:
    """The member of this name. Raises INVALID_REQUEST."""
    try:
        return names[name]
    except KeyError:
        text = f"{name!r} is none of {', '.join(each.name for each in names)}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text) from None


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/acls",
        summary="The entries of the authorizer.",
        handle=acls,
        request=PageRequest,
        response=AclPage,
    ),
    Endpoint(
        method="POST",
        template="/acls",
        summary="Add an entry of the authorizer.",
        handle=add_acl,
        request=AclChange,
        response=Nothing,
    ),
    Endpoint(
        method="DELETE",
        template="/acls",
        summary="Delete an entry of the authorizer.",
        handle=delete_acl,
        request=AclChange,
        response=DeletedAcls,
    ),
)
