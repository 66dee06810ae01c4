"""A server.properties becomes a configuration: what is refused, and what is warned about."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.config.errors import ConfigError
from odradek.config.loading import SHIPPED, LoadedConfig, load_config
from odradek.config.properties import parse_properties

ROOT = Path(__file__).parents[2]
Load = Callable[..., LoadedConfig]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load_lines(*lines: str, overrides: tuple[str, ...] = ()) -> LoadedConfig:
        file = tmp_path / "server.properties"
        file.write_bytes("\n".join(lines).encode("latin-1"))
        return load_config(file, overrides)

    return load_lines


def test_without_a_file_the_shipped_one_counts() -> None:
    shipped = parse_properties((ROOT / "server.properties").read_bytes())
    assert shipped == SHIPPED
    loaded = load_config()
    assert loaded.warnings == ()
    assert loaded.config == load_config(ROOT / "server.properties").config
    assert loaded.config.data_directories == (Path("data"),)
    assert loaded.config.group_initial_rebalance_delay_ms == 0


def test_every_line_of_the_shipped_file_would_be_understood(tmp_path: Path) -> None:
    lines = (ROOT / "server.properties").read_text().splitlines()
    settings = [line.removeprefix("#") for line in lines if "=" in line and "# " not in line]
    assert len(settings) > 15
    (tmp_path / "all").write_text("\n".join(settings))
    assert load_config(tmp_path / "all").warnings == ()


def test_an_override_wins_over_the_file(load: Load) -> None:
    loaded = load("num.partitions=2", overrides=("num.partitions=3", "node.id=4"))
    assert (loaded.config.num_partitions, loaded.config.node_id) == (3, 4)


def test_an_override_may_hold_equals_signs() -> None:
    assert load_config(None, ["broker.rack=a=b"]).config.broker_rack == "a=b"


@pytest.mark.parametrize("override", ["num.partitions", "=3", ""])
def test_an_override_is_a_key_and_a_value(override: str) -> None:
    with pytest.raises(ConfigError, match=r"Invalid override .*: must be key=value"):
        load_config(None, [override])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties cannot be read: No such file"):
        load_config(tmp_path / "none.properties")


def test_kafkas_unused_keys_get_one_warning_together(load: Load) -> None:
    loaded = load("num.io.threads=8", "ssl.provider=x", "super.users=User:a", "rsm.config.a=1")
    assert loaded.warnings == (
        "ignored because odradek does not use them: num.io.threads, super.users, rsm.config.a",
    )


def test_the_rack_aware_selector_gets_a_warning_only_where_it_is_not_used(load: Load) -> None:
    rack_aware = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    ignored = ("ignored because odradek does not use them: replica.selector.class",)
    assert load(f"replica.selector.class={rack_aware}").warnings == ignored
    assert load("replica.selector.class=com.acme.Own", "odradek.nodes=3").warnings == ignored
    assert load(f"replica.selector.class={rack_aware}", "odradek.nodes=3").warnings == ()


def test_a_bad_value_of_another_key_is_refused_as_kafka_refuses_it(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"Invalid value many for configuration num.io.threads"):
        load("num.io.threads=many")


def test_a_key_nobody_has_gets_a_warning_with_the_nearest_name(load: Load) -> None:
    assert load("log.retension.ms=5").warnings == (
        "log.retension.ms is ignored: unknown key; did you mean log.retention.ms?",
    )
    assert load("xyzzy=5").warnings == ("xyzzy is ignored: unknown key",)


def test_a_key_of_an_older_kafka_gets_a_warning_that_says_so(load: Load) -> None:
    warnings = load("zookeeper.connect=localhost:2181", "port=9092").warnings
    assert warnings == (
        "zookeeper.connect is ignored: removed with ZooKeeper",
        "port is ignored: replaced by listeners",
    )


def test_the_keys_of_the_former_workers_get_a_warning_that_says_what_to_do(load: Load) -> None:
    of_workers, of_step = load("odradek.workers=2", "odradek.workers.port.step=10").warnings
    assert of_workers.startswith("odradek.workers is ignored: removed, one process serves")
    assert "run several brokers" in of_workers
    assert of_step == "odradek.workers.port.step is ignored: removed with odradek.workers"


def test_the_file_of_a_kraft_node_runs_as_it_is(load: Load) -> None:
    loaded = load(
        "process.roles=broker,controller",
        "node.id=1",
        "controller.quorum.voters=1@localhost:9093",
        "controller.quorum.bootstrap.servers=localhost:9093",
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
        "inter.broker.listener.name=PLAINTEXT",
        "advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "num.network.threads=3",
        "log.dirs=/data",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "share.coordinator.state.topic.replication.factor=1",
    )
    assert [str(item) for item in loaded.config.open_listeners] == ["PLAINTEXT://:9092"]
    assert loaded.warnings == ("ignored because odradek does not use them: num.network.threads",)


@pytest.mark.parametrize(
    "name",
    [
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "default.replication.factor",
    ],
)
def test_replica_counts_are_clamped_with_a_warning_where_they_were_written(
    load: Load, name: str
) -> None:
    assert load().warnings == ()
    assert load(f"{name}=1").warnings == ()
    assert load(f"{name}=3").warnings == (f"{name}=3: a single node has one replica, so 1 is used",)
    assert load(f"{name}=3", "odradek.nodes=3").warnings == ()
    (warning,) = load(f"{name}=4", "odradek.nodes=3").warnings
    assert warning == f"{name}=4: there are 3 nodes, so 3 is used"


@pytest.mark.parametrize(
    "line",
    [
        "principal.builder.class=org.example.Principals",
        "listener.name.plaintext.principal.builder.class=org.example.Principals",
        "create.topic.policy.class.name=org.example.Policy",
        "alter.config.policy.class.name=org.example.Policy",
    ],
)
def test_java_classes_that_decide_about_clients_refuse_the_start(load: Load, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(line)
    message = str(caught.value)
    assert message.startswith(line.partition("=")[0] + "=")
    assert "cannot be run" in message
    assert "\n" not in message


def test_keys_that_protect_nothing_by_themselves_do_not(load: Load) -> None:
    load("ssl.client.auth=none", "authorizer.class.name=", "ssl.keystore.password=x")


def test_values_that_a_provider_should_fill_in_are_refused(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"broker.rack: config.providers are not served"):
        load("config.providers=env", "broker.rack=${env:RACK}")


def test_bytes_beyond_ascii_are_latin_1_with_a_warning(load: Load) -> None:
    loaded = load("broker.rack=\xe9")
    assert loaded.config.broker_rack == "\xe9"
    assert "is read as Latin-1" in loaded.warnings[0]


def test_the_configuration_needs_no_library() -> None:
    code = (
        "import sys; from odradek.config.loading import load_config; load_config();"
        "names = ('asyncio', 'typer', 'rich', 'msgspec');"
        "print([name for name in names if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_limits_of_a_listener_are_used() -> None:
    overrides = [
        "listener.name.plaintext.max.connections=5",
        "listener.name.plaintext.max.connection.creation.rate=6",
    ]
    loaded = load_config(overrides=overrides)
    assert loaded.warnings == ()
    assert loaded.config.limit_of_listener("PLAINTEXT", "max.connections") == 5
    assert loaded.config.limit_of_listener("PLAINTEXT", "max.connection.creation.rate") == 6
    assert loaded.config.limit_of_listener("OTHER", "max.connections") == 2**31 - 1
