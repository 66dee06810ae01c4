"""Records that keep coming while a group is tested."""

import threading
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.conformance.group_member import Partition

TURN_SECONDS = 0.02
RECORDS_A_TURN = 20
FLUSH_SECONDS = 30


class Stream:
    """Writes a trickle of records into all its partitions until it is told to stop.

    `ends` says how many records each partition got; a broker that is away delays them.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.ends: dict[Partition, int] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": 500,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.add(topic, range(partitions))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def add(self, topic: str, partitions: range) -> None:
        """Write into these partitions too."""
        self.ends |= {(topic, partition): 0 for partition in partitions}

    def stop(self) -> dict[Partition, int]:
        """Write no more; the number of records of each partition."""
        self._end()
        assert self._producer.flush(FLUSH_SECONDS) == 0
        return dict(self.ends)

    def _end(self) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(TURN_SECONDS):
            places = list(self.ends)
            for _ in range(RECORDS_A_TURN):
                at = places[number % len(places)]
                number += 1
                if self._produces(at, str(number)):
                    self.ends[at] += 1
            self._producer.poll(0)

    def _produces(self, at: Partition, value: str) -> bool:
        """Whether it takes the record; not if it has not heard of the new partition yet."""
        topic, partition = at
        try:
            self._producer.produce(topic, value, partition=partition)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            return False
        return True
