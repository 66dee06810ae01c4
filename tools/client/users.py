"""`odradek users`: the users who log in by password (SCRAM), whom the metadata log has."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from odradek.coordinator.metadata.scram_mechanisms import (
    SCRAM_MECHANISMS,
    ScramMechanism,
    can_log_in,
    salted,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsDeletion,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsUser,
)
from odradek.tools.tables import counted, show_rows

from .answers import check_answer
from .cluster_commands import ClusterCommands
from .failure import CommandError

SALT_BYTES = 32
STDIN = Path("-")
NAMES = {int(mechanism): name for name, mechanism in SCRAM_MECHANISMS.items()}


def check_can_log_in(user: str) -> None:
    """Raise CommandError if no login may have this name."""
    if not can_log_in(user):
        raise CommandError(
            f"user {user!r} cannot log in: names are of ASCII characters, as in Kafka"
        )


def read_password(user: str, file: Path | None) -> str:
    """The password from a file, standard input, or a question. Raises CommandError."""
    try:
        password = _password(user, file)
        password.encode()  # with the locale C, standard input may be no UTF-8
    except OSError as error:
        raise CommandError(f"the password cannot be read: {error}") from None
    except UnicodeError:  # its message has a part of the password
        raise CommandError("the password cannot be read: it is not UTF-8") from None
    if not password:
        where = "standard input" if file in (None, STDIN) else file
        raise CommandError(f"the password is empty: write it in the first line of {where}")
    return password


def _password(user: str, file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        answer: str = typer.prompt(
            f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
        return answer
    if file in (None, STDIN):
        return sys.stdin.readline().removesuffix("\n")
    with file.open(encoding="utf-8") as opened:
        return opened.readline().removesuffix("\n")


def new_credential(
    user: str, mechanism: ScramMechanism, password: str, iterations: int
) -> AlterUserScramCredentialsUpsertion:
    """The change that sets a user's password for a mechanism, with a new salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    return AlterUserScramCredentialsUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=salted(mechanism, password, salt, iterations),
    )


class UserCommands(ClusterCommands):
    """The commands. Each raises CommandError."""

    def show(self, users: Sequence[str], *, as_json: bool) -> None:
        """Print the users, or these, with their mechanisms and iterations."""
        found = self._described(users)
        for user in users:
            if user not in found:
                raise CommandError(f"there is no user {user}; `odradek users list` shows them")
        rows = [
            (user, NAMES.get(mechanism, str(mechanism)), iterations)
            for user, credentials in sorted(found.items())
            for mechanism, iterations in sorted(credentials.items())
        ]
        header = ("user", "mechanism", "iterations")
        show_rows(counted(len(found), "user"), header, rows, as_json=as_json, texts=2)

    def add(self, user: str, password: str, mechanisms: Sequence[str], iterations: int) -> None:
        """Set the password of a user, for mechanisms by name."""
        upsertions = [
            new_credential(user, SCRAM_MECHANISMS[name], password, iterations)
            for name in mechanisms
        ]
        # A request may name a user only once, so each mechanism is a request.
        for upsertion in upsertions:
            self._alter([], [upsertion], f"add {user}")
        typer.echo(f"{user} can log in by {', '.join(mechanisms)}")

    def delete(self, user: str, mechanisms: Sequence[str]) -> None:
        """Delete the credentials of a user, for mechanisms by name, or all."""
        known = self._described([user]).get(user)
        if known is None:
            raise CommandError(f"there is no user {user}; `odradek users list` shows them")
        numbers = [int(SCRAM_MECHANISMS[name]) for name in mechanisms] or list(known)
        for number in numbers:
            name = NAMES.get(number, str(number))
            if number not in known:
                raise CommandError(f"{user} has no {name}; `odradek users list {user}` shows all")
            deletion = AlterUserScramCredentialsDeletion(name=user, mechanism=number)
            self._alter([deletion], [], f"delete {user}")
            typer.echo(f"deleted {name} of {user}")

    def _described(self, users: Sequence[str]) -> dict[str, dict[int, int]]:
        """By user: the iterations of each mechanism."""
        wanted = [DescribeUserScramCredentialsUser(name=user) for user in dict.fromkeys(users)]
        request = DescribeUserScramCredentialsRequest(users=wanted or None)
        answer = self._cluster.bootstrap.ask(request, DescribeUserScramCredentialsResponse)
        check_answer("users cannot be listed", answer.error_code, answer.error_message)
        found = {}
        for each in answer.results:
            if each.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check_answer(f"user {each.user}", each.error_code, each.error_message)
            found[each.user] = {
                credential.mechanism: credential.iterations for credential in each.credential_infos
            }
        return found

    def _alter(
        self,
        deletions: list[AlterUserScramCredentialsDeletion],
        upsertions: list[AlterUserScramCredentialsUpsertion],
        what: str,
    ) -> None:
        request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
        answer = self._cluster.bootstrap.ask(request, AlterUserScramCredentialsResponse)
        for each in answer.results:
            check_answer(what, each.error_code, each.error_message)
