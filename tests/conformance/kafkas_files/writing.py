"""Real clients that write records of every kind: in all codecs, and in transactions.

What has been acknowledged is kept, by its place: what a reader sees must be among it.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.conformance.clients.client import CODECS, Header

LIMIT_SECONDS = 60.0
BATCH_BYTES = 6000
OPEN_MS = 15 * 60 * 1000  # so long a transaction may be open
# Topic, partition, offset.
Place = tuple[str, int, int]


class Writing:
    """Writes records with what `rng` chooses; `written` tells what lies where."""

    def __init__(self, bootstrap: str, rng: random.Random, name: str) -> None:
        self.written: dict[Place, bytes | None] = {}
        self._rng, self._name, self._bootstrap = rng, name, bootstrap
        self._failures: list[KafkaError] = []
        self._serial = 0
        self._plain = [self._producer(codec) for codec in CODECS]

    def plain(self, topic: str, partitions: int, count: int, keys: int = 40) -> None:
        """Records outside of transactions, by producers of every codec, and wait for them."""
        for _ in range(count):
            self._write(self._rng.choice(self._plain), topic, partitions, keys)
        for producer in self._plain:
            self._flush(producer)

    def transactions(self, count: int) -> "Transactions":
        """So many producers of transactions, each of another codec."""
        first = self._rng.randrange(len(CODECS))
        producers = [
            self._producer(
                CODECS[(first + number) % len(CODECS)],
                **{
                    "transactional.id": f"{self._name}-{number}",
                    "transaction.timeout.ms": OPEN_MS,
                },
            )
            for number in range(count)
        ]
        for producer in producers:
            producer.init_transactions(LIMIT_SECONDS)
        return Transactions(self._rng, producers, self._write, self._flush)

    def _producer(self, codec: str, **more: Any) -> Producer:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "compression.type": codec,
            "enable.idempotence": True if more else self._rng.random() < 0.5,
            "linger.ms": 20,
            "batch.size": BATCH_BYTES,
            "batch.num.messages": self._rng.choice([1, 8, 60, 400]),
        }
        return Producer({**settings, **more})

    def _write(self, producer: Producer, topic: str, partitions: int, keys: int) -> None:
        rng, self._serial = self._rng, self._serial + 1
        key, value = b"key-%d" % rng.randrange(keys), f"{self._serial} größe ".encode()
        producer.produce(
            topic,
            key=key,
            value=rng.choice(
                [None, b"", value, value * rng.randrange(60), value + rng.randbytes(300)]
            ),
            partition=rng.randrange(partitions),
            timestamp=int(time.time() * 1000) - rng.randrange(10**6),
            headers=_headers(rng),
            on_delivery=self._delivered,
        )

    def _flush(self, producer: Producer) -> None:
        assert producer.flush(LIMIT_SECONDS) == 0
        if self._failures:
            raise KafkaException(self._failures[0])

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error)
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self.written[topic, partition, offset] = message.value()


def _headers(rng: random.Random) -> list[Header]:
    some: list[Header] = [
        ("größe", b"\xff\x00"),
        ("", None),
        ("größe", b""),
        ("long", rng.randbytes(70)),
    ]
    return rng.sample(some, rng.choice([0, 0, 1, 2, 4]))


Write = Callable[[Producer, str, int, int], None]


class Transactions:
    """Producers that take turns, so that their transactions lie in each other."""

    def __init__(
        self,
        rng: random.Random,
        producers: Sequence[Producer],
        write: Write,
        flush: Callable[[Producer], None],
    ) -> None:
        self._rng, self._producers, self._write, self._flush = rng, producers, write, flush
        self._open: set[int] = set()

    def play(self, topic: str, partitions: int, steps: int, keys: int = 40) -> None:
        """So many turns: some begin a transaction, some write, some commit or abort."""
        for _ in range(steps):
            number = self._rng.randrange(len(self._producers))
            if number in self._open and self._rng.random() < 0.4:
                self._end(number)
            else:
                self._write_some(number, topic, partitions, keys)

    def end(self) -> None:
        """Commit or abort all that is open."""
        for number in sorted(self._open):
            self._end(number)

    def leave_open(self, topic: str, partitions: int) -> None:
        """Write in a transaction that is not ended, and never again by its producer."""
        number = len(self._producers) - 1
        if number in self._open:
            self._end(number)
        self._write_some(number, topic, partitions, keys=40)
        self._flush(self._producers[number])
        # Kept, for a producer that is closed may end what it has begun.
        self._left = self._producers[number]
        self._producers = self._producers[:number]
        self._open.discard(number)

    def _write_some(self, number: int, topic: str, partitions: int, keys: int) -> None:
        if number not in self._open:
            self._producers[number].begin_transaction()
            self._open.add(number)
        for _ in range(self._rng.randrange(1, 9)):
            self._write(self._producers[number], topic, partitions, keys)

    def _end(self, number: int) -> None:
        producer = self._producers[number]
        self._flush(producer)  # what is not sent when a transaction is aborted never comes
        if self._rng.random() < 0.5:
            producer.abort_transaction(LIMIT_SECONDS)
        else:
            producer.commit_transaction(LIMIT_SECONDS)
        self._open.discard(number)
