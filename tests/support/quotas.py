"""Client quotas set by raw requests."""

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntityData,
    AlterClientQuotasOpData,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
)
from tests.support.wire import WireClient

ALTER_VERSION = 1


def quota_request(
    entity: dict[str, str | None], **quotas: float | None
) -> AlterClientQuotasRequest:
    """Set the quotas of one entity; None removes one."""
    parts = [
        AlterClientQuotasEntityData(entity_type=kind, entity_name=name)
        for kind, name in entity.items()
    ]
    ops = [
        AlterClientQuotasOpData(key=key, value=value or 0.0, remove=value is None)
        for key, value in quotas.items()
    ]
    entry = AlterClientQuotasRequestEntryData(entity=parts, ops=ops)
    return AlterClientQuotasRequest(entries=[entry], validate_only=False)


def alter_quota(port: int, entity: dict[str, str | None], **quotas: float | None) -> None:
    """Set the quotas of one entity; None removes one. Fails if that is refused."""
    with WireClient(port, client_id="quota-admin") as client:
        request = quota_request(entity, **quotas)
        answer = client.ask(request, AlterClientQuotasResponse, ALTER_VERSION)
    assert answer.entries[0].error_code == ErrorCode.NONE, answer
