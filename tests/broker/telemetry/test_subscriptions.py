"""What the subscriptions ask of a client, and the id that says so."""

import pytest

from odradek.broker.admin.subscriptions import Subscriptions, Wanted, subscription_id
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.protocol.primitives import uuid_from_text
from odradek.protocol.records.cluster_metadata import ConfigRecord

DEFAULT_MS = 300_000
CLIENT: dict[str, str | None] = {
    "client_instance_id": "J8GYoHHlSjuPN2Vn6QuJRA",
    "client_id": "till-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.0",
    "client_source_address": "192.0.2.7",
    "client_source_port": "40000",
}


def wanted(*subscriptions: dict[str, str], client: dict[str, str | None] = CLIENT) -> Wanted:
    configs = Configs()
    add(configs, *subscriptions)
    return Subscriptions(configs).wanted_of(client)


def add(configs: Configs, *subscriptions: dict[str, str]) -> None:
    for number, settings in enumerate(subscriptions):
        for name, value in settings.items():
            record = ConfigRecord(
                resource_type=ConfigResourceType.CLIENT_METRICS,
                resource_name=f"subscription-{number}",
                name=name,
                value=value,
            )
            configs.replay(record)


def test_without_a_subscription_nothing_is_wanted() -> None:
    assert wanted() == Wanted(metrics=(), push_interval_ms=DEFAULT_MS)


def test_all_subscriptions_of_a_client_count_and_the_shortest_interval() -> None:
    found = wanted(
        {"metrics": "a.b,c", "interval.ms": "2000"}, {"metrics": "c,d", "interval.ms": "1000"}
    )
    assert (sorted(found.metrics), found.push_interval_ms) == (["a.b", "c", "d"], 1000)


def test_an_interval_of_more_than_five_minutes_has_no_effect() -> None:
    assert wanted({"interval.ms": "3600000"}).push_interval_ms == DEFAULT_MS


def test_a_star_stands_for_all_names() -> None:
    assert wanted({"metrics": "a,b"}, {"metrics": "*"}).metrics == ("*",)


@pytest.mark.parametrize(
    ("match", "is_matched"),
    [
        ("client_id=till.*", True),
        ("client_id=till", False),  # the whole value must match
        ("client_software_name = apache-kafka-.*, client_software_version=4\\.[0-9]\\..*", True),
        ("client_software_name=apache-kafka-java,client_software_version=3.*", False),
        ("client_source_address=192\\.0\\.2\\..*,client_source_port=\\d+", True),
        ("client_instance_id=J8GYoHHlSjuPN2Vn6QuJRA", True),
        ("client_id=no,client_id=till-1", True),  # the last of two
    ],
)
def test_clients_are_selected_by_patterns(match: str, is_matched: bool) -> None:
    assert (wanted({"metrics": "a", "match": match}).metrics == ("a",)) is is_matched


def test_subscriptions_are_read_again_in_steps() -> None:
    configs = Configs()
    subscriptions = Subscriptions(configs)
    add(configs, {"metrics": "a", "match": "client_id=.*"}, {"metrics": "b"})
    found = []
    subscriptions.update(
        configs.names(ConfigResourceType.CLIENT_METRICS),
        lambda: found.append((subscriptions.version, subscriptions.wanted_of(CLIENT).metrics)),
    )
    found.append((subscriptions.version, subscriptions.wanted_of(CLIENT).metrics))
    # What was wanted of a client in a step is out of date after the next one.
    assert found == [(0, ()), (1, ("a",)), (2, ("a", "b"))]


def test_an_unknown_attribute_matches_nothing() -> None:
    found = wanted({"metrics": "a", "match": "client_id=.*"}, client={**CLIENT, "client_id": None})
    assert found.metrics == ()


@pytest.mark.parametrize("pattern", ["\\p{javaLowerCase}", "(?!bank).*", "(.+)\\1"])
def test_a_pattern_that_only_java_has_is_ignored(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert wanted({"metrics": "a", "match": f"client_id={pattern}"}, {"metrics": "c"}).metrics == (
        "c",
    )
    assert "subscription-0 is ignored" in caplog.text


@pytest.mark.parametrize(
    ("metrics", "interval_ms", "expected"),
    [
        ((), DEFAULT_MS, -455_121_562),
        (("*",), 100, 92_717_593),
        (("a", "b.c"), 1_000, -294_336_889),
    ],
)
def test_the_id_is_kafkas(metrics: tuple[str, ...], interval_ms: int, expected: int) -> None:
    id_ = uuid_from_text("J8GYoHHlSjuPN2Vn6QuJRA")
    assert subscription_id(Wanted(metrics=metrics, push_interval_ms=interval_ms), id_) == expected
