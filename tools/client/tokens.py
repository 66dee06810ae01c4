"""`odradek tokens`: delegation tokens, by which clients log in as the token's owner.

Requests name a token by its HMAC, which is a secret. These commands name it by its id: the broker
tells the HMAC to all who may renew the token.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import typer

from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRenewer,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeDelegationTokenToken,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from odradek.tools.tables import counted, print_json, show_table

from .answers import check_answer
from .cluster_commands import ClusterCommands
from .failure import CommandError
from .moments import UNITS_MS
from .principals import principal_text

LONGEST = -1  # the longest that the broker allows; for an expiry: now
OWNER_VERSION = 3  # of CreateDelegationToken: the first with another owner
_DURATION = re.compile(r"([0-9]{1,10})([smhd])")  # the milliseconds of 10 digits are an int64


def parse_duration_ms(text: str | None) -> int:
    """`12h` in milliseconds; None is the broker's default. Raises CommandError."""
    if text is None:
        return LONGEST
    match = _DURATION.fullmatch(text)
    if match is None:
        raise CommandError(f"{text} is no time: write 90m, 12h or 7d (s, m, h, d)")
    return int(match[1]) * UNITS_MS[match[2]]


class TokenCommands(ClusterCommands):
    """The commands. Each raises CommandError."""

    def show(self, owners: Sequence[str], *, secrets: bool, as_json: bool) -> None:
        """Print the tokens of these owners, or all, that the client may see."""
        tokens = sorted(self._described(owners), key=lambda token: token.issue_timestamp)
        if as_json:
            print_json([_as_json(token, secrets=secrets) for token in tokens])
            return
        header = ["token", "owner", "requester", "renewers", "expires", "at the latest"]
        rows = [
            [
                token.token_id,
                _principal(token.principal_type, token.principal_name),
                _principal(
                    token.token_requester_principal_type, token.token_requester_principal_name
                ),
                ", ".join(_renewers(token)) or "-",
                _time(token.expiry_timestamp),
                _time(token.max_timestamp),
                *([_base64(token.hmac)] if secrets else []),
            ]
            for token in tokens
        ]
        header += ["HMAC"] if secrets else []
        show_table(counted(len(rows), "token"), header, rows, texts=len(header))

    def create(
        self, owner: str | None, renewers: Sequence[str], lifetime_ms: int, *, as_json: bool
    ) -> None:
        """Create a token and print it, with its secret."""
        kind, _, name = principal_text(owner).partition(":") if owner else ("", "", "")
        request = CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=name,
            renewers=[
                CreateDelegationTokenRenewer(principal_type=kind, principal_name=name)
                for kind, _, name in (principal_text(each).partition(":") for each in renewers)
            ],
            max_lifetime_ms=lifetime_ms,
        )
        version = OWNER_VERSION if owner else None
        answer = self._cluster.bootstrap.ask(request, CreateDelegationTokenResponse, version)
        check_answer("the token is not created", answer.error_code)
        created = {
            "token": answer.token_id,
            "hmac": _base64(answer.hmac),
            "owner": _principal(answer.principal_type, answer.principal_name),
            "expires": _time(answer.expiry_timestamp_ms),
            "at_the_latest": _time(answer.max_timestamp_ms),
        }
        if as_json:
            print_json(created)
            return
        for label, value in created.items():
            typer.echo(f"{label.replace('_', ' ')}: {value}")

    def renew(self, token_id: str, period_ms: int) -> None:
        """Let a token expire later."""
        request = RenewDelegationTokenRequest(hmac=self._hmac(token_id), renew_period_ms=period_ms)
        answer = self._cluster.bootstrap.ask(request, RenewDelegationTokenResponse)
        check_answer(f"token {token_id} is not renewed", answer.error_code)
        typer.echo(f"{token_id} expires at {_time(answer.expiry_timestamp_ms)}")

    def expire(self, token_id: str, period_ms: int) -> None:
        """Remove a token, or let it expire after a time."""
        request = ExpireDelegationTokenRequest(
            hmac=self._hmac(token_id), expiry_time_period_ms=period_ms
        )
        answer = self._cluster.bootstrap.ask(request, ExpireDelegationTokenResponse)
        check_answer(f"token {token_id} is not expired", answer.error_code)
        if period_ms < 0:
            typer.echo(f"removed {token_id}")
        else:
            typer.echo(f"{token_id} expires at {_time(answer.expiry_timestamp_ms)}")

    def _hmac(self, token_id: str) -> bytes:
        for token in self._described([]):
            if token.token_id == token_id:
                return bytes(token.hmac)
        raise CommandError(f"there is no token {token_id}; `odradek tokens list` shows them")

    def _described(self, owners: Sequence[str]) -> list[DescribeDelegationTokenToken]:
        wanted = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, _, name in (principal_text(owner).partition(":") for owner in owners)
        ]
        request = DescribeDelegationTokenRequest(owners=wanted or None)
        answer = self._cluster.bootstrap.ask(request, DescribeDelegationTokenResponse)
        check_answer("tokens cannot be listed", answer.error_code)
        return answer.tokens


def _as_json(token: DescribeDelegationTokenToken, *, secrets: bool) -> dict[str, object]:
    shown: dict[str, object] = {
        "token": token.token_id,
        "owner": _principal(token.principal_type, token.principal_name),
        "requester": _principal(
            token.token_requester_principal_type, token.token_requester_principal_name
        ),
        "renewers": _renewers(token),
        "issued": _time(token.issue_timestamp),
        "expires": _time(token.expiry_timestamp),
        "at_the_latest": _time(token.max_timestamp),
    }
    return shown | ({"hmac": _base64(token.hmac)} if secrets else {})


def _renewers(token: DescribeDelegationTokenToken) -> list[str]:
    return [_principal(each.principal_type, each.principal_name) for each in token.renewers]


def _principal(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind else "-"


def _base64(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


def _time(milliseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):  # outside the calendar's range
        return f"{milliseconds} ms since 1970"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
