"""A secret of the configuration appears in no output: log, error, answer, crash, list of processes.

The value of every key of type PASSWORD is a text that is searched for everywhere.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.broker_keys import broker_keys
from odradek.config.errors import ConfigError
from odradek.config.loading import load_config
from odradek.config.properties import render_properties
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from tests.support.broker_process import SERVE, BrokerProcess, against_apache_kafka
from tests.support.config_requests import alter_configs_request
from tests.support.wire import WireClient

pytestmark = pytest.mark.skipif(against_apache_kafka(), reason="odradek's own output")

SECRET = "h0rse-b4ttery"
BROKER = 4
PASSWORDS = sorted(name for name, key in broker_keys().items() if key.is_sensitive)
NAMES = [
    *PASSWORDS,
    *(f"listener.name.plaintext.{name}" for name in PASSWORDS),
    *(
        f"listener.name.plaintext.{mechanism}.sasl.jaas.config"
        for mechanism in ("plain", "scram-sha-256", "oauthbearer", "gssapi")
    ),
]
# It has the form of a JAAS line, so that it is parsed, and is found in whatever part is shown.
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="{SECRET}" password="{SECRET}" user_{SECRET}="{SECRET}";'
)


def value_of(name: str) -> str:
    return JAAS if name.endswith("jaas.config") else SECRET


def write_file(directory: Path, **texts: str) -> Path:
    file = directory / "secrets.properties"
    file.write_bytes(render_properties(texts))
    return file


def accepted(directory: Path) -> dict[str, str]:
    """The secrets with which a broker starts: others are refused as long as they are not served."""
    found = {}
    for name in NAMES:
        try:
            load_config(write_file(directory, **{name: value_of(name)}))
        except ConfigError:
            continue
        found[name] = value_of(name)
    return found


def messages_about(file: Path) -> str:
    try:
        loaded = load_config(file)
    except ConfigError as error:
        return str(error)
    return "\n".join([*loaded.warnings, repr(loaded.config)])


def test_there_are_secrets() -> None:
    assert {"ssl.keystore.password", "sasl.jaas.config", "ssl.key.password"} <= {*PASSWORDS}


@pytest.mark.parametrize("name", NAMES)
def test_no_message_about_a_file_has_a_secret(name: str, tmp_path: Path) -> None:
    for value in (value_of(name), f"{SECRET}\\u12xy{SECRET}", ""):
        file = tmp_path / "secrets.properties"
        file.write_text(f"{name}={value}\n")
        said = messages_about(file)
        assert SECRET not in said
        assert "12xy" not in said


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be an --override") as caught:
        load_config(overrides=[f"{name}={SECRET}"])
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("command", ["serve", "format", "why-not-deleted ."])
def test_no_command_takes_a_secret_on_the_command_line(command: str, tmp_path: Path) -> None:
    words = [*SERVE[:-1], *command.split(), "--override", f"ssl.key.password={SECRET}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if command == "serve" else 1)
    assert list(tmp_path.iterdir()) == []
    assert "ssl.key.password cannot be an --override" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_an_override_that_is_no_pair_is_not_repeated_whole() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(overrides=[f"ssl.key.password:{SECRET}"])
    assert SECRET not in str(caught.value)
    assert "ssl.key.password" in str(caught.value)


def test_settings_of_a_running_broker_are_not_shown_with_the_configuration() -> None:
    name = "listener.name.plaintext.ssl.keystore.password"
    config = BrokerConfig.from_texts({}, {name: SECRET})
    assert SECRET not in repr(config)
    assert SECRET not in str(config)


@pytest.mark.slow
def test_a_start_that_fails_shows_no_secret(tmp_path: Path) -> None:
    texts = accepted(tmp_path)
    for wrong in (
        {"num.partitions": "many"},
        {"listeners": "PLAINTEXT:9092"},
        {"log.dirs": "/proc/nowhere", "listeners": "PLAINTEXT://127.0.0.1:0"},
        {"no.such.key": SECRET, "num.partitions": "0"},
    ):
        file = write_file(tmp_path, **texts, **wrong)
        done = subprocess.run([*SERVE, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert done.stderr
        assert SECRET not in done.stdout + done.stderr


@pytest.fixture
def broker(tmp_path: Path, start_broker: Callable[..., BrokerProcess]) -> Iterator[BrokerProcess]:
    """A broker with all secrets that can be set, which is started with PYTHONFAULTHANDLER."""
    os.environ["PYTHONFAULTHANDLER"] = "1"
    try:
        yield start_broker(**accepted(tmp_path))
    finally:
        del os.environ["PYTHONFAULTHANDLER"]


@pytest.mark.slow
def test_a_broker_shows_no_secret(broker: BrokerProcess) -> None:
    with WireClient(broker.port) as client:
        every = described(client, None)
        assert "ssl.keystore.password" in repr(every)
        assert SECRET not in repr(every)
        assert SECRET not in repr(described(client, NAMES))
        for name in NAMES:
            for resource in ("0", ""):
                for value in (value_of(name), f"{SECRET}\x00", f"{SECRET}" * 2000):
                    assert SECRET not in repr(altered(client, resource, name, value))
            assert SECRET not in repr(described(client, [name]))
        assert SECRET not in repr(described(client, None))
    assert "listener.name.plaintext.ssl.keystore.password is now [hidden]" in broker.log_text()
    assert SECRET not in Path(f"/proc/{broker.pid}/cmdline").read_bytes().decode()
    assert SECRET not in Path(f"/proc/{broker.pid}/environ").read_bytes().decode()
    broker.terminate()
    broker.start()  # with the settings that it has stored
    os.kill(broker.pid, signal.SIGABRT)
    assert broker.wait_for_end() == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in broker.log_text()
    assert SECRET not in broker.log_text()


def described(client: WireClient, names: list[str] | None) -> Any:
    """All that DescribeConfigs says of the broker, of all brokers, and of a topic."""
    resources = [
        DescribeConfigsResource(
            resource_type=BROKER, resource_name=resource, configuration_keys=names
        )
        for resource in ("0", "")
    ]
    request = DescribeConfigsRequest(
        resources=resources, include_synonyms=True, include_documentation=True
    )
    return client.ask(request, DescribeConfigsResponse, 4)


def altered(client: WireClient, resource: str, name: str, value: str) -> Any:
    request = alter_configs_request(BROKER, resource, {name: value})
    return client.ask(request, IncrementalAlterConfigsResponse, 1)
