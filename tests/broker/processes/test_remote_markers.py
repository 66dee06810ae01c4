"""Markers in the logs of workers: each is sent until it is written, and not twice at a time."""

from types import SimpleNamespace

import pytest

from odradek.broker.processes.remote_markers import RemoteMarkers
from odradek.broker.processes.worker_messages import MarkerWritten, WriteMarker
from odradek.coordinator.transactions.marker_writer import MarkerSentError
from odradek.protocol.errors import ErrorCode
from odradek.storage.append import EndMarker
from odradek.storage.directories.log_share import LogShare
from odradek.storage.topic_partition import TopicPartition

SHARE = LogShare(workers=2)
HERE = TopicPartition("here", 0)
WHERE = TopicPartition("t", 0)
NEXT = TopicPartition("t", 1)  # another worker's
MARKER = EndMarker(9, 0, is_commit=True, coordinator_epoch=0)


class Rig:
    """The markers of a broker with two workers, and what is sent to them."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, TopicPartition]] = []
        self.serve = True
        self.woken: list[int] = []
        logs = SimpleNamespace(share=SHARE, is_elsewhere=lambda topic, _: topic != HERE.topic)
        self.markers = RemoteMarkers(logs)
        self.markers.send = self.send
        self.markers.on_written = self.woken.append

    def send(self, process: int, message: WriteMarker) -> bool:
        assert message.marker == MARKER
        if self.serve:
            self.sent.append((process, message.where))
        return self.serve

    def is_written(self, where: TopicPartition = WHERE) -> bool:
        try:
            return self.markers.write(MARKER, where)
        except MarkerSentError:
            return False

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.markers.answered(MarkerWritten(MARKER, WHERE, code))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_marker_of_the_brokers_own_log_is_not_sent(rig: Rig) -> None:
    assert rig.markers.write(MARKER, HERE) is False
    assert rig.sent == []


def test_a_marker_is_sent_once_until_its_worker_answers(rig: Rig) -> None:
    assert not rig.is_written()
    assert not rig.is_written()
    assert rig.sent == [(SHARE.owner(*WHERE), WHERE)]
    rig.answer()
    assert rig.woken == [MARKER.producer_id]
    assert rig.is_written()
    assert len(rig.sent) == 1


def test_a_marker_of_the_next_transaction_is_sent_again(rig: Rig) -> None:
    rig.is_written()
    rig.answer()
    assert rig.is_written()
    assert not rig.is_written()
    assert len(rig.sent) == 2


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
def test_a_transaction_that_has_ended_already_needs_no_marker(rig: Rig, code: ErrorCode) -> None:
    rig.is_written()
    rig.answer(code)
    assert rig.woken == [MARKER.producer_id]
    assert rig.is_written()


def test_a_marker_that_could_not_be_written_is_sent_again(rig: Rig) -> None:
    rig.is_written()
    rig.answer(ErrorCode.KAFKA_STORAGE_ERROR)
    assert rig.woken == []
    assert not rig.is_written()
    assert len(rig.sent) == 2


def test_a_marker_is_sent_when_its_worker_serves(rig: Rig) -> None:
    rig.serve = False
    assert not rig.is_written()
    rig.serve = True
    assert not rig.is_written()
    assert rig.sent == [(SHARE.owner(*WHERE), WHERE)]


def test_only_the_markers_of_a_worker_that_has_ended_are_sent_again(rig: Rig) -> None:
    rig.is_written(WHERE)
    rig.is_written(NEXT)
    rig.markers.worker_ended(SHARE.owner(*WHERE))
    assert not rig.is_written(WHERE)
    assert not rig.is_written(NEXT)
    assert [where for _, where in rig.sent] == [WHERE, NEXT, WHERE]
