import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from kafka import KafkaProducer

from invoices import write_invoices
from odradek.broker.testing import ApiKey, Broker, ErrorCode


@contextmanager
def running_service(broker: Broker) -> Iterator[None]:
    stop = Event()
    thread = Thread(target=write_invoices, args=(broker.bootstrap_servers, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def order(broker: Broker, count: int, what: str) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        value = json.dumps({"count": count, "what": what}).encode()
        producer.send("orders", key=b"table-7", value=value).get(timeout=10)


def totals(broker: Broker, count: int) -> list[int]:
    """The totals of the invoices, when there are at least `count`."""
    return [json.loads(each.value)["total"] for each in broker.wait_for_records("invoices", count)]


def test_an_order_becomes_an_invoice(odradek_broker: Broker) -> None:
    order(odradek_broker, 2, "coffee")
    with running_service(odradek_broker):
        (invoice,) = odradek_broker.wait_for_records("invoices", 1)
    assert (invoice.key, invoice.value) == (b"table-7", b'{"total": 6}')


def test_an_invoice_that_the_broker_refuses_is_sent_again(odradek_broker: Broker) -> None:
    order(odradek_broker, 1, "tea")
    odradek_broker.fail_next(ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    with running_service(odradek_broker):
        assert totals(odradek_broker, 1) == [2]


def test_the_service_goes_on_after_the_broker_was_killed(odradek_broker: Broker) -> None:
    order(odradek_broker, 1, "tea")
    with running_service(odradek_broker):
        assert totals(odradek_broker, 1) == [2]
        odradek_broker.kill_and_restart()
        order(odradek_broker, 1, "coffee")
        assert totals(odradek_broker, 2)[-1] == 3
