"""`odradek bench`: figures of a broker that runs, and of one that is started for it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from confluent_kafka import Producer
from typer.testing import CliRunner

from odradek.broker.testing import Broker
from odradek.tools.app import app
from odradek.tools.bench.measuring import SENT_AT_ONCE, Figures, consumed_mb_per_s

Run = Callable[..., Result]


def figures(done: Result) -> Figures:
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["reference"].keys() == found["measured"].keys()
    return Figures(**found["measured"])


def is_sound(found: Figures) -> bool:
    return min(found) > 0 and found.latency_p50_ms <= found.latency_p99_ms


@pytest.mark.slow
def test_a_broker_is_measured_and_left_as_it_was(run: Run, broker: Broker) -> None:
    assert is_sound(figures(run("bench", "--seconds", "0.1", "--json")))
    assert broker.topics() == {}


@pytest.mark.slow
def test_a_broker_is_started_in_a_directory_that_is_empty_again(tmp_path: Path) -> None:
    options = ["--seconds", "0.1", "--json", "--directory", str(tmp_path)]
    assert is_sound(figures(CliRunner().invoke(app, ["bench", *options])))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_figures_are_shown_beside_those_of_the_reference(run: Run) -> None:
    shown = run("bench", "--seconds", "0.1").stdout.splitlines()
    assert shown[1].split() == ["measured", "reference"]
    assert len(shown) == 2 + len(Figures._fields)


def test_a_directory_needs_a_broker_of_its_own(run: Run, tmp_path: Path) -> None:
    done = run("bench", "--directory", str(tmp_path))
    assert done.exit_code == 1
    assert "--directory is for the broker that is started" in done.stderr


def test_a_topic_that_is_read_at_once_is_read_again(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer(settings)
    for _ in range(SENT_AT_ONCE):
        producer.produce("orders", b"one coffee")
    assert producer.flush(10) == 0
    assert consumed_mb_per_s(settings, "orders", 0.1) > 0


@pytest.mark.parametrize("seconds", ["0", "much"])
def test_bad_seconds_are_refused(run: Run, seconds: str) -> None:
    assert run("bench", "--seconds", seconds).exit_code == 2
