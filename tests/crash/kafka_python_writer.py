"""The process behind `KafkaPythonWriter`: writes until its input ends, and tells of every answer.

Arguments: bootstrap address, topic, name. One JSON object a line: an acknowledgement, an error, or,
at last, the number of records written.
"""

import json
import select
import sys
from typing import Any

from kafka import KafkaProducer

from tests.crash import pace


def say(**fields: object) -> None:
    """Write one line; called by the producer's thread as well."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Answers:
    """Counts what has been answered, and tells it."""

    def __init__(self) -> None:
        self.count = 0

    def delivered(self, value: bytes, metadata: Any) -> None:
        """The broker has the record."""
        self.count += 1
        say(partition=metadata.partition, offset=metadata.offset, value=value.decode())

    def failed(self, error: BaseException) -> None:
        """The producer gave up."""
        self.count += 1
        say(error=repr(error))


def main(bootstrap: str, topic: str, name: str) -> None:
    """Write until standard input ends."""
    answers = Answers()
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        delivery_timeout_ms=pace.DELIVERY_SECONDS * 1000,
        request_timeout_ms=5000,
        max_block_ms=pace.DELIVERY_SECONDS * 1000,
        reconnect_backoff_max_ms=200,
        linger_ms=5,
    )
    written = 0
    while not select.select([sys.stdin], [], [], pace.PAUSE_SECONDS)[0]:
        if written - answers.count > pace.UNANSWERED:
            continue
        for _ in range(pace.BURST):
            value = f"{name}-{written}".encode()
            future = producer.send(topic, value, partition=written % pace.PARTITIONS)
            future.add_callback(answers.delivered, value)
            future.add_errback(answers.failed)
            written += 1
    producer.flush(pace.DELIVERY_SECONDS)
    producer.close()
    say(written=written)


if __name__ == "__main__":
    main(*sys.argv[1:])
