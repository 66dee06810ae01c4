"""`odradek serve` from the outside: what it says and returns when it starts, cannot, and stops."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from odradek.broker.broker import Broker
from odradek.broker.common.nodes import Node
from odradek.broker.lifecycle.parent_process import print_address
from odradek.protocol.messages.fetch import FetchResponse
from tests.support.broker_process import (
    SERVE,
    BrokerProcess,
    against_apache_kafka,
    running,
)
from tests.support.hang_ups import children_inherit
from tests.support.lengths import by_length
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own command line"),
    pytest.mark.slow,
]

ANY_PORT = "listeners=PLAINTEXT://127.0.0.1:0"
Start = Callable[..., BrokerProcess]


def serve(
    *overrides: str, cwd: Path, arguments: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a broker that is expected to end by itself."""
    words = [*SERVE, *arguments, *(f"--override={override}" for override in overrides)]
    return subprocess.run(words, check=False, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("num.partitions=many", ["num.partitions", "many"]),
        ("num.partitions=0", ["num.partitions", "0"]),
        ("listeners=PLAINTEXT:9092", ["listeners", "PLAINTEXT:9092"]),
        ("no-equals-sign", ["no-equals-sign", "key=value"]),
        ("authorizer.class.name=org.apache.X", ["authorizer.class.name"]),
        ("listeners=SASL_PLAINTEXT://localhost:9093", ["sasl.enabled.mechanisms", "GSSAPI"]),
    ],
)
def test_a_configuration_that_cannot_be_served_is_one_line_and_exit_code_2(
    override: str, words: list[str], tmp_path: Path
) -> None:
    done = serve(override, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert all(word in line for word in words), line
    assert not (tmp_path / "data").exists()


def test_a_tls_listener_without_its_key_store_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    settings = ["listeners=SSL://127.0.0.1:0", "ssl.keystore.location=nowhere.p12"]
    settings += ["ssl.keystore.password=not for the log", "log.dirs=data"]
    (tmp_path / "tls.properties").write_text("\n".join(settings))
    done = serve(cwd=tmp_path, arguments=["tls.properties"])
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "listener SSL: ssl.keystore.location=nowhere.p12: No such file or directory" in line


def test_a_missing_file_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = serve(cwd=tmp_path, arguments=["nowhere.properties"])
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "nowhere.properties" in done.stderr


def test_a_program_gets_the_address_and_ends_the_broker_by_its_own_end(tmp_path: Path) -> None:
    words = [*SERVE, "--port=0", "--print-address", f"--override=log.dirs={tmp_path / 'data'}"]
    program = (
        "import subprocess, sys;"
        "print(subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE).stdout.readline().decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], check=True, capture_output=True, timeout=60
    )
    address = json.loads(done.stdout)
    host, _, port = address["bootstrap_servers"].partition(":")
    assert (host, int(port) > 0) == ("localhost", True)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{address['pid']}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{address['pid']}").exists()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_second_broker_does_not_touch_a_directory_that_is_in_use(
    start_broker: Start, tmp_path: Path
) -> None:
    first = start_broker()
    # The same node, or it would be refused for that.
    node_id = re.search(
        r"^node.id=(\d+)$", (first.data / "meta.properties").read_text(), re.MULTILINE
    )
    assert node_id
    done = serve(ANY_PORT, f"log.dirs={first.data}", f"node.id={node_id[1]}", cwd=tmp_path)
    assert done.returncode == 1
    assert str(first.data) in done.stderr
    assert "in use" in done.stderr


def test_a_directory_of_another_node_is_named_with_both_ids(
    start_broker: Start, tmp_path: Path
) -> None:
    first = start_broker()
    first.terminate()
    done = serve(ANY_PORT, f"log.dirs={first.data}", "node.id=77", cwd=tmp_path)
    assert done.returncode == 1
    assert "meta.properties" in done.stderr
    assert "77" in done.stderr


def test_a_new_directory_gets_the_cluster_id_of_the_configuration_and_keeps_it(
    start_broker: Start, tmp_path: Path
) -> None:
    first = start_broker(**{"odradek.cluster.id": "any text"})
    first.terminate()
    assert "cluster.id=any text\n" in (first.data / "meta.properties").read_text()
    node_id = f"node.id={first.settings.get('node.id', '0')}"
    done = serve(
        ANY_PORT, f"log.dirs={first.data}", node_id, "odradek.cluster.id=other", cwd=tmp_path
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert "meta.properties: cluster.id is any text, the configuration says other" in line


def test_a_port_that_is_taken_ends_the_start_before_any_data_is_touched(
    start_broker: Start, tmp_path: Path
) -> None:
    first = start_broker()
    done = serve(f"listeners=PLAINTEXT://127.0.0.1:{first.port}", cwd=tmp_path)
    assert done.returncode == 1
    assert str(first.port) in done.stderr
    assert not (tmp_path / "data").exists()


def test_unknown_and_unused_keys_are_named_in_one_warning_each(start_broker: Start) -> None:
    broker = start_broker(**{"num.partitons": "3", "background.threads": "4"})
    warnings = [line for line in broker.log_text().splitlines() if " WARNING " in line]
    assert len([line for line in warnings if "num.partitons" in line]) == 1
    assert any("num.partitions" in line for line in warnings), "the nearest name is not suggested"
    assert len([line for line in warnings if "background.threads" in line]) == 1


def test_the_start_logs_the_address_that_clients_get(start_broker: Start) -> None:
    broker = start_broker()
    assert f"clients get the address 127.0.0.1:{broker.port}" in broker.log_text()


def test_without_an_advertised_host_the_log_says_how_clients_get_it(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    everywhere = f"PLAINTEXT://:{broker.port}"
    broker.settings |= {"listeners": everywhere, "advertised.listeners": everywhere}
    with running(broker):
        words = f"clients get the address that they used, with port {broker.port}"
        assert words in broker.log_text()


@pytest.mark.parametrize("how", by_length(["terminate"], ["terminate", "interrupt", "hang_up"]))
def test_a_signal_ends_it_cleanly_with_exit_code_0(how: str, start_broker: Start) -> None:
    with children_inherit(signal.SIG_DFL):  # the tests themselves may have been started by nohup
        broker = start_broker()
    assert getattr(broker, how)() == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    assert not (broker.data / ".lock").exists()
    assert " ERROR " not in broker.log_text()


def test_a_broker_that_nohup_has_started_ignores_the_end_of_its_terminal(
    start_broker: Start,
) -> None:
    with children_inherit(signal.SIG_IGN):
        broker = start_broker()
    (ignored,) = re.findall(
        r"SigIgn:\s*([0-9a-f]+)", Path(f"/proc/{broker.pid}/status").read_text()
    )
    assert int(ignored, 16) & 1 << signal.SIGHUP - 1


def test_a_fetch_that_waits_is_answered_when_the_broker_stops(start_broker: Start) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "t")
    wait = fetch_request("t", 0, 0, 1000, max_wait_ms=60_000)
    with WireClient(broker.port) as client:
        answers: list[object] = []
        waiting = threading.Thread(
            target=lambda: answers.append(client.ask(wait, FetchResponse, FETCH_VERSION))
        )
        waiting.start()
        time.sleep(0.2)  # until it waits: there is nothing to see from outside
        began = time.monotonic()
        assert broker.terminate() == 0
        assert time.monotonic() - began < 10
        waiting.join(10)
    assert len(answers) == 1


# By what is started: what it imports, and what only that must not import.
STARTS = {
    "odradek serve": (
        "odradek.tools.serve, odradek.broker.lifecycle.run",
        {"shutil", "bz2", "lzma", "tempfile"},
    ),
    "the broker of tests": ("odradek.broker.testing.call_server", set()),
}
USED_BY_FEW = {
    *("typer", "rich", "click", "pytest", "prometheus_client", "jwt", "cryptography", "cramjam"),
    *("lz4", "zlib_ng", "zstandard", "confluent_kafka", "email", "http", "importlib.metadata"),
    *("multiprocessing", "re2", "stringprep"),
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_start_imports_nothing_that_takes_long_and_that_few_brokers_use(
    kind: str, tmp_path: Path
) -> None:
    modules, others = STARTS[kind]
    program = (
        f"import sys, {modules};"
        "from odradek.config.loading import load_config; load_config();"
        f"print([name for name in {USED_BY_FEW | others} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_log_lines_may_be_json(tmp_path: Path) -> None:
    blocked = tmp_path / "data"
    blocked.write_text("a file, not a directory")
    done = serve(ANY_PORT, cwd=tmp_path, arguments=["--log-format", "json"])
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)


def test_control_c_before_the_program_is_loaded_ends_it_without_a_traceback(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'odradek.broker.lifecycle.run':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "sys.argv = ['odradek', 'serve', '--port=0']\n"
        "from odradek.tools.cli import main\n"
        "main()\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(
        words, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_the_address_of_a_listener_of_ipv6_can_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    broker = SimpleNamespace(
        nodes=SimpleNamespace(all=lambda *_: [Node(1, "::1", 9092, None)]),
        config=SimpleNamespace(open_listeners=[None]),
    )
    print_address(cast(Broker, broker), {})
    assert json.loads(capsys.readouterr().out)["bootstrap_servers"] == "[::1]:9092"
