"""Sends the rows of a table of messages to Kafka, and deletes those that the broker has."""

import sqlite3

from confluent_kafka import Producer

MESSAGES = "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, value BLOB)"


def send_messages(database: sqlite3.Connection, bootstrap_servers: str) -> None:
    """Send all messages to the topic `messages`. What is not acknowledged in time stays."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "delivery.timeout.ms": 2000})
    sent: list[int] = []
    for number, value in database.execute("SELECT id, value FROM messages ORDER BY id"):

        def delivered(error: object, _: object, number: int = number) -> None:
            if error is None:
                sent.append(number)

        producer.produce("messages", value, on_delivery=delivered)
    producer.flush()
    database.executemany("DELETE FROM messages WHERE id = ?", [(number,) for number in sent])
