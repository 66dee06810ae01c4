"""Every key, compared with the list that Apache Kafka 4.4.0's own jars give (golden/config)."""

import subprocess
from pathlib import Path

import pytest

from odradek.config.broker_config import SERVED_KEYS
from odradek.config.broker_keys import broker_keys
from odradek.config.dynamic_keys import CLUSTER_WIDE, PER_BROKER
from odradek.config.key import ConfigType, Key
from odradek.config.topic_config import TOPIC_KEYS
from tests.support.java_tools import JavaTools, why_no_java

GOLDEN = Path(__file__).parents[1] / "golden" / "config" / "keys.tsv"
ROWS = [
    [None if cell == r"\N" else cell for cell in line.split("\t")]
    for line in GOLDEN.read_text().splitlines()
    if not line.startswith("#")
]

# Where odradek's default is another one, and why.
OTHER_DEFAULTS = {
    "node.id": "0",  # Kafka has none, and wants it written
    "process.roles": "broker,controller",  # likewise; this is what one node is
    "controller.listener.names": "",  # likewise
    "queued.max.request.bytes": "268435456",  # Kafka: no limit
}
OTHER_RANGES = {"offsets.topic.compression.codec"}  # Kafka fails later, when it meets the number


def ours(kind: str) -> dict[str, Key]:
    return dict(broker_keys() if kind == "broker" else TOPIC_KEYS)


@pytest.mark.java
def test_the_list_is_that_of_kafkas_jars() -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    command = [*JavaTools().java(), str(GOLDEN.parent / "DumpKeys.java")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == GOLDEN.read_text()


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_all_of_kafkas_keys_are_known_and_no_others(kind: str) -> None:
    own = {name for name in ours(kind) if name.startswith("odradek.")}
    assert ours(kind).keys() - own == {row[1] for row in ROWS if row[0] == kind}


def test_types_defaults_and_visibility_are_kafkas() -> None:
    for kind, name, type_, default, _, _, visibility in ROWS:
        key = ours(str(kind))[str(name)]
        assert key.type == ConfigType[str(type_)], name
        assert key.internal == (visibility == "internal"), name
        expected = OTHER_DEFAULTS.get(str(name), default) if kind == "broker" else default
        assert key.render(key.default) == expected, name


def test_what_may_change_at_run_time_is_kafkas() -> None:
    for kind, name, _, _, _, mode, _ in ROWS:
        if kind == "broker":
            assert (name in CLUSTER_WIDE) == (mode == "cluster-wide"), name
            assert (name in PER_BROKER) == (mode == "per-broker"), name


def test_ranges_and_choices_are_kafkas() -> None:
    for kind, name, type_, _, valid, _, _ in ROWS:
        key = ours(str(kind))[str(name)]
        if name in OTHER_RANGES or "partitionId" in str(valid):
            continue
        if valid == "[1,...,9] or -1":
            assert key.one_of == (-1, *range(1, 10))
        elif valid is not None and "..." in valid and type_ != "LIST":
            assert (key.ge, key.le) == bounds(valid), name
        elif valid is not None and "[" in valid:
            choices = valid[valid.index("[") + 1 : -1].split(", ")
            assert {str(item).lower() for item in key.one_of} == {c.lower() for c in choices}, name
        else:
            assert (key.ge, key.le, key.one_of) == (None, None, ()), name


def bounds(valid: str) -> tuple[float | None, float | None]:
    low, _, high = valid.strip("[]").partition("...")
    return number(low.strip(",")), number(high.strip(","))


def number(text: str) -> float | None:
    return float(text) if text else None


def test_a_default_is_allowed_by_its_own_key() -> None:
    for key in [*broker_keys().values(), *TOPIC_KEYS.values()]:
        text = key.render(key.default)
        if text and key.default is not None:
            assert key.parse(text) == key.default, key


def test_the_fields_of_odradeks_own_keys_are_few() -> None:
    assert [name for name in SERVED_KEYS if name.startswith("odradek.")] == [
        "odradek.telemetry.topic",
        "odradek.telemetry.max.series",
        "odradek.telemetry.max.client.series",
        "odradek.validate.records",
        "odradek.min.free.bytes",
        "odradek.group.expire.on.disconnect",
        "odradek.http.listener",
        "odradek.http.hosts",
        "odradek.console",
        "odradek.console.read.only",
        "odradek.registry.listener",
        "odradek.nodes",
        "odradek.nodes.racks",
        "odradek.create.topics",
        "odradek.cluster.id",
    ]
