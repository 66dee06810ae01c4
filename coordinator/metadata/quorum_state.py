"""The file `quorum-state` beside the metadata log: the last epoch of the quorum, and who led it.

One line of JSON, in two forms: data_version 0 where the voters are fixed by configuration
(kraft.version 0), data_version 1 where they are records of the log (kraft.version 1). The form
found is the form kept. On disk: never rename a field. Kafka: FileQuorumStateStore, QuorumStateData.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from odradek.protocol.primitives import ZERO_UUID, uuid_from_text, uuid_text
from odradek.storage.filenames import QUORUM_STATE
from odradek.storage.files import Files

NOBODY = -1


class QuorumStateError(Exception):
    """The file cannot be read; names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """`voters` are the node ids of the fixed quorum; None where the log holds them."""

    leader_id: int
    leader_epoch: int
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO_UUID
    voters: tuple[int, ...] | None = None

    def to_json(self) -> str:
        """As Kafka writes it, field by field."""
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
        """The inverse of `to_json`. Raises ValueError."""
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
    """What the metadata log's directory says; None when it has no such file.

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
    """Replace the file; it has survived a power cut when this returns."""
    files.atomic_write(directory / QUORUM_STATE, state.to_json().encode("utf-8"))
