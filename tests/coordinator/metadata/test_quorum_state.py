"""The file quorum-state, in both forms."""

from pathlib import Path

import pytest

from odradek.coordinator.metadata.quorum_state import (
    QuorumState,
    QuorumStateError,
    read_quorum_state,
    write_quorum_state,
)
from odradek.storage.files import Files

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"
STATIC = QuorumState(leader_id=1, leader_epoch=1, voters=(1,))
DYNAMIC = QuorumState(leader_id=1, leader_epoch=1)


@pytest.mark.parametrize(("form", "state"), [("static", STATIC), ("dynamic", DYNAMIC)])
def test_kafkas_file_is_read_and_written_byte_for_byte(
    form: str, state: QuorumState, tmp_path: Path
) -> None:
    directory = GOLDEN / form / "__cluster_metadata-0"
    assert read_quorum_state(Files(), directory) == state
    write_quorum_state(Files(), tmp_path, state)
    written = (tmp_path / "quorum-state").read_bytes()
    assert written == (directory / "quorum-state").read_bytes()


def test_a_directory_without_the_file_has_no_state(tmp_path: Path) -> None:
    assert read_quorum_state(Files(), tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"data_version":2,"leaderId":1,"leaderEpoch":1,"votedId":-1}',
        '{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"?"}',
        '{"data_version":0,"leaderId":1,"leaderEpoch":null,"votedId":-1,"currentVoters":[]}',
        '{"data_version":0,"leaderId":1,"leaderEpoch":1e999,"votedId":-1,"currentVoters":[]}',
        pytest.param("[" * 100_000, id="nested"),
    ],
)
def test_a_broken_file_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text(text)
    with pytest.raises(QuorumStateError, match="quorum-state: "):
        read_quorum_state(Files(), tmp_path)


def test_voters_may_be_null_as_in_files_of_old(tmp_path: Path) -> None:
    text = '{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
    (tmp_path / "quorum-state").write_text(text + '"currentVoters":null,"data_version":0}')
    assert read_quorum_state(Files(), tmp_path) == QuorumState(
        leader_id=1, leader_epoch=4, voters=()
    )
