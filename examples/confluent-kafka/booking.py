"""A service that books each payment exactly once, with transactions."""

from confluent_kafka import Consumer, Producer

LIMIT_S = 30


def book_payments(bootstrap_servers: str, count: int) -> None:
    """Consume the next `count` records of `payments`, and produce to `bookings`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "booking",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "booking"})
    producer.init_transactions(LIMIT_S)
    consumer.subscribe(["payments"])
    payments = consumer.consume(count, LIMIT_S)
    producer.begin_transaction()
    for payment in payments:
        producer.produce("bookings", b"booked " + payment.value())
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
    )
    producer.commit_transaction(LIMIT_S)
    consumer.close()
