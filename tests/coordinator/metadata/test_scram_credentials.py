"""What the credentials of users have in common, for names that have none."""

from odradek.coordinator.metadata.scram_credentials import ScramCredentials
from odradek.protocol.records.cluster_metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


def credential(name: str, iterations: int, mechanism: int = 1) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=b"s",
        stored_key=b"k",
        server_key=b"k",
        iterations=iterations,
    )


def test_iterations_are_as_frequent_as_among_users() -> None:
    credentials = ScramCredentials()
    assert credentials.decoy_iterations(1, 7) is None
    for number in range(4):
        credentials.replay(credential(f"user-{number}", 4096))
    credentials.replay(credential("user-0", 8192))  # again
    credentials.replay(credential("other", 16384, mechanism=2))
    found = [credentials.decoy_iterations(1, number) for number in range(8)]
    assert found == [4096, 4096, 4096, 8192] * 2
    credentials.replay_removal(RemoveUserScramCredentialRecord(name="user-0", mechanism=1))
    assert {credentials.decoy_iterations(1, number) for number in range(8)} == {4096}
    credentials.replay_removal(RemoveUserScramCredentialRecord(name="other", mechanism=2))
    assert credentials.decoy_iterations(2, 7) is None
