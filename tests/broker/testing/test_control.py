"""The calls of tests in other languages: JSON over HTTP to `odradek serve --control`."""

import base64
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from confluent_kafka import Producer

from odradek.broker.network.listeners import ListenError
from odradek.broker.testing import ApiKey, ErrorCode, control
from odradek.broker.testing import calls as calls_of_broker
from odradek.config.broker_config import BrokerConfig
from tests.support.broker_process import SERVE

LIMIT_S = 60.0


class Controlled:
    """A broker as a program in another language has it: the line that it has printed."""

    def __init__(self, address: dict[str, str]) -> None:
        self.bootstrap_servers = address["bootstrap_servers"]
        self.url = address["control_url"]
        self.token = address["control_token"]

    def call(self, call_type: str, **fields: object) -> Any:
        status, answer = self.post(json.dumps({"type": call_type, **fields}).encode())
        assert status == 200, answer
        return answer["result"]

    def post(self, body: bytes, token: str | None = None) -> tuple[int, Any]:
        """Returns the status and the answer."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        request = urllib.request.Request(self.url, body, headers)  # it is http
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controlled]:
    data = tmp_path_factory.mktemp("control") / "data"
    words = [*SERVE, "--port=0", "--print-address", "--control", f"--override=log.dirs={data}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield Controlled(json.loads(process.stdout.readline()))
        process.terminate()
        assert process.wait(LIMIT_S) == 0
    assert (data / ".kafka_cleanshutdown").exists()


@pytest.fixture
def broker(shared: Controlled) -> Controlled:
    shared.call("Reset")
    return shared


def produce(broker: Controlled, topic: str, value: bytes) -> list[object]:
    """Send a record to partition 1. Returns the error, if it was not acknowledged."""
    errors: list[object] = []
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "retries": 3}
    producer = Producer({**settings, "retry.backoff.ms": 10})
    producer.produce(topic, value, partition=1, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(LIMIT_S) == 0
    return [error for error in errors if error is not None]


def test_a_program_injects_a_script_of_faults(broker: Controlled) -> None:
    broker.call("CreateTopic", name="orders", partitions=2)
    script = [
        {"api": "PRODUCE", "topic": "orders", "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER"},
        {"api": ApiKey.PRODUCE, "error": ErrorCode.NOT_ENOUGH_REPLICAS, "delay_before_ms": 1},
        {"api": "PRODUCE", "probability": 0.0, "times": None},
    ]
    faults = broker.call("Inject", faults=script)
    assert produce(broker, "orders", b"one coffee") == []
    so_far = broker.call("ReadFaults", id=faults)
    assert so_far["fired"] == 2
    assert [(event["fault"], event["match"], event["api"]) for event in so_far["events"]] == [
        (0, 1, 0),
        (1, 1, 0),
    ]
    assert broker.call("RemoveFaults", id=faults) is None
    (record,) = broker.call("ReadRecords", topic="orders")
    assert base64.b64decode(record["value"]) == b"one coffee"


def test_a_call_that_is_wrong_says_why(broker: Controlled) -> None:
    wrong = [
        ({"type": "Inject", "faults": [{"api": "PRODUCES"}]}, "there is no ApiKey PRODUCES"),
        ({"type": "Inject", "faults": [{"cut": "off"}]}, "Invalid enum value 'off'"),
        ({"type": "Stop"}, "Invalid value 'Stop'"),
        ({"type": "ReadFaults", "id": "0"}, "does not have these faults"),
        ({"type": "ExpireGroup", "group_id": "readers"}, "__consumer_offsets"),
    ]
    for call, text in wrong:
        status, answer = broker.post(json.dumps(call).encode())
        assert status == 400
        assert text in answer["error"]
    assert broker.post(b"{")[0] == 400
    assert broker.call("ListTopics") == {}


def test_a_call_without_the_token_is_refused(broker: Controlled) -> None:
    body = json.dumps({"type": "ListTopics"}).encode()
    for token in ("", broker.token[:-1], "täxt"):
        assert broker.post(body, token)[0] == 401
    assert broker.url.startswith("http://127.0.0.1:")


async def test_the_broker_does_not_start_if_its_calls_cannot_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise ListenError("there is no port")

    monkeypatch.setattr(control, "bind_listeners", refuse)
    data = tmp_path / "data"
    config = BrokerConfig.from_texts({"listeners": "PLAINTEXT://:0", "log.dirs": str(data)})
    with pytest.raises(ListenError):
        await control.ControlledBroker.start(config)
    assert not data.exists()


@pytest.mark.slow
def test_a_program_sets_the_clock_and_returns_to_a_snapshot(broker: Controlled) -> None:
    broker.call("CreateTopic", name="orders", partitions=2)
    snapshot = broker.call("TakeSnapshot")
    broker.call("SetClock", wall_ms=1_000_000)
    value = base64.b64encode(b"v").decode()
    assert broker.call("Produce", topic="orders", value=value) == 0
    (record,) = broker.call("ReadRecords", topic="orders")
    assert 1_000_000 <= record["timestamp_ms"] < 1_100_000
    broker.call("RestoreSnapshot", directory=snapshot)
    assert broker.call("ReadRecords", topic="orders") == []


def test_it_needs_the_printed_address(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SERVE, "--port=0", f"--override=log.dirs={tmp_path / 'data'}", "--control"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 2
    assert "--control needs --print-address" in done.stderr


def test_a_field_that_does_not_exist_is_an_error(broker: Controlled) -> None:
    for body in (
        {"type": "ListTopics", "name": "orders"},
        {"type": "Inject", "faults": [{"api": "PRODUCE", "name": 1}]},
    ):
        status, answer = broker.post(json.dumps(body).encode())
        assert status == 400
        assert "name" in answer["error"]


def test_what_is_no_snapshot_is_not_restored(broker: Controlled, tmp_path: Path) -> None:
    broker.call("CreateTopic", name="orders")
    for directory in (tmp_path, tmp_path / "data.snapshot-1"):
        body = {"type": "RestoreSnapshot", "directory": str(directory)}
        status, answer = broker.post(json.dumps(body).encode())
        assert status == 400
        assert "is no snapshot" in answer["error"]
    assert broker.call("ListTopics") == {"orders": 1}


def test_the_guide_names_every_call_and_its_fields() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "testing.md"
    text = guide.read_text()
    for call in get_args(calls_of_broker.RunningCall):
        for name in (call.__name__, *call.__struct_fields__):
            assert f"`{name}`" in text, call


def test_the_nodes_of_a_cluster_are_controlled(tmp_path: Path) -> None:
    data = f"--override=log.dirs={tmp_path / 'data'}"
    words = [*SERVE, "--nodes=3", "--port=0", "--print-address", "--control", data]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        cluster = Controlled(json.loads(process.stdout.readline()))
        assert len(cluster.bootstrap_servers.split(",")) == 3
        cluster.call("CreateTopic", name="orders", partitions=1)
        leader = cluster.call("DescribePartition", topic="orders", partition=0)["leader"]
        cluster.call("ActOnNode", node=leader, action="kill")
        roles = cluster.call("DescribePartition", topic="orders", partition=0)
        assert roles["leader"] != leader
        assert len(roles["isr"]) == 2
        process.terminate()
        assert process.wait(LIMIT_S) == 0
