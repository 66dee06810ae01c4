"""What a writer notes of its transactions is what a consumer finds."""

import random
import threading
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from odradek.pipeline.jobs.offset_spans import Span
from tests.support import topic_writer
from tests.support.archive_contents import consumed
from tests.support.broker_in_thread import broker_in_thread
from tests.support.sent_records import Held, Place, SentRecords
from tests.support.topic_writer import Topic, TopicWriter
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow
LIMIT_SECONDS = 60.0


class WithoutAnswers(Producer):
    """Commits, and fails as if the answer were lost. Then nothing more can be done with it."""

    lost = threading.Semaphore(0)

    def commit_transaction(self, *timeout_s: float) -> None:
        super().commit_transaction(*timeout_s)
        self.lost.release()
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "lost", txn_requires_abort=True))

    def abort_transaction(self, *_timeout_s: float) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL, "fatal", fatal=True))


def test_a_transaction_is_not_aborted_because_the_answer_to_its_commit_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_writer, "Producer", WithoutAnswers)
    sent, place = SentRecords(), Place("orders", "00", 0)
    with broker_in_thread(tmp_path, {"listeners": "PLAINTEXT://127.0.0.1:0"}) as broker:
        bootstrap = f"127.0.0.1:{broker.ports['PLAINTEXT']}"
        create_topic(bootstrap, "orders")
        topic = Topic("orders", "00")
        writer = TopicWriter(bootstrap, topic, 1, sent, random.Random(7), pause_s=0.01)
        for _ in range(5):
            assert WithoutAnswers.lost.acquire(timeout=LIMIT_SECONDS)
        writer.end()
        rows = consumed(bootstrap, "orders", 1)[0]
    held = Held(rows, [Span(0, 2**62)])
    assert sent.resolve({place: held}) == []
    assert [*sent.faults(place, held, committed_only=True, compacted=False)] == []
