"""Keys and certificates are found in any PEM text, in linear time."""

import base64
from contextlib import suppress

import pytest

from odradek.broker.security.tls.pem import PemError, certificates_in, private_key_in
from tests.support.growth import Work, assert_linear

DER = bytes(range(48))
BODY = base64.b64encode(DER).decode()
HOSTILE = {
    "dashes": "-",
    "blanks": " ",
    "a kind without an end": "A",
    "begins": "-BEGIN A-",
    "begins with blanks": "-----BEGIN  ",
    "headers": "a: b\n",
    "headers with begins": "a:-BEGIN A-\n",
    "bodies": "-----BEGIN A-----\nAAAA\n",
    "other ends": "-----BEGIN A-----\nAAAA\n-----END B-----\n",
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n", " "])
def test_a_certificate_is_found_whatever_stands_around_it(line_end: str) -> None:
    lines = ["-----BEGIN CERTIFICATE-----", BODY[:32], BODY[32:], "-----END CERTIFICATE-----"]
    text = line_end.join(lines)
    assert certificates_in(f"subject: x\n{text}\nnext\n{text}") == [DER, DER]


def test_the_header_lines_of_a_key_are_skipped() -> None:
    kind = "ENCRYPTED PRIVATE KEY"
    text = f"-----BEGIN {kind}-----\nComment: a-b: c\n\n{BODY}\n-----END {kind}-----"
    assert private_key_in(text) == (DER, True)


def test_an_end_of_another_kind_ends_no_block() -> None:
    with pytest.raises(PemError, match="no certificate"):
        certificates_in(f"-----BEGIN CERTIFICATE-----\n{BODY}\n-----END PUBLIC KEY-----")


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_time_is_linear_in_the_text(kind: str) -> None:
    def prepared(size: int) -> Work:
        text = "-----BEGIN " + HOSTILE[kind] * size

        def work() -> None:
            with suppress(PemError):
                certificates_in(text)

        return work

    assert_linear(prepared, 2000)
