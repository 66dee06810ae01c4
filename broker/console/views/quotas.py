"""The quotas of users, client ids and addresses."""

from __future__ import annotations

from itertools import islice

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.paging import PageRequest
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntityData,
    AlterClientQuotasOpData,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
)
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


class EntityPart(View):
    """A user, a client-id or an ip. Without a name: all that have no quota of their own."""

    type: str
    name: str | None = None


class Quota(View):
    """The limits of those to whom all parts of the entity apply."""

    entity: list[EntityPart]
    values: dict[str, float]


class Quotas(View):
    """A page of the quotas. The search is in the names. `may_change`: the client may set them."""

    total: int
    may_change: bool
    quotas: list[Quota]


class QuotaChange(View):
    """Limits to set and to remove."""

    entity: list[EntityPart]
    set: dict[str, float] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)


async def quotas(call: Call, request: PageRequest) -> Quotas:
    """List quotas."""
    wanted = DescribeClientQuotasRequest(components=[], strict=False)
    answer = await call.ask(wanted, DescribeClientQuotasResponse)
    check_code(answer.error_code, answer.error_message)
    matching = [
        entry
        for entry in call.sliced(answer.entries or [])
        if request.matches(" ".join(part.entity_name or "" for part in entry.entity))
    ]
    page = islice(matching, request.first, request.first + request.limit)
    return Quotas(
        total=len(matching),
        may_change=call.may_change_cluster(AclOperation.ALTER_CONFIGS),
        quotas=[
            Quota(
                entity=[
                    EntityPart(type=part.entity_type, name=part.entity_name)
                    for part in entry.entity
                ],
                values={limit.key: limit.value for limit in entry.values},
            )
            for entry in call.sliced(page)
        ],
    )


async def change_quotas(call: Call, request: QuotaChange) -> Nothing:
    """Set and remove limits of one entity, all or none."""
    changes = [
        AlterClientQuotasOpData(key=key, value=value, remove=False)
        for key, value in call.sliced(list(request.set.items()))
    ]
    changes += [
        AlterClientQuotasOpData(key=key, value=0.0, remove=True)
        for key in call.sliced(request.remove)
    ]
    if not changes:
        raise ApiError(ErrorCode.INVALID_REQUEST, "there is nothing to set and nothing to remove")
    entity = [
        AlterClientQuotasEntityData(entity_type=part.type, entity_name=part.name)
        for part in call.sliced(request.entity)
    ]
    entry = AlterClientQuotasRequestEntryData(entity=entity, ops=changes)
    wanted = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    answer = await call.ask(wanted, AlterClientQuotasResponse)
    for result in answer.entries:
        check_code(result.error_code, result.error_message)
    return Nothing()


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/quotas",
        summary="The quotas of users, client ids and addresses.",
        handle=quotas,
        request=PageRequest,
        response=Quotas,
    ),
    Endpoint(
        method="PUT",
        template="/quotas",
        summary="Set and remove quotas.",
        handle=change_quotas,
        request=QuotaChange,
        response=Nothing,
    ),
)
