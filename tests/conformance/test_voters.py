"""Wishes to change the metadata quorum: Kafka and odradek refuse them alike, in both its forms."""

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_raft_voter import (
    AddRaftVoterListener,
    AddRaftVoterRequest,
    AddRaftVoterResponse,
)
from odradek.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.checkpoints import read_meta_properties
from odradek.storage.files import Files
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import against_apache_kafka
from tests.support.java_tools import why_no_java
from tests.support.lengths import by_length
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
]

STRANGER = bytes(15) + b"\x77"
CONTROLLER = [AddRaftVoterListener(name="CONTROLLER", host="localhost", port=9)]
WRONG_NAME = [AddRaftVoterListener(name="PLAINTEXT", host="localhost", port=9)]


def answers(port: int, cluster_id: str, home: bytes) -> list[ErrorCode]:
    """To every wish but that of a node that might join: there Kafka would look for it."""
    codes = []
    with WireClient(port) as client:
        for cluster, voter, directory, listeners in (
            ("another", 0, home, CONTROLLER),
            (None, -1, home, CONTROLLER),
            (cluster_id, 0, ZERO_UUID, CONTROLLER),
            (cluster_id, 0, home, WRONG_NAME),
            (cluster_id, 0, home, []),
            (cluster_id, 0, home, CONTROLLER),
            (None, 0, STRANGER, CONTROLLER),
        ):
            for version in (0, 1):
                adding = AddRaftVoterRequest(
                    cluster_id=cluster,
                    timeout_ms=1000,
                    voter_id=voter,
                    voter_directory_id=directory,
                    listeners=listeners,
                )
                added = client.ask(adding, AddRaftVoterResponse, version)
                codes.append(ErrorCode(added.error_code))
                assert added.error_message
            removing = RemoveRaftVoterRequest(
                cluster_id=cluster, voter_id=voter, voter_directory_id=directory
            )
            removed = client.ask(removing, RemoveRaftVoterResponse, 0)
            codes.append(ErrorCode(removed.error_code))
            assert removed.error_message
    return codes


@pytest.mark.parametrize("form", by_length(["dynamic"], ["dynamic", "static"]))
def test_voters_are_not_changed(form: str, tmp_path: Path) -> None:
    shared = SharedDirectory(tmp_path)
    found = {}
    # Who comes first formats the directory: odradek with dynamic voters, Kafka with static ones.
    turns = ("odradek", "kafka") if form == "dynamic" else ("kafka", "odradek")
    for name in turns:
        with shared.served_by(name, killed=False) as broker:
            meta = read_meta_properties(Files(), shared.data)
            assert meta is not None
            assert meta.directory_id is not None
            found[name] = answers(broker.port, meta.cluster_id, meta.directory_id)
    assert found["odradek"] == found["kafka"]
    last = {"dynamic": ErrorCode.VOTER_NOT_FOUND, "static": ErrorCode.UNSUPPORTED_VERSION}
    assert found["odradek"][-1] is last[form]
