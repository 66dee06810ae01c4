import pytest
from confluent_kafka import Producer

from booking import book_payments
from odradek.broker.testing import ApiKey, Broker, Snapshot


@pytest.fixture(scope="module")
def six_payments(odradek_session_broker: Broker) -> Snapshot:
    """Six payments, of which two are booked. It is made once for all tests."""
    odradek_session_broker.reset()
    producer = Producer({"bootstrap.servers": odradek_session_broker.bootstrap_servers})
    for number in range(6):
        producer.produce("payments", b"%d" % number)
    producer.flush(10)
    book_payments(odradek_session_broker.bootstrap_servers, 2)
    return odradek_session_broker.snapshot()


@pytest.fixture
def broker(odradek_session_broker: Broker, six_payments: Snapshot) -> Broker:
    odradek_session_broker.restore(six_payments)
    return odradek_session_broker


def bookings(broker: Broker) -> list[bytes | None]:
    """What consumers with isolation.level=read_committed see."""
    return [record.value for record in broker.records("bookings")]


def test_the_next_payments_are_booked(broker: Broker) -> None:
    book_payments(broker.bootstrap_servers, 3)
    assert bookings(broker) == [b"booked %d" % number for number in range(5)]
    assert broker.committed("booking", "payments") == {0: 5}


@pytest.mark.parametrize("lost", [ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN])
def test_a_lost_answer_books_nothing_twice(broker: Broker, lost: ApiKey) -> None:
    broker.drop_connection(lost, handled=True)
    book_payments(broker.bootstrap_servers, 4)
    assert bookings(broker) == [b"booked %d" % number for number in range(6)]
