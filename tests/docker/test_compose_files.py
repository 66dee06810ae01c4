"""Compose files for other images, with a real broker: a client of the published port is served.

The entry point runs without a container. So ports become free ones, and the service's host name
becomes an address of this machine.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.support.broker_process import free_ports

ROOT = Path(__file__).parents[2]
OWN = ROOT / "docker" / "compose.yaml"
PYTHONPATH = os.environ.get("PYTHONPATH", "")
FILES = [OWN, *sorted((Path(__file__).parent / "compose").glob("*.yaml"))]


def environment_of(service: Mapping[str, Any]) -> dict[str, str]:
    written = service.get("environment", {})
    if isinstance(written, list):
        written = dict(entry.split("=", 1) for entry in written)
    return {name: str(value) for name, value in written.items()}


def on_this_machine(
    name: str, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, int]]:
    """The environment with other ports and hosts; and the new port of each old one."""
    old = sorted(
        {port for text in environment.values() for port in re.findall(r"//[^,]*?:(\d+)", text)}
    )
    ports = dict(zip(old, free_ports(len(old)), strict=True))

    def moved(text: str) -> str:
        text = re.sub(rf"(//|@){name}:", r"\g<1>127.0.0.1:", text)
        return re.sub(
            r"((?://|@)[^,]*?:)(\d+)", lambda hit: hit[1] + str(ports.get(hit[2], hit[2])), text
        )

    return {key: moved(text) for key, text in environment.items()}, ports


@contextmanager
def container(environment: Mapping[str, str], directory: Path) -> Iterator["subprocess.Popen[str]"]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "docker" / "entrypoint.py")],
        env={"PATH": path, "TMPDIR": str(directory), "PYTHONPATH": PYTHONPATH, **environment},
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_healthy(broker: "subprocess.Popen[str]", directory: Path) -> None:
    deadline = time.monotonic() + 60
    while healthcheck(directory) and broker.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)


def healthcheck(directory: Path) -> int:
    return subprocess.run(
        [sys.executable, str(ROOT / "docker" / "healthcheck.py")],
        env={"TMPDIR": str(directory)},
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_client_of_the_published_port_is_served(file: Path, tmp_path: Path) -> None:
    ((name, service),) = yaml.safe_load(file.read_text())["services"].items()
    environment, ports = on_this_machine(name, environment_of(service))
    published = ports[service["ports"][0].split(":")[0]]
    prefix = "KAFKA_CFG_" if "KAFKA_CFG_NODE_ID" in environment else "KAFKA_"
    data = tmp_path / "data"
    bootstrap = f"localhost:{published}"
    with container({**environment, f"{prefix}LOG_DIRS": str(data)}, tmp_path) as broker:
        wait_until_healthy(broker, tmp_path)
        found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30)
        assert [f"{node.host}:{node.port}" for node in found.brokers.values()] == [bootstrap]
        wanted = {environment.get(each) for each in ("CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")}
        assert wanted in ({None}, {None, found.cluster_id})
        assert exchanged(bootstrap) == b"hello"
        broker.send_signal(signal.SIGTERM)
        _, log = broker.communicate(timeout=60)
    assert (broker.returncode, "unknown key" in log) == (0, False), log
    assert (data / ".kafka_cleanshutdown").exists()


def test_a_signal_before_the_broker_can_handle_it_is_not_lost(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    environment = {
        "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
    }
    # As the entry point does; a test cannot know when that has happened.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    try:
        with container(environment, tmp_path) as broker:
            broker.send_signal(signal.SIGTERM)
            _, log = broker.communicate(timeout=60)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    assert broker.returncode == 0, log
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def exchanged(bootstrap: str) -> bytes | None:
    """What a consumer reads after a producer has sent `hello`."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("greetings", b"hello", partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe(["greetings"])
        (message,) = consumer.consume(1, timeout=30)
        return message.value()
    finally:
        consumer.close()


def test_the_shipped_compose_file_is_consistent_with_the_image() -> None:
    service = yaml.safe_load(OWN.read_text())["services"]["odradek"]
    assert (OWN.parent / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).exists()
    assert service["read_only"] is True
    assert service["volumes"] == ["data:/var/lib/odradek"]
