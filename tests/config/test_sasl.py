"""The mechanisms of a listener: what a server.properties may say, and what refuses the start."""

from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.key import INT_MAX
from odradek.config.loading import load_config
from odradek.config.sasl import SaslListener, sasl_listeners

SECURITY = "org.apache.kafka.common.security"
PLAIN = f'{SECURITY}.plain.PlainLoginModule required user_alice="hunter2";'
SCRAM = f"{SECURITY}.scram.ScramLoginModule required;"
OAUTH = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
SIGNED = f"{SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
PREFIX = "listener.name.in"
LISTENER = {
    "listeners": "IN://localhost:9092",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
}
WITH_PLAIN = {
    **LISTENER,
    "sasl.enabled.mechanisms": "PLAIN",
    f"{PREFIX}.plain.sasl.jaas.config": PLAIN,
}


def only_listener(**texts: str) -> SaslListener:
    config = BrokerConfig.from_texts({**LISTENER, **texts})
    (listener,) = sasl_listeners(config)
    return listener


def test_each_mechanism_has_its_login_module() -> None:
    listener = only_listener(
        **{
            "sasl.enabled.mechanisms": "GSSAPI",
            f"{PREFIX}.sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-512",
            f"{PREFIX}.plain.sasl.jaas.config": PLAIN,
            f"{PREFIX}.scram-sha-512.sasl.jaas.config": SCRAM,
            "connections.max.reauth.ms": "5",
            f"{PREFIX}.connections.max.reauth.ms": "6",
            f"{PREFIX}.plain.connections.max.reauth.ms": "7",
            f"{PREFIX}.sasl.server.max.receive.size": "99",
        }
    )
    plain, scram = listener.mechanisms
    assert (plain.name, plain.max_reauth_ms) == ("PLAIN", 7)
    assert plain.jaas.options == {"user_alice": "hunter2"}
    assert (scram.name, scram.max_reauth_ms) == ("SCRAM-SHA-512", 6)
    assert listener.max_receive_bytes == 99


def test_a_limit_of_minus_one_is_none() -> None:
    assert only_listener(
        **WITH_PLAIN, **{"sasl.server.max.receive.size": "-1"}
    ).max_receive_bytes == (INT_MAX)


def test_a_failed_login_is_answered_before_the_connection_is_idle_too_long() -> None:
    key = "connection.failed.authentication.delay.ms"
    idle = {"connections.max.idle.ms": "100"}
    with pytest.raises(ConfigError, match=key):
        BrokerConfig.from_texts({**idle, key: "100"})
    assert BrokerConfig.from_texts({**idle, key: "99"})
    assert BrokerConfig.from_texts({"connections.max.idle.ms": "-1", key: "100"})


def test_a_listener_without_sasl_needs_nothing() -> None:
    assert sasl_listeners(BrokerConfig.from_texts({"sasl.enabled.mechanisms": "GSSAPI"})) == ()


def written(directory: Path, texts: dict[str, str]) -> Path:
    """A file with these settings. Secrets cannot be overrides."""
    file = directory / "server.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in texts.items()))
    return file


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({}, ["GSSAPI", "Kerberos"]),
        ({"sasl.enabled.mechanisms": ""}, ["IN", "at least one"]),
        ({"sasl.enabled.mechanisms": "DIGEST-MD5"}, ["DIGEST-MD5"]),
        ({"sasl.enabled.mechanisms": "PLAIN"}, [f"{PREFIX}.plain.sasl.jaas.config", "not set"]),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": PLAIN},
            [f"{PREFIX}.plain.sasl.jaas.config", "not set", "for clients"],
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{PREFIX}.plain.sasl.jaas.config": 'org.example.Login required p="hunter2";',
            },
            [f"{PREFIX}.plain.sasl.jaas.config", "PlainLoginModule"],
        ),
        (
            {
                **WITH_PLAIN,
                f"{PREFIX}.plain.sasl.server.callback.handler.class": "org.example.Handler",
            },
            [f"{PREFIX}.plain.sasl.server.callback.handler.class", "org.example.Handler"],
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                f"{PREFIX}.oauthbearer.sasl.jaas.config": OAUTH,
                f"{PREFIX}.oauthbearer.sasl.server.callback.handler.class": SIGNED,
            },
            ["sasl.oauthbearer.jwks.endpoint.url"],
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                f"{PREFIX}.oauthbearer.sasl.jaas.config": OAUTH,
                f"{PREFIX}.oauthbearer.sasl.server.callback.handler.class": SIGNED,
                "sasl.oauthbearer.jwt.validator.class": "org.example.V",
            },
            ["sasl.oauthbearer.jwt.validator.class", "org.example.V"],
        ),
    ],
)
def test_what_cannot_be_served_refuses_the_start(
    texts: dict[str, str], words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(written(tmp_path, {**LISTENER, **texts}))
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "hunter2" not in message
    assert "\n" not in message


def test_kafkas_own_classes_are_accepted_and_nothing_is_warned_about(tmp_path: Path) -> None:
    handler = f"{SECURITY}.plain.internals.PlainServerCallbackHandler"
    texts = {**WITH_PLAIN, f"{PREFIX}.plain.sasl.server.callback.handler.class": handler}
    loaded = load_config(written(tmp_path, texts))
    assert loaded.warnings == ()
