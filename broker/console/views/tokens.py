"""The delegation tokens that the client may see; never what logs in by them."""

from __future__ import annotations

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, View
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.console.refusals import check_code
from odradek.broker.security.principal import Principal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeDelegationTokenToken,
)


class Token(View):
    """A token. It logs in its owner until it expires, at the latest at `max_timestamp_ms`."""

    token_id: str
    owner: str
    requester: str
    issued_ms: int
    expires_ms: int
    max_timestamp_ms: int
    renewers: list[str]


class Tokens(View):
    """A page of the tokens, by their ids. The search is in ids and owners."""

    total: int
    is_enabled: bool
    tokens: list[Token]


async def tokens(call: Call, request: PageRequest) -> Tokens:
    """List tokens: of the client itself, and those that it may describe."""
    if call.observed.broker.security.token_rules.hmacs is None:
        return Tokens(total=0, is_enabled=False, tokens=[])
    wanted = DescribeDelegationTokenRequest(owners=None)
    answer = await call.ask(wanted, DescribeDelegationTokenResponse)
    check_code(answer.error_code, _explanation(answer.error_code))
    matching = [
        each
        for each in call.sliced(answer.tokens)
        if request.matches(f"{each.token_id} {each.principal_name}")
    ]
    page = page_of(call, matching, lambda each: each.token_id, request)
    return Tokens(
        total=len(matching),
        is_enabled=True,
        tokens=[_described(each) for each in call.sliced(page)],
    )


def _explanation(code: int) -> str:
    if code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        return "tokens are shown to those who have logged in, and no listener requires a login"
    return ""


def _described(token: DescribeDelegationTokenToken) -> Token:
    return Token(
        token_id=token.token_id,
        owner=str(Principal(token.principal_type, token.principal_name)),
        requester=str(
            Principal(token.token_requester_principal_type, token.token_requester_principal_name)
        ),
        issued_ms=token.issue_timestamp,
        expires_ms=token.expiry_timestamp,
        max_timestamp_ms=token.max_timestamp,
        renewers=[
            str(Principal(each.principal_type, each.principal_name)) for each in token.renewers
        ],
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/tokens",
        summary="The delegation tokens that the client may see.",
        handle=tokens,
        request=PageRequest,
        response=Tokens,
    ),
)
