"""Registrations of controllers that Apache Kafka has left are removed on request."""

from pathlib import Path

import pytest

from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.features import METADATA_VERSION
from odradek.coordinator.metadata.kraft_log import open_kraft_log
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import FeatureLevelRecord, RegisterControllerRecord
from tests.support.metadata_logs import FILES, ME, controller_of, formatted, metadata_log

GONE = 7


def controller_at(data: Path, level: int) -> Controller:
    """A directory in which Kafka has registered this node's controller and another one."""
    kraft = open_kraft_log(metadata_log(data), FILES, "cluster", ME, now_ms=1_000)
    registrations = [
        RegisterControllerRecord(
            controller_id=controller_id,
            incarnation_id=bytes(16),
            zk_migration_ready=False,
            end_points=[],
            features=[],
        )
        for controller_id in (ME.node_id, GONE)
    ]
    records = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), *registrations]
    kraft.journal.commit(Outcome(reply=None, records=tuple(map(JournalRecord, records))), 0)
    return controller_of(kraft)


def test_a_registration_is_removed_once_and_for_all(tmp_path: Path) -> None:
    controller = controller_at(formatted(tmp_path), 33)
    controller.unregister_controller(GONE, 0)
    reopened = open_kraft_log(
        metadata_log(tmp_path / "data"), FILES, "cluster", ME, now_ms=1_000
    ).metadata
    for metadata in (controller.metadata, reopened):
        assert list(metadata.kept_records.controllers) == [ME.node_id]
    with pytest.raises(ApiError) as refusal:
        controller.unregister_controller(GONE, 0)
    assert refusal.value.code is ErrorCode.CONTROLLER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    ("level", "controller_id", "code"),
    [
        (32, GONE, ErrorCode.UNSUPPORTED_VERSION),
        (32, ME.node_id, ErrorCode.INVALID_REQUEST),
        (33, ME.node_id, ErrorCode.INVALID_REQUEST),
    ],
)
def test_this_controller_stays_and_older_metadata_has_no_removals(
    level: int, controller_id: int, code: ErrorCode, tmp_path: Path
) -> None:
    controller = controller_at(formatted(tmp_path), level)
    end = controller.log.log_end_offset
    with pytest.raises(ApiError) as refusal:
        controller.unregister_controller(controller_id, 0)
    assert refusal.value.code is code
    assert controller.log.log_end_offset == end
