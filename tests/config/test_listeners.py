"""Listeners: what is written, what is opened, and what clients are told."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener, SecurityProtocol

PLAINTEXT = SecurityProtocol.PLAINTEXT


def broker(**texts: str) -> BrokerConfig:
    return BrokerConfig.from_texts({name.replace("_", "."): text for name, text in texts.items()})


def opened(listeners: str, **texts: str) -> list[tuple[str, str | None, int]]:
    found = broker(listeners=listeners, **texts).open_listeners
    return [(item.name, item.host, item.port) for item in found]


@pytest.mark.parametrize(
    ("written", "listener"),
    [
        ("PLAINTEXT://localhost:9092", ("PLAINTEXT", "localhost", 9092)),
        ("plaintext://127.0.0.1:0", ("PLAINTEXT", "127.0.0.1", 0)),
        ("PLAINTEXT://:9092", ("PLAINTEXT", None, 9092)),
        ("PLAINTEXT://0.0.0.0:9092", ("PLAINTEXT", "0.0.0.0", 9092)),
        ("PLAINTEXT://[::1]:9092", ("PLAINTEXT", "::1", 9092)),
        ("PLAINTEXT://[fe80::1%eth0]:9092", ("PLAINTEXT", "fe80::1%eth0", 9092)),
        ("PLAINTEXT://my_host-1.example:65535", ("PLAINTEXT", "my_host-1.example", 65535)),
    ],
)
def test_a_listener_is_a_name_a_host_and_a_port(
    written: str, listener: tuple[str, str | None, int]
) -> None:
    assert opened(written) == [listener]


@pytest.mark.parametrize(
    "written",
    [
        "localhost:9092",
        "PLAINTEXT://localhost",
        "PLAINTEXT://localhost:port",
        "PLAINTEXT://local host:9092",
        "PLAINTEXT:/localhost:9092",
        "://localhost:9092",
        "PLAINTEXT://localhost:65536",
        "PLAINTEXT://localhost:-1",
        "PLAINTEXT://localhost:9092,",
        "",
    ],
)
def test_what_is_no_listener_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match=r"configuration listeners: "):
        broker(listeners=written)


def test_a_name_needs_an_entry_in_the_map() -> None:
    with pytest.raises(ConfigError, match=r"OUTSIDE://:1 .* must be one of listener.security"):
        broker(listeners="OUTSIDE://:1")
    texts = {"listener_security_protocol_map": "outside:plaintext, INSIDE:PLAINTEXT"}
    assert opened("OUTSIDE://:1,inside://:2", **texts) == [
        ("OUTSIDE", None, 1),
        ("INSIDE", None, 2),
    ]


@pytest.mark.parametrize("written", ["OUTSIDE", "OUTSIDE:TLS", "OUTSIDE:"])
def test_a_broken_map_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match=r"listener.security.protocol.map: "):
        broker(listener_security_protocol_map=written)


def test_two_listeners_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="must have a different name"):
        broker(listeners="PLAINTEXT://:1,plaintext://:2")


MAP = "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"


@pytest.mark.parametrize(
    "written",
    [
        "A://:9092,B://:9092",
        "A://localhost:9092,B://127.0.0.1:9092",
        "A://127.0.0.1:9092,B://127.0.0.2:9092",
        "A://[::1]:9092,B://[::2]:9092",
        "A://127.0.0.1:9092,B://[::1]:9092,C://:9092",
    ],
)
def test_two_listeners_on_one_port_are_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="must have a different port"):
        broker(listeners=written, listener_security_protocol_map=MAP)


@pytest.mark.parametrize("written", ["A://127.0.0.1:9092,B://[::1]:9092", "A://:0,B://:0"])
def test_ipv4_and_ipv6_may_share_a_port_and_port_zero_is_none(written: str) -> None:
    assert len(opened(written, listener_security_protocol_map=MAP)) == 2


def test_a_controllers_listener_is_not_opened() -> None:
    found = opened("PLAINTEXT://:9092,CONTROLLER://:9093", controller_listener_names="CONTROLLER")
    assert found == [("PLAINTEXT", None, 9092)]


def test_a_controllers_listener_may_speak_what_it_likes() -> None:
    found = broker(
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        controller_listener_names="controller",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL",
    )
    assert found.all_listeners[1].security_protocol is SecurityProtocol.SASL_SSL
    assert len(found.open_listeners) == 1


def test_a_file_with_only_a_controllers_listener_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"not in controller.listener.names"):
        broker(listeners="CONTROLLER://:9093", controller_listener_names="CONTROLLER")


def advertised(listeners: str, **texts: str) -> dict[str, str]:
    found = broker(listeners=listeners, **texts).advertised
    return {name: str(listener) for name, listener in found.items()}


def test_a_listener_with_a_host_advertises_it() -> None:
    assert advertised("PLAINTEXT://example:9092") == {"PLAINTEXT": "PLAINTEXT://example:9092"}


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_wildcard_advertises_the_address_that_the_client_reached(host: str) -> None:
    found = broker(listeners=f"PLAINTEXT://{host}:9092").advertised["PLAINTEXT"]
    assert found == Listener("PLAINTEXT", None, 9092, PLAINTEXT)


def test_advertised_listeners_overrule_the_listeners() -> None:
    found = advertised(
        "A://0.0.0.0:1,B://inside:2",
        listener_security_protocol_map=MAP,
        advertised_listeners="A://outside:10",
    )
    assert found == {"A": "A://outside:10", "B": "B://inside:2"}


def test_two_listeners_may_advertise_one_port() -> None:
    found = advertised(
        "A://:1,B://:2",
        listener_security_protocol_map=MAP,
        advertised_listeners="A://[::1]:10,B://two:10",
    )
    assert found == {"A": "A://[::1]:10", "B": "B://two:10"}


def test_what_is_not_listened_on_cannot_be_advertised() -> None:
    with pytest.raises(ConfigError, match=r"advertised.listeners: must be for one of: A"):
        advertised("A://:1", listener_security_protocol_map=MAP, advertised_listeners="B://x:1")


def test_the_meta_address_cannot_be_advertised() -> None:
    with pytest.raises(ConfigError, match=r"must not advertise 0\.0\.0\.0"):
        advertised("PLAINTEXT://:1", advertised_listeners="PLAINTEXT://0.0.0.0:1")


def test_a_controllers_advertised_listener_is_left_out() -> None:
    found = advertised(
        "PLAINTEXT://:9092,CONTROLLER://:9093",
        controller_listener_names="CONTROLLER",
        advertised_listeners="PLAINTEXT://x:1,CONTROLLER://y:2",
    )
    assert found == {"PLAINTEXT": "PLAINTEXT://x:1"}


def test_the_inter_broker_listener_must_be_one_that_is_opened() -> None:
    broker(listeners="PLAINTEXT://:1", inter_broker_listener_name="plaintext")
    with pytest.raises(ConfigError, match=r"inter.broker.listener.name: must be one of: PLAINTEXT"):
        broker(listeners="PLAINTEXT://:1", inter_broker_listener_name="REPLICATION")


@pytest.mark.parametrize("text", ["9404", "localhost", "localhost:", "localhost:65536", "a b:1"])
def test_an_http_listener_is_a_host_and_a_port(text: str) -> None:
    with pytest.raises(ConfigError, match=r"odradek\.http\.listener.*host:port"):
        BrokerConfig.from_texts({"odradek.http.listener": text})
    with pytest.raises(ConfigError, match=r"odradek\.registry\.listener.*host:port"):
        BrokerConfig.from_texts({"odradek.registry.listener": text})


@pytest.mark.parametrize(
    ("text", "host"), [("[::1]:9404", "::1"), (":9404", None), ("localhost:9404", "localhost")]
)
def test_the_http_listener_may_have_no_host_or_an_ipv6_address(text: str, host: str | None) -> None:
    listener = BrokerConfig.from_texts({"odradek.http.listener": text}).http_listener
    assert listener is not None
    assert (listener.host, listener.port) == (host, 9404)


def test_there_is_no_http_listener_by_default() -> None:
    assert BrokerConfig().http_listener is None
    assert BrokerConfig().registry_listener is None
