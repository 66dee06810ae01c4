"""Writes the topic that is copied, in transactions of which some do not count."""

from confluent_kafka import Producer

PARTITIONS = 3
TRANSACTION = 50
ABORTED = range(10**9, 2 * 10**9)  # numbers of records that must not be copied
TIMEOUT_S = 100.0


class Source:
    """Numbers, in ascending order within each partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.written: list[int] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._aborted = iter(ABORTED)

    def write(self, transactions: int) -> None:
        """Commit transactions, abort as many, and leave one open; that of the last call ends."""
        producer = self._producer()
        for _ in range(transactions):
            numbers = range(len(self.written), len(self.written) + TRANSACTION)
            self._send(producer, numbers)
            producer.commit_transaction(TIMEOUT_S)
            self.written += numbers
            self._send_for_nothing(producer)
            producer.abort_transaction(TIMEOUT_S)
        self._send_for_nothing(producer)

    def end(self) -> None:
        """Abort the transaction that is open."""
        self._producer()

    def _producer(self) -> Producer:
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": "source"}
        producer = Producer({**settings, "log_level": 0})
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _send_for_nothing(self, producer: Producer) -> None:
        self._send(producer, [next(self._aborted) for _ in range(PARTITIONS)])

    def _send(self, producer: Producer, numbers: range | list[int]) -> None:
        producer.begin_transaction()
        for number in numbers:
            producer.produce(self._topic, str(number), partition=number % PARTITIONS)
        assert producer.flush(TIMEOUT_S) == 0
