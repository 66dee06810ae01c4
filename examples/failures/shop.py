"""A shop that writes orders, and ships each of them once."""

from collections.abc import Iterable

from confluent_kafka import Consumer, Producer

LIMIT_S = 60


class Orders:
    """Writes orders; none is lost or written twice, whichever broker fails."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "socket.timeout.ms": 2000,
                "log_level": 0,
            }
        )

    def write(self, numbers: Iterable[int]) -> None:
        """Write orders, and return when the brokers have them."""
        for number in numbers:
            self._producer.produce("orders", b"%d" % number)
            self._producer.poll(0)
        if self._producer.flush(LIMIT_S):
            raise TimeoutError("some orders were not written")


class Packing:
    """Reads orders, and commits what it has packed."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.packed: list[int] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "packing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                # The search for a new coordinator waits behind a fetch on its connection, and a
                # commit that is tried again meanwhile starts the search anew.
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(["orders"])

    def pack(self, count: int) -> None:
        """Pack the next orders."""
        orders = self._consumer.consume(count, LIMIT_S)
        self.packed += [int(order.value() or b"-1") for order in orders]
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


class Shipping:
    """Reads orders, and writes a shipment for each, in one transaction with its position."""

    def __init__(self, bootstrap_servers: str) -> None:
        common = {
            "bootstrap.servers": bootstrap_servers,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
        self._consumer = Consumer(
            {
                **common,
                "group.id": "shipping",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe(["orders"])
        self._producer = Producer({**common, "transactional.id": "shipping"})
        self._producer.init_transactions(LIMIT_S)

    def ship(self, count: int) -> None:
        """Ship the next orders: all of them, or none."""
        orders = self._consumer.consume(count, LIMIT_S)
        self._producer.begin_transaction()
        for order in orders:
            self._producer.produce("shipments", order.value())
        self._producer.send_offsets_to_transaction(
            self._consumer.position(self._consumer.assignment()),
            self._consumer.consumer_group_metadata(),
        )
        self._producer.commit_transaction(LIMIT_S)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
