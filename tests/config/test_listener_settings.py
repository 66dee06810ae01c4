"""The settings of a listener: with its prefix, without it, and the defaults."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError


def test_a_key_with_the_listeners_prefix_overrides_the_one_without() -> None:
    texts = {"ssl.client.auth": "required", "listener.name.inside.ssl.client.auth": "none"}
    config = BrokerConfig.from_texts(texts)
    assert config.of_listener("INSIDE").value("ssl.client.auth") == "none"
    assert config.of_listener("OUTSIDE").value("ssl.client.auth") == "required"


def test_a_key_that_is_not_set_has_its_default() -> None:
    assert BrokerConfig().of_listener("A").value("ssl.enabled.protocols") == ("TLSv1.2", "TLSv1.3")


def test_settings_of_the_running_broker_override_the_file() -> None:
    name = "listener.name.a.ssl.keystore.location"
    config = BrokerConfig.from_texts({name: "old.p12"}).with_dynamic({name: "new.p12"})
    assert config.of_listener("A").value("ssl.keystore.location") == "new.p12"


def test_a_mechanism_has_settings_of_its_own() -> None:
    settings = BrokerConfig.from_texts(
        {"sasl.jaas.config": "x", "listener.name.a.scram-sha-256.sasl.jaas.config": "y"}
    ).of_listener("A")
    assert settings.mechanism_text("SCRAM-SHA-256", "sasl.jaas.config") == "y"
    assert settings.mechanism_text("PLAIN", "sasl.jaas.config") is None


def test_a_wrong_value_is_named_as_it_was_written() -> None:
    settings = BrokerConfig.from_texts({"listener.name.a.ssl.client.auth": "maybe"}).of_listener(
        "A"
    )
    with pytest.raises(ConfigError, match=r"listener\.name\.a\.ssl\.client\.auth"):
        settings.value("ssl.client.auth")
