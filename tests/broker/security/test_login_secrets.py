"""No password, key or token stands in the log, in an answer, or in what a refused start writes."""

import base64
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.support.broker_process import SERVE, BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.sasl import (
    PLAIN_MODULE,
    LoginRefusedError,
    ScramClient,
    add_scram_user,
    choose,
    log_in_by_plain,
    log_in_by_token,
    step,
    unsecured_token,
)
from tests.support.secured import PASSWORDS, secure
from tests.support.wire import WireClient

WRONG = "wrong-hunter2-password"
NEW = "new-hunter2-password"
JAAS_KEY = "listener.name.in.plain.sasl.jaas.config"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[BrokerProcess, dict[str, int]]]:
    broker = BrokerProcess(tmp_path)
    ports = secure(broker)
    try:
        yield broker.start(), ports
    finally:
        broker.stop()


def alter(client: WireClient, name: str, value: str) -> tuple[bytes, int]:
    """Set a key of the broker. Returns the answer's bytes, and its error code."""
    request = alter_configs_request(ConfigResourceType.BROKER, "0", {name: value})
    client.send(client.frame_of(request, 0))
    answer = bytes(client.read_frame())
    return answer, int.from_bytes(answer[12:14])


def described(client: WireClient) -> bytes:
    resource = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER, resource_name="0", configuration_keys=None
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=True
    )
    client.send(client.frame_of(request, 3))
    return bytes(client.read_frame())


@pytest.mark.slow
def test_no_secret_leaves_the_broker(secured: tuple[BrokerProcess, dict[str, int]]) -> None:
    broker, ports = secured
    token = unsecured_token({"sub": "alice", "exp": 1, "scope": WRONG})
    seen = []
    with WireClient(broker.port) as admin:
        add_scram_user(admin, "alice", PASSWORDS["alice"])
        for password in (WRONG, PASSWORDS["bob"]):
            with WireClient(ports["IN"]) as client, pytest.raises(LoginRefusedError) as refused:
                log_in_by_plain(client, "alice", password)
            seen.append(repr(refused.value).encode())
        with WireClient(ports["IN"]) as client:
            choose(client, "SCRAM-SHA-256")
            scram = ScramClient("SCRAM-SHA-256", "alice", WRONG)
            proof = scram.final(step(client, scram.first()).auth_bytes)
            with pytest.raises(LoginRefusedError) as refused:
                step(client, proof)
        seen.append(repr(refused.value).encode())
        with WireClient(ports["OAUTH"]) as client, pytest.raises(LoginRefusedError) as refused:
            log_in_by_token(client, token)
        seen.append(repr(refused.value).encode())
        jaas = f'{PLAIN_MODULE} required user_alice="{NEW}"'
        refused_change, code = alter(admin, JAAS_KEY, jaas)
        assert code != 0
        change, code = alter(admin, JAAS_KEY, f"{jaas};")
        assert code == 0
        seen += [refused_change, change, described(admin)]
        with WireClient(ports["IN"]) as client:
            log_in_by_plain(client, "alice", NEW)
        with WireClient(ports["IN"]) as client, pytest.raises(LoginRefusedError):
            log_in_by_plain(client, "alice", PASSWORDS["alice"])
    assert JAAS_KEY.encode() in seen[-1]
    broker.terminate()
    assert "login of 127.0.0.1" in broker.log_text()
    seen.append(broker.log_text().encode())
    secrets = [WRONG, NEW, *PASSWORDS.values(), token, proof.decode().partition("p=")[2]]
    for secret in secrets:
        for text in seen:
            assert secret.encode() not in text, secret
            assert base64.b64encode(secret.encode()) not in text, secret


@pytest.mark.parametrize(
    "jaas",
    [
        f'{PLAIN_MODULE} required user_alice="{WRONG}"',
        f"{PLAIN_MODULE} required user_alice={WRONG} {WRONG};",
        f'org.example.Login required password="{WRONG}";',
        f'{WRONG} "{WRONG}";',
    ],
)
def test_a_refused_start_is_one_line_without_the_secret(tmp_path: Path, jaas: str) -> None:
    broker = BrokerProcess(tmp_path)
    secure(broker)
    settings = broker.settings | {JAAS_KEY: jaas}
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    done = subprocess.run([*SERVE, str(file)], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert re.search(rf"{re.escape(JAAS_KEY)}: ", line)
    assert WRONG not in line
