"""The client's side of SCRAM, with the example of RFC 7677; which names the broker's side takes."""

import pytest

from odradek.broker.security.sasl.exchange import SaslError
from odradek.broker.security.sasl.scram import DecoyCredentials, ScramExchange
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism, can_log_in
from odradek.tools.client.scram import ScramClient, ScramError

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_messages_are_those_of_the_rfc() -> None:
    login = client()
    assert login.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert login.final(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    login.check(SERVER_FINAL)


@pytest.mark.parametrize(
    "message",
    [
        SERVER_FIRST.replace(b"r=rO", b"r=xO"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        SERVER_FIRST.replace(b"4096", b"4095"),
        SERVER_FIRST.replace(b"4096", b"99999999"),
        SERVER_FIRST.replace(b"4096", b"many"),
        SERVER_FIRST.replace(b"s=W22", b"s=!!!"),
        b"",
        b"e=other-error",
    ],
)
def test_a_server_that_does_not_follow_the_protocol_gets_no_proof(message: bytes) -> None:
    with pytest.raises(ScramError):
        client().final(message)


@pytest.mark.parametrize("message", [SERVER_FINAL[:-2] + b"A=", b"v=", b"", b"e=invalid-proof"])
def test_a_server_must_know_the_password(message: bytes) -> None:
    login = client()
    login.final(SERVER_FIRST)
    with pytest.raises(ScramError):
        login.check(message)


def test_an_answer_without_a_proof_is_none_before_the_client_has_sent_its_own() -> None:
    with pytest.raises(ScramError, match="does not prove"):
        client().check(b"")


def is_taken_at_a_login(user: str) -> bool:
    exchange = ScramExchange(
        ScramMechanism.SHA_256, lambda *_: None, DecoyCredentials(lambda *_: None)
    )
    try:
        exchange.evaluate(ScramClient("SCRAM-SHA-256", user, "pencil").first())
    except SaslError:
        return False
    return True


def test_commands_refuse_the_names_that_a_login_refuses() -> None:
    users = [f"a{character}b" for character in ("", *map(chr, range(0x101)), "\U0001f600")]
    assert [user for user in users if can_log_in(user) != is_taken_at_a_login(user)] == []
