"""The marker's batch is the one that the general builder makes."""

import pytest

from odradek.protocol.batch_header import PREFIX_BYTES, read_header
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage.append import EndMarker
from odradek.storage.marker_batch import marker_batch

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("has_append_time", [True, False])
@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("coordinator_epoch", [0, 1, 2**31 - 1])
def test_it_is_a_batch_of_one_control_record(
    has_append_time: bool, is_commit: bool, coordinator_epoch: int
) -> None:
    kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
    expected = build_batch(
        [Record(control_key(kind), end_txn_value(coordinator_epoch), NOW_MS)],
        producer_id=7,
        producer_epoch=3,
        is_transactional=True,
        is_control=True,
        log_append_time_ms=NOW_MS if has_append_time else None,
    )
    marker = EndMarker(7, 3, is_commit, coordinator_epoch)
    header, content = marker_batch(marker, NOW_MS, has_append_time=has_append_time)
    assert header == read_header(expected)
    assert content == expected[PREFIX_BYTES:]
