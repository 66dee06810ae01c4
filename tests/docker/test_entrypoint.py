"""The container's entry point: environment variables become properties, as in Kafka's image."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.config.errors import ConfigError
from odradek.config.loading import load_config
from odradek.config.properties import parse_properties
from tests.support.docker_scripts import DOCKER, entrypoint, other_images

ENTRYPOINT = DOCKER / "entrypoint.py"
PYTHONPATH = os.environ.get("PYTHONPATH", "")


def run(
    tmp_path: Path, *arguments: str, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = f"{tmp_path}{os.pathsep}{Path(sys.executable).parent}"
    return subprocess.run(
        [sys.executable, str(ENTRYPOINT), *arguments],
        env={"PATH": path, "TMPDIR": str(tmp_path), "PYTHONPATH": PYTHONPATH, **environment},
        capture_output=True,
        text=True,
        check=check,
        cwd=tmp_path,
    )


def printed_text(**environment: str) -> str:
    text: str = entrypoint.text_of(entrypoint.draft_of(environment, mounted=()))
    return text


def printed(**environment: str) -> dict[str, str]:
    return parse_properties(printed_text(**environment).encode("latin-1"))


DEFAULTS = {
    "listeners": "PLAINTEXT://0.0.0.0:9092",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "/var/lib/odradek/data",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}


def test_without_variables_clients_are_told_localhost(tmp_path: Path) -> None:
    assert printed() == DEFAULTS
    done = run(tmp_path, "--print", KAFKA_LOG4J_OPTS="x")
    assert (parse_properties(done.stdout.encode()), done.stderr) == (DEFAULTS, "")


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_HOURS", "log.retention.hours"),
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        (
            "KAFKA_LISTENER_NAME_X_SCRAM___SHA___256_SASL_JAAS_CONFIG",
            "listener.name.x.scram-sha-256.sasl.jaas.config",
        ),
        ("KAFKA_KAFKA_METRICS_REPORTERS", "kafka.metrics.reporters"),
    ],
)
def test_a_variable_becomes_a_property(variable: str, name: str) -> None:
    assert printed(**{variable: "some value"}) == DEFAULTS | {name: "some value"}


@pytest.mark.parametrize(
    "variable",
    [
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_HOME",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_VERSION",
        "HOME_X",
    ],
)
def test_variables_about_the_jvm_are_left_out(variable: str) -> None:
    assert printed(**{variable: "x"}) == DEFAULTS


@pytest.mark.parametrize("value", ["a=b:c #d", "grüße 😀", "", "${x}", "a,b"])
def test_a_value_arrives_as_it_was_given(value: str) -> None:
    assert printed(KAFKA_BROKER_RACK=value)["broker.rack"] == value


def test_a_backslash_is_an_escape_as_in_kafkas_image() -> None:
    assert printed(KAFKA_BROKER_RACK=r"a\tb")["broker.rack"] == "a\tb"


def test_listeners_that_were_given_are_not_second_guessed() -> None:
    found = printed(KAFKA_LISTENERS="PLAINTEXT://:29092")
    assert found["listeners"] == "PLAINTEXT://:29092"
    assert "advertised.listeners" not in found


def test_an_advertised_listener_alone_overrules_localhost() -> None:
    found = printed(KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://broker:9092")
    assert found["listeners"] == "PLAINTEXT://0.0.0.0:9092"
    assert found["advertised.listeners"] == "PLAINTEXT://broker:9092"


def test_without_listeners_the_ports_of_the_advertised_ones_are_listened_on() -> None:
    found = printed(
        KAFKA_ADVERTISED_LISTENERS="IN://kafka:29092,OUT://localhost:9092,SIX://[::1]:1"
    )
    assert found["listeners"] == "IN://0.0.0.0:29092,OUT://0.0.0.0:9092,SIX://0.0.0.0:1"


@pytest.mark.parametrize(("variable", "name"), [("LOG_DIRS", "log.dirs"), ("LOG_DIR", "log.dir")])
def test_the_data_lies_where_it_was_told_to(variable: str, name: str) -> None:
    found = printed(**{f"KAFKA_{variable}": "/elsewhere"})
    assert {key: found[key] for key in found if key.startswith("log.dir")} == {name: "/elsewhere"}


@pytest.mark.parametrize(
    ("mounted", "directory"),
    [
        ("/var/lib/kafka/data", "/var/lib/kafka/data"),
        ("/tmp/kraft-combined-logs", "/tmp/kraft-combined-logs"),
        ("/bitnami/kafka", "/bitnami/kafka/data"),
        ("/bitnami", "/bitnami/kafka/data"),
        ("/var/lib/odradek", "/var/lib/odradek/data"),
    ],
)
def test_the_data_lies_in_a_volume_at_the_place_of_another_image(
    mounted: str, directory: str
) -> None:
    assert f"log.dirs={directory}" in entrypoint.default_lines({}, mounted.__eq__)


@pytest.mark.parametrize("variable", ["CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID"])
def test_the_cluster_id_becomes_a_property(variable: str) -> None:
    assert printed(**{variable: "abc"}) == DEFAULTS | {"odradek.cluster.id": "abc"}
    assert printed(**{variable: ""}) == DEFAULTS


def test_bitnamis_other_variables_are_no_properties_and_are_named(tmp_path: Path) -> None:
    environment = {"KAFKA_CFG_NUM_PARTITIONS": "2", "KAFKA_NUM_CARS": "2", "KAFKA_OPTS": "x"}
    assert printed(**environment) == DEFAULTS | {"num.partitions": "2"}
    done = run(tmp_path, check=False, **environment, KAFKA_CFG_NODE_ID="x")
    first, *_ = done.stderr.splitlines()
    assert first == "not used, because they do not begin with KAFKA_CFG_: KAFKA_NUM_CARS"
    assert done.returncode == 2


def test_a_mounted_file_comes_first_and_a_variable_wins(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# comment\nlog.dirs : /mine\nnum.partitions=3\nlisteners=PLAINTEXT://:1")
    draft = entrypoint.draft_of({"KAFKA_NUM_PARTITIONS": "4"}, (tmp_path / "no", file))
    text = entrypoint.text_of(draft)
    assert parse_properties(text.encode()) == {
        "group.initial.rebalance.delay.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "log.dirs": "/mine",
        "num.partitions": "4",
        "listeners": "PLAINTEXT://:1",
    }


def test_a_mounted_file_is_copied_byte_by_byte(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    # Their UTF-8 has bytes that end a line for str.splitlines, but not for Java.
    content = "# 关闭自动创建主题\nlog.dirs=/data/Åland\nsasl.x=全\v\x1c\r\na=b".encode()
    file.write_bytes(content)
    written = entrypoint.text_of(entrypoint.draft_of({}, (file,))).encode("latin-1")
    assert content in written
    assert parse_properties(written) == DEFAULTS | parse_properties(content)


def test_a_mounted_file_may_have_continued_lines_and_escapes(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("advertised.listeners=A\\://x:1,\\\n  B://y:2\nlog.d\\u0069rs=/a\\")
    draft = entrypoint.draft_of({"KAFKA_NUM_PARTITIONS": "4"}, (file,))
    assert parse_properties(entrypoint.text_of(draft).encode()) == DEFAULTS | {
        "listeners": "A://0.0.0.0:1,B://0.0.0.0:2",
        "advertised.listeners": "A://x:1,B://y:2",
        "log.dirs": "/a",
        "num.partitions": "4",
    }


def test_a_mounted_file_with_a_malformed_escape_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("a=\\u12")
    with pytest.raises(ConfigError, match=r"server\.properties: Malformed"):
        entrypoint.draft_of({}, (file,))


def test_odradek_is_started_on_the_file_with_the_arguments(tmp_path: Path) -> None:
    environment = {"KAFKA_NUM_PARTITIONS": "7", "CLUSTER_ID": "a b", "KAFKA_LOG_DIRS": "x"}
    listeners = "PLAINTEXT://192.0.2.1:1"  # an address that no machine has (RFC 5737)
    done = run(
        tmp_path, "--log-format", "json", check=False, KAFKA_LISTENERS=listeners, **environment
    )
    assert done.returncode == 1, done.stderr
    assert "192.0.2.1:1" in json.loads(done.stderr)["message"]
    file = tmp_path / "odradek-server.properties"
    assert file.stat().st_mode & 0o777 == 0o600
    loaded = load_config(file)
    assert loaded.config.num_partitions == 7
    assert loaded.config.odradek_cluster_id == "a b"
    assert loaded.warnings == ()


def test_overrides_among_the_arguments_take_the_place_of_defaults(tmp_path: Path) -> None:
    listeners = r"PLAINTEXT://:1,A\B://:2"
    given = ("--override", f"listeners={listeners}", "--log-format", "json", "--override=node.id=4")
    done = run(tmp_path, "--print", *given, KAFKA_NODE_ID="3")
    found = parse_properties(done.stdout.encode())
    assert (found["listeners"], found["node.id"]) == (listeners, "4")
    assert "advertised.listeners" not in found
    done = run(tmp_path, "--print", "--override", "advertised.listeners=PLAINTEXT://x:3")
    assert parse_properties(done.stdout.encode())["listeners"] == "PLAINTEXT://0.0.0.0:3"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"KAFKA_NODE_ID": "x"}, "configuration node.id (KAFKA_NODE_ID): must be"),
        ({"KAFKA_LOG_DIRS": ""}, "configuration log.dirs (KAFKA_LOG_DIRS): must"),
        (
            {
                "KAFKA_LISTENERS": "SASL_PLAINTEXT://:0",
                "KAFKA_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-256",
                "KAFKA_CLIENT_USERS": "ann",
                "KAFKA_CLIENT_PASSWORDS": "1",
                "KAFKA_LOG_DIRS": "",
            },
            "configuration log.dirs (KAFKA_LOG_DIRS): must",
        ),
        ({"KAFKA_LISTENERS": "x"}, "configuration listeners (KAFKA_LISTENERS): must be"),
        ({"KAFKA_CFG_NODE_ID": "x"}, "configuration node.id (KAFKA_CFG_NODE_ID): must be"),
        (
            {"KAFKA_CFG_NODE_ID": "1", "KAFKA_BROKER_ID": "2"},
            "configuration broker.id (KAFKA_BROKER_ID): must",
        ),
        (
            {"KAFKA_LISTENERS": "SASL_PLAINTEXT://:0", "KAFKA_SASL_ENABLED_MECHANISMS": "PLAIN"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config"
            " (KAFKA_LISTENER_NAME_SASL__PLAINTEXT_PLAIN_SASL_JAAS_CONFIG) is not set",
        ),
    ],
)
def test_an_error_names_the_variable_beside_the_property(
    variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    done = run(tmp_path, check=False, **variables)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_warning_names_the_variable_beside_the_property() -> None:
    draft = entrypoint.draft_of({"KAFKA_BACKGROUND_THREADS": "3", "KAFKA_NUM_CARS": "2"}, ())
    said = "background.threads=3 and num.cars: unlike log.dirs, kafka.apache.org or 3.5"
    assert entrypoint.with_variables(said, draft) == (
        "KAFKA_BACKGROUND_THREADS: background.threads=3 and num.cars (KAFKA_NUM_CARS):"
        " unlike log.dirs (KAFKA_LOG_DIRS), kafka.apache.org or 3.5"
    )


@pytest.mark.parametrize("empty", ["", " "])
def test_listeners_without_a_value_are_missing(empty: str) -> None:
    assert printed(KAFKA_LISTENERS=empty, KAFKA_ADVERTISED_LISTENERS=empty) == DEFAULTS
    found = printed(KAFKA_LISTENERS=empty, KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://kafka:9092")
    assert found["listeners"] == "PLAINTEXT://0.0.0.0:9092"


def test_what_kubernetes_adds_to_the_environment_is_no_property() -> None:
    links = {
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_SERVICE_PORT_TCP_CLIENT": "9092",
        "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
    }
    assert printed(**links) == DEFAULTS


def test_without_a_writable_directory_the_start_ends_with_one_line(tmp_path: Path) -> None:
    # No process can write to /proc, and a program can be told that it is all there is.
    program = (
        f"import pathlib, runpy, sys; sys.argv = ['x']; sys.path.append({str(DOCKER)!r});"
        "import healthcheck; healthcheck.places = lambda: [pathlib.Path('/proc')];"
        f"runpy.run_path({str(ENTRYPOINT)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, "tmpfs" in line) == (2, True)


def test_the_file_is_in_the_first_place_that_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, volume = tmp_path / "full", tmp_path / "volume"
    full.mkdir()
    volume.mkdir()
    write_text = Path.write_text

    def write_if_not_full(path: Path, text: str, encoding: str) -> int:
        if path.parent == full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(path, text, encoding)

    monkeypatch.setattr(Path, "write_text", write_if_not_full)
    monkeypatch.setattr(entrypoint, "places", lambda: [full, volume])
    file = entrypoint.write_file("a=b\n")
    assert (file.parent, file.read_text(), file.stat().st_mode & 0o777) == (volume, "a=b\n", 0o600)
    assert not list(full.iterdir())  # nothing that the health check would read


def test_users_are_made_although_the_first_start_was_interrupted(tmp_path: Path) -> None:
    file, data = tmp_path / "server.properties", tmp_path / "data"
    file.write_text(f"log.dirs={data}\n")
    draft = other_images.Draft({}, {}, "")
    draft.users.append("SCRAM-SHA-256=[name=ann,password=secret]")
    for _ in range(2):
        assert entrypoint.format_directories(file, draft, str) == 0
        (snapshot,) = data.rglob("*.checkpoint")
        assert b"ann" in snapshot.read_bytes()
        snapshot.unlink()  # it is written last


@pytest.mark.parametrize("step", ["is_formatted", "format_metadata"])
def test_a_data_directory_that_fails_is_named_in_one_line(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "data")

    monkeypatch.setattr(f"odradek.tools.format.command.{step}", fail)
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path / 'data'}\n")
    draft = other_images.Draft({}, {}, "")
    draft.users.append("SCRAM-SHA-256=[name=ann,password=secret]")
    assert entrypoint.format_directories(file, draft, str) == 1
    assert capsys.readouterr().err == "odradek: [Errno 5] Input/output error: 'data'\n"


@pytest.mark.slow
def test_the_compose_file_of_kafkas_documentation_works(tmp_path: Path) -> None:
    text = printed_text(
        KAFKA_NODE_ID="1",
        KAFKA_PROCESS_ROLES="broker,controller",
        KAFKA_LISTENERS="PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092",
        KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://broker:19092,PLAINTEXT_HOST://localhost:9092",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=(
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
        ),
        KAFKA_INTER_BROKER_LISTENER_NAME="PLAINTEXT",
        KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
        KAFKA_CONTROLLER_QUORUM_VOTERS="1@broker:9093",
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR="1",
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS="0",
        KAFKA_LOG_DIRS="/tmp/kraft-combined-logs",
    )
    file = tmp_path / "server.properties"
    file.write_text(text)
    loaded = load_config(file)
    assert loaded.warnings == ()
    assert {name: str(item) for name, item in loaded.config.advertised.items()} == {
        "PLAINTEXT": "PLAINTEXT://broker:19092",
        "PLAINTEXT_HOST": "PLAINTEXT_HOST://localhost:9092",
    }
