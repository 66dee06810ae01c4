"""SCRAM users, set, described and deleted."""

from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsDeletion,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsUser,
)
from tests.conformance.conversation import Conversation, patiently

SHA_256, SHA_512 = 1, 2
Change = tuple[str, int] | tuple[str, int, int]


def _alter(talk: Conversation, *changes: Change) -> None:
    """Delete a user's credential, or set it with a number of iterations."""
    talk.ask(
        AlterUserScramCredentialsRequest(
            deletions=[
                AlterUserScramCredentialsDeletion(name=change[0], mechanism=change[1])
                for change in changes
                if len(change) == 2
            ],
            upsertions=[
                AlterUserScramCredentialsUpsertion(
                    name=change[0],
                    mechanism=change[1],
                    iterations=change[2],
                    salt=b"salt",
                    salted_password=b"salted",
                )
                for change in changes
                if len(change) == 3
            ],
        ),
        0,
    )


def _request(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(
        users=[DescribeUserScramCredentialsUser(name=name) for name in names]
    )


def _wait_for(talk: Conversation, name: str, mechanisms: int) -> None:
    """Kafka's broker learns of a change after it is answered."""

    def found() -> bool | None:
        (result,) = talk.silently(_request(name), 0).results
        return len(result.credential_infos) == mechanisms or None

    patiently(found)


def scram_users_are_set_described_and_deleted(talk: Conversation) -> None:
    talk.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    talk.ask(_request(), 0)
    _alter(talk, ("scram-a", SHA_256, 4096), ("scram-b", SHA_512, 16384))
    _wait_for(talk, "scram-a", 1)
    _alter(talk, ("scram-a", SHA_512, 8192))
    _wait_for(talk, "scram-a", 2)
    _wait_for(talk, "scram-b", 1)
    talk.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    talk.ask(_request("scram-a", "scram-nobody", ""), 0)
    talk.ask(_request("scram-a", "scram-b", "scram-a"), 0)
    talk.ask(_request("scram-nobody", "scram-nobody"), 0)
    _alter(talk, ("scram-a", SHA_256), ("scram-b", SHA_512))
    _wait_for(talk, "scram-a", 1)
    _alter(talk, ("scram-a", SHA_512))
    _wait_for(talk, "scram-a", 0)
    _wait_for(talk, "scram-b", 0)
    talk.ask(DescribeUserScramCredentialsRequest(users=None), 0)


def changes_of_scram_users_are_refused(talk: Conversation) -> None:
    _alter(talk)
    for name, mechanism, iterations in (
        ("", SHA_256, 4096),
        ("scram-c", 0, 4096),
        ("scram-c", 3, 4096),
        ("scram-c", -1, 4096),
        ("scram-c", SHA_256, 4095),
        ("scram-c", SHA_512, 16385),
        ("scram-c", SHA_512, -1),
        ("", 0, 0),
    ):
        _alter(talk, (name, mechanism, iterations))
    for name, mechanism in (("", SHA_256), ("scram-c", 0), ("scram-c", SHA_256), ("", 0)):
        _alter(talk, (name, mechanism))
    _alter(talk, ("scram-c", SHA_256, 4096), ("scram-c", SHA_512, 4096))
    _alter(talk, ("scram-c", SHA_256), ("scram-c", SHA_256, 4096))
    _alter(talk, ("scram-c", SHA_256, 1), ("scram-c", SHA_512, 4096), ("scram-d", 9, 4096))
    talk.ask(_request("scram-c"), 0)
