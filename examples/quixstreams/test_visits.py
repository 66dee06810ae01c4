from pathlib import Path

from confluent_kafka import Producer

from odradek.broker.testing import Broker
from visits import count_visits


def visit(broker: Broker, *pages: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for page in pages:
        producer.produce("visits", "a visit", page)
    producer.flush(10)


def counts(broker: Broker) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in broker.records("counts")]


def test_the_visits_of_each_page_are_counted(odradek_broker: Broker, tmp_path: Path) -> None:
    visit(odradek_broker, "home", "shop", "home")
    count_visits(odradek_broker.bootstrap_servers, tmp_path).run(count=3, timeout=20)
    assert counts(odradek_broker) == [(b"home", b"1"), (b"shop", b"1"), (b"home", b"2")]


def test_the_counts_survive_a_crash_of_the_broker_and_the_loss_of_the_state(
    odradek_broker: Broker, tmp_path: Path
) -> None:
    visit(odradek_broker, "home", "home")
    count_visits(odradek_broker.bootstrap_servers, tmp_path / "first").run(count=2, timeout=20)
    odradek_broker.kill_and_restart()
    visit(odradek_broker, "home")
    count_visits(odradek_broker.bootstrap_servers, tmp_path / "second").run(count=1, timeout=20)
    assert counts(odradek_broker)[-1] == (b"home", b"3")
