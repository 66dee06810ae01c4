"""The keys of the authorizer."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.keys_authorizer import STANDARD_AUTHORIZER, AuthorizerSettings
from odradek.config.loading import load_config

NAMED = {"authorizer.class.name": STANDARD_AUTHORIZER}


@pytest.mark.parametrize("texts", [{}, {"authorizer.class.name": " "}])
def test_without_a_class_there_is_no_authorizer(texts: dict[str, str]) -> None:
    assert BrokerConfig.from_texts(texts | {"super.users": "User:a"}).authorizer is None


def test_only_kafkas_standard_authorizer_is_served() -> None:
    with pytest.raises(
        ConfigError, match=rf"Invalid value org\.X for .*: must be {STANDARD_AUTHORIZER}, or empty"
    ):
        BrokerConfig.from_texts({"authorizer.class.name": "org.X"})


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ({}, AuthorizerSettings(frozenset(), allows_by_default=False)),
        (
            {"super.users": " User:a ;User:CN=b,O=c; ", "allow.everyone.if.no.acl.found": " TRUE "},
            AuthorizerSettings(frozenset({"User:a", "User:CN=b,O=c"}), allows_by_default=True),
        ),
        ({"allow.everyone.if.no.acl.found": "yes"}, AuthorizerSettings()),
    ],
)
def test_the_settings_are_read_as_kafka_reads_them(
    texts: dict[str, str], settings: AuthorizerSettings
) -> None:
    assert BrokerConfig.from_texts(NAMED | texts).authorizer == settings


def test_a_super_user_without_a_type_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value bob for configuration super\.users"):
        BrokerConfig.from_texts(NAMED | {"super.users": "User:alice;bob"})


def test_the_settings_are_named_as_ignored_only_without_an_authorizer() -> None:
    settings = ["super.users=User:a", "allow.everyone.if.no.acl.found=true"]
    assert "super.users" in load_config(None, settings).warnings[0]
    named = f"authorizer.class.name={STANDARD_AUTHORIZER}"
    assert load_config(None, [named, *settings]).warnings == ()
