"""DescribeDelegationToken (key 41, v1-3).

Lists tokens with their HMACs: those that the client owns, requested or may renew, and those that it
may describe: DESCRIBE on the token, or DESCRIBE_TOKENS on the owner. An empty list of owners asks
for nothing, null for all. Kafka: KafkaApis.handleDescribeTokensRequest."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.token_requests import check_token_requests
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import Principal, parse_principal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeDelegationTokenToken,
)
from odradek.protocol.records.cluster_metadata import DelegationTokenRecord


def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    check_token_requests(context)
    broker = context.broker
    hmacs = broker.security.token_rules.hmacs
    if hmacs is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {
            str(Principal(each.principal_type, each.principal_name))
            for each in context.sliced(request.owners)
        }
    return DescribeDelegationTokenResponse(
        tokens=[
            described(token, hmacs.of(token.token_id), context.api_version)
            for token in context.sliced(broker.metadata.delegation_tokens.by_id.values())
            if is_shown(context, owners, token)
        ]
    )


def is_shown(
    context: RequestContext, owners: set[str] | None, token: DelegationTokenRecord
) -> bool:
    connected = {token.owner, token.requester, *token.renewers}
    if owners is not None and not owners & connected:
        return False
    return (
        str(context.principal) in connected
        or context.authorize(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or context.authorize(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def described(
    token: DelegationTokenRecord, token_hmac: bytes, version: int
) -> DescribeDelegationTokenToken:
    owner = parse_principal(token.owner)
    requester = parse_principal(token.requester) if version >= 3 else Principal("", "")
    return DescribeDelegationTokenToken(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac,
        renewers=[
            DescribeDelegationTokenRenewer(principal_type=each.kind, principal_name=each.name)
            for each in map(parse_principal, token.renewers)
        ],
    )
