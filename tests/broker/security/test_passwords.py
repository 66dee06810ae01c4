"""Names and passwords that HTTP takes."""

import pytest

from odradek.broker.security.sasl import passwords
from odradek.broker.security.sasl.passwords import Passwords
from odradek.broker.security.sasl.scram_credential import ScramCredential
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
ITERATIONS = 20_000


def passwords_for(**settings: str) -> Passwords:
    """Two listeners with SASL, and no SCRAM user of this name."""
    texts = {
        "listeners": "IN://127.0.0.1:9092,OUT://127.0.0.1:9093",
        "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "IN",
        **{key.replace("__", "-").replace("_", "."): value for key, value in settings.items()},
    }
    config = BrokerConfig.from_texts(texts)
    return Passwords(lambda: config, lambda *_: None, lambda *_: ITERATIONS)


async def test_the_users_of_plain_of_each_listener_log_in() -> None:
    checked = passwords_for(
        sasl_enabled_mechanisms="PLAIN",
        listener_name_in_plain_sasl_jaas_config=f'{PLAIN} user_ann="a" user_both="in";',
        listener_name_out_plain_sasl_jaas_config=f'{PLAIN} user_bob="b" user_both="out";',
    )
    assert checked.are_required
    for name, password in [("ann", "a"), ("bob", "b"), ("both", "in"), ("both", "out")]:
        assert await checked.are_right(name, password), name
    for name, password in [("ann", "b"), ("bob", "a"), ("nobody", "a"), ("ann", "")]:
        assert not await checked.are_right(name, password), name


async def test_an_unknown_user_of_scram_takes_as_long_as_a_known_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    def is_right(_: ScramMechanism, credential: ScramCredential, password: str) -> bool:
        compared.append(credential.iterations)
        return True

    monkeypatch.setattr(passwords, "_is_right", is_right)
    checked = passwords_for(
        sasl_enabled_mechanisms="SCRAM-SHA-512",
        listener_name_in_scram__sha__512_sasl_jaas_config=SCRAM,
        listener_name_out_scram__sha__512_sasl_jaas_config=SCRAM,
    )
    assert not await checked.are_right("nobody", "guessed")
    assert compared == [ITERATIONS]
