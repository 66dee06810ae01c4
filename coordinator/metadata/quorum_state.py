"""The file `quorum-state` in the metadata log's directory: the quorum's last epoch and its leader.

It is one line of JSON in two forms: data_version 0 if the voters are configured (kraft.version 0),
data_version 1 if they are records of the log (kraft.version 1). `QuorumState.voters` selects the
form; kraft_log.py keeps that of an existing directory. The JSON keys are a file format: never
rename them.
Kafka: FileQuorumStateStore, QuorumStateData.
"""

import json
from pathlib import Path

from msgspec import Struct

from odradek.protocol.primitives import ZERO_UUID, uuid_from_text, uuid_text
from odradek.storage.filenames import QUORUM_STATE
from odradek.storage.files import Files

NO_NODE = -1


class QuorumStateError(Exception):
    """The file cannot be read. The message has its path and the reason."""


class QuorumState(Struct, frozen=True, kw_only=True):
    """The content of the file. `voters` are node ids; None if the log has the voters."""

    leader_id: int
    leader_epoch: int
    voted_id: int = NO_NODE
    voted_directory_id: bytes = ZERO_UUID
    voters: tuple[int, ...] | None = None

    def to_json(self) -> str:
        """Return the file's text, as Kafka writes it."""
        if self.voters is None:
            fields: dict[str, object] = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "votedDirectoryId": uuid_text(self.voted_directory_id),
                "data_version": 1,
            }
        else:
            fields = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter} for voter in self.voters],
                "data_version": 0,
            }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "QuorumState":
        """Parse the file's text: the inverse of `to_json`. Raises ValueError."""
        try:
            fields = json.loads(text)
            version = fields["data_version"]
            if version not in (0, 1):
                raise ValueError(f"data_version {version} is not 0 or 1")
            return cls(
                leader_id=int(fields["leaderId"]),
                leader_epoch=int(fields["leaderEpoch"]),
                voted_id=int(fields["votedId"]),
                voted_directory_id=(
                    uuid_from_text(fields["votedDirectoryId"]) if version else ZERO_UUID
                ),
                voters=None if version else _voters(fields["currentVoters"]),
            )
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"a field is missing or of the wrong type: {error!r}") from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def _voters(listed: list[dict[str, int]] | None) -> tuple[int, ...]:
    return tuple(int(voter["voterId"]) for voter in listed or ())


def read_quorum_state(files: Files, directory: Path) -> QuorumState | None:
    """Read the file in the metadata log's directory. Returns None if it does not exist.

    Raises QuorumStateError.
    """
    path = directory / QUORUM_STATE
    if not files.exists(path):
        return None
    try:
        return QuorumState.from_json(files.read(path).decode("utf-8"))
    except ValueError as error:
        raise QuorumStateError(f"{path}: {error}") from None


def write_quorum_state(files: Files, directory: Path, state: QuorumState) -> None:
    """Replace the file and sync it."""
    files.atomic_write(directory / QUORUM_STATE, state.to_json().encode("utf-8"))
