"""The ports and node ids of worker processes."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError


def config(**texts: str) -> BrokerConfig:
    return BrokerConfig.from_texts({name.replace("_", "."): text for name, text in texts.items()})


def test_a_worker_has_the_ports_after_those_of_the_broker() -> None:
    given = config(odradek_workers="2", odradek_workers_port_step="10")
    assert [given.port_of_process(9092, process) for process in range(3)] == [9092, 9102, 9112]
    assert given.port_of_process(0, 2) == 0


@pytest.mark.parametrize(
    ("listeners", "problem"),
    [
        ("PLAINTEXT://:9092,SSL://:9093", "both the broker and worker 1 would listen at port 9093"),
        ("PLAINTEXT://:9092,SSL://:9094", "both the broker and worker 2 would listen at port 9094"),
        ("PLAINTEXT://:65534", "worker 2 has no port"),
    ],
)
def test_ports_that_clash_or_do_not_exist_are_refused(listeners: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        config(odradek_workers="2", listeners=listeners)


def test_a_node_id_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"node\.id"):
        config(odradek_workers="2", node_id=str(2**31 - 2))


def test_a_session_timeout_within_one_heartbeat_interval_is_refused() -> None:
    assert config(broker_session_timeout_ms="2000")  # nothing uses it without workers
    with pytest.raises(ConfigError, match=r"more than broker\.heartbeat\.interval\.ms"):
        config(odradek_workers="1", broker_session_timeout_ms="2000")
