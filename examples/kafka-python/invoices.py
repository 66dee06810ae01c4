"""A service that writes an invoice for each order."""

import json
from contextlib import suppress
from threading import Event

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

PRICES = {"coffee": 3, "tea": 2}


def write_invoices(bootstrap_servers: str, stop: Event) -> None:
    """Consume `orders` and produce to `invoices`, at least once, until `stop` is set."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap_servers,
        group_id="invoices",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    while not stop.is_set():
        # A join that takes longer than this is lost in kafka-python 3.0: do not shorten it.
        polled = consumer.poll(timeout_ms=1000)
        for records in polled.values():
            for record in records:
                order = json.loads(record.value)
                total = order["count"] * PRICES[order["what"]]
                producer.send(
                    "invoices", key=record.key, value=json.dumps({"total": total}).encode()
                )
        if polled:
            producer.flush()
            # When this fails because the broker is away, the next commit has these offsets, too.
            with suppress(KafkaError):
                consumer.commit()
    consumer.close()
    producer.close()
