"""An innocent client: it writes and reads all the while somebody else misbehaves."""

import threading
import time
from types import TracebackType

from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_process import against_apache_kafka
from tests.support.stored_batches import fetch
from tests.support.topics import create_topic
from tests.support.wire import WireClient

PRODUCE_VERSION = 9
PAUSE_SECONDS = 0.01


def produce_request(
    topic: str, batch: bytes, *, partitions: int = 1, acks: int = -1
) -> ProduceRequest:
    """A Produce of the same batch to each of the first partitions of a topic."""
    data = [ProducePartitionData(index=index, records=batch) for index in range(partitions)]
    topics = [ProduceTopicData(name=topic, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)


def produce(client: WireClient, topic: str, batch: bytes, *, acks: int = -1) -> int:
    """Append one batch to partition 0; its base offset."""
    request = produce_request(topic, batch, acks=acks)
    answer = client.ask(request, ProduceResponse, PRODUCE_VERSION)
    found = answer.responses[0].partition_responses[0]
    assert found.error_code == 0, f"error {found.error_code}: {found.error_message}"
    offset: int = found.base_offset
    return offset


class Bystander:
    """Writes a record and reads it back, again and again; leaving the `with` tells how it fared."""

    def __init__(self, port: int, topic: str) -> None:
        create_topic(f"127.0.0.1:{port}", topic)
        self.round_trips: list[float] = []
        self._client = WireClient(port, client_id="bystander")
        self._topic = topic
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bystander")
        if against_apache_kafka():
            time.sleep(0.3)  # its new partitions have no leader yet when the answer leaves

    def __enter__(self) -> "Bystander":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()
        if kind is None and self._failure is not None:
            raise AssertionError("the innocent client was harmed") from self._failure

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_SECONDS):
                started = time.perf_counter()
                self._round_trip(len(self.round_trips))
                self.round_trips.append(time.perf_counter() - started)
        except (OSError, AssertionError) as error:
            self._failure = error

    def _round_trip(self, number: int) -> None:
        record = Record(key=None, value=b"%d" % number, timestamp_ms=1_700_000_000_000)
        offset = produce(self._client, self._topic, bytes(build_batch([record])))
        assert offset == number, f"record {number} was given offset {offset}"
        data = fetch(self._client, self._topic, 0, offset)
        assert b"%d" % number in data, f"record {number} is not what is read at its offset"
