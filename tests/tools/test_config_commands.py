"""`odradek configs`."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from odradek.broker.testing import Broker

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("kind", "name", "setting", "value", "source"),
    [
        ("topic", "orders", "retention.ms", "1000", "dynamic_topic"),
        ("broker", "0", "log.retention.ms", "2000", "dynamic_broker"),
        ("broker", "", "log.retention.ms", "3000", "dynamic_default_broker"),
        ("group", "readers", "consumer.session.timeout.ms", "9000", "group"),
    ],
)
def test_settings_are_changed_shown_and_removed(
    run: Run, broker: Broker, kind: str, name: str, setting: str, value: str, source: str
) -> None:
    broker.create_topic("orders")
    done = run("configs", "alter", kind, name, "--set", f"{setting}={value}")
    assert (done.exit_code, done.stdout) == (
        0,
        f"altered {f'{kind} {name}' if name else 'all brokers'}\n",
    )
    shown = json.loads(run("configs", "describe", kind, name, "--json").stdout)
    assert {"setting": setting, "value": value, "source": source} in shown
    assert f"{setting}" in run("configs", "describe", kind, name).stdout
    run("configs", "alter", kind, name, "--unset", setting)
    shown = json.loads(run("configs", "describe", kind, name, "--json").stdout)
    assert value not in [each["value"] for each in shown if each["setting"] == setting]


def test_defaults_are_shown_when_asked_for(run: Run, broker: Broker) -> None:
    broker.create_topic("orders")
    shown = json.loads(run("configs", "describe", "topic", "orders", "--json").stdout)
    assert "cleanup.policy" not in [each["setting"] for each in shown]
    shown = json.loads(run("configs", "describe", "topic", "orders", "--all", "--json").stdout)
    assert {"setting": "cleanup.policy", "value": "delete", "source": "default"} in shown


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["alter", "topic", "orders", "--set", "retention.ms=often"], 1, "retention.ms"),
        (["alter", "topic", "missing", "--set", "retention.ms=1"], 1, "odradek topics list"),
        (["describe", "topic", "missing"], 1, "odradek topics list"),
        (["alter", "broker", "0", "--set", "node.id=7"], 1, "node.id"),
        (["alter", "broker", "--set", "node.id=7"], 1, "node.id"),
        (["alter", "topic", "--set", "retention.ms=1"], 1, "name one topic"),
        (["describe", "group"], 1, "name one group"),
        (["alter", "topic", "orders"], 2, "--unset"),
        (["alter", "topic", "orders", "--set", "retention.ms"], 2, "KEY=VALUE"),
    ],
)
def test_a_mistake_is_named(
    run: Run, broker: Broker, words: list[str], code: int, text: str
) -> None:
    broker.create_topic("orders")
    done = run("configs", *words)
    assert done.exit_code == code
    assert text in done.stderr
