"""The users that log in by SCRAM: their mechanisms, new passwords, and their end."""

from __future__ import annotations

import asyncio
import secrets

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.scram_mechanisms import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramMechanism,
    can_log_in,
    salt_of,
    salted,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsDeletion,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


class MechanismOfUser(View):
    """A mechanism by which a user can log in, and how often its password was hashed."""

    mechanism: str
    iterations: int


class ScramUser(View):
    name: str
    mechanisms: list[MechanismOfUser]


class Users(View):
    """A page of the users, by name. `may_change`: the client may set and delete passwords."""

    total: int
    may_change: bool
    users: list[ScramUser]


class NewPassword(View):
    """Set the password of a user, who need not exist. Without `iterations`: the fewest allowed."""

    name: str
    password: str
    mechanism: str
    iterations: int | None = None

    def __repr__(self) -> str:
        return f"NewPassword({self.name!r}, {self.mechanism!r})"


class OldPassword(View):
    """Delete the password of a user for one mechanism."""

    name: str
    mechanism: str


async def users(call: Call, request: PageRequest) -> Users:
    """List users."""
    wanted = DescribeUserScramCredentialsRequest(users=None)
    answer = await call.ask(wanted, DescribeUserScramCredentialsResponse)
    check_code(answer.error_code, answer.error_message)
    matching = [each for each in call.sliced(answer.results) if request.matches(each.user)]
    page = page_of(call, matching, lambda each: each.user, request)
    return Users(
        total=len(matching),
        may_change=call.may_change_cluster(AclOperation.ALTER),
        users=[
            ScramUser(
                name=result.user,
                mechanisms=[
                    MechanismOfUser(
                        mechanism=ScramMechanism(info.mechanism).sasl_name,
                        iterations=info.iterations,
                    )
                    for info in result.credential_infos
                ],
            )
            for result in call.sliced(page)
        ],
    )


async def set_password(call: Call, request: NewPassword) -> Nothing:
    """Let a user log in. The password is hashed here, as Kafka's tools do it before they ask."""
    call.check_cluster(AclOperation.ALTER)  # before the work of hashing
    mechanism = _mechanism(request.mechanism)
    iterations = MIN_ITERATIONS if request.iterations is None else request.iterations
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        text = f"iterations must be from {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    if not request.password:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the password is empty")
    if not can_log_in(request.name):
        text = "a user of this name could not log in: names are of ASCII characters, as in Kafka"
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    salt = salt_of(secrets.randbits(130))
    # In a thread, because it takes milliseconds.
    password = await asyncio.to_thread(salted, mechanism, request.password, salt, iterations)
    new = AlterUserScramCredentialsUpsertion(
        name=request.name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=password,
    )
    await _alter(call, AlterUserScramCredentialsRequest(deletions=[], upsertions=[new]))
    return Nothing()


async def delete_password(call: Call, request: OldPassword) -> Nothing:
    """Let a user no longer log in by a mechanism."""
    old = AlterUserScramCredentialsDeletion(
        name=request.name, mechanism=_mechanism(request.mechanism)
    )
    await _alter(call, AlterUserScramCredentialsRequest(deletions=[old], upsertions=[]))
    return Nothing()


async def _alter(call: Call, request: AlterUserScramCredentialsRequest) -> None:
    answer = await call.ask(request, AlterUserScramCredentialsResponse)
    for result in answer.results:
        check_code(result.error_code, result.error_message)


def _mechanism(name: str) -> ScramMechanism:
    """The mechanism of this name. Raises UNSUPPORTED_SASL_MECHANISM."""
    mechanism = SCRAM_MECHANISMS.get(name)
    if mechanism is None:
        text = f"{name!r} is none of {', '.join(SCRAM_MECHANISMS)}"
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    return mechanism


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/users",
        summary="The users that log in by SCRAM.",
        handle=users,
        request=PageRequest,
        response=Users,
    ),
    Endpoint(
        method="POST",
        template="/users",
        summary="Set the SCRAM password of a user.",
        handle=set_password,
        request=NewPassword,
        response=Nothing,
    ),
    Endpoint(
        method="DELETE",
        template="/users",
        summary="Delete the SCRAM password of a user for one mechanism.",
        handle=delete_password,
        request=OldPassword,
        response=Nothing,
    ),
)
