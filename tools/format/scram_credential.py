"""Parses a SCRAM credential as it is written for `kafka-storage format --add-scram`.

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

An error does not show the text, because it has a secret. Kafka: ScramParser.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Mapping

from odradek.config.java_text import parse_integer
from odradek.coordinator.metadata.scram_changes import ScramUpsertion, credential_record
from odradek.coordinator.metadata.scram_mechanisms import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramMechanism,
    can_log_in,
    salt_of,
    salted,
)
from odradek.protocol.errors import ApiError
from odradek.protocol.records.cluster_metadata import UserScramCredentialRecord

_FORM = re.compile(r"([^=]*)=\[(.*)\]", re.DOTALL)
_KEYS = ("name", "password", "salt", "saltedpassword", "iterations")


class CredentialError(ValueError):
    """A credential is not valid. The message is one line for the user."""


def parse_credential(text: str) -> UserScramCredentialRecord:
    """The record of a credential. Raises CredentialError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CredentialError("a credential must be UTF-8") from None
    match = _FORM.fullmatch(text.strip())
    if match is None or match[1] not in SCRAM_MECHANISMS:
        names = " or ".join(SCRAM_MECHANISMS)
        raise CredentialError(f"a credential must be {names}, followed by =[name=…,password=…]")
    mechanism, parts = SCRAM_MECHANISMS[match[1]], _parts(match[2])
    user = parts.get("name", "")
    if not can_log_in(user):
        raise CredentialError(
            f"user {user!r} cannot log in: names are of ASCII characters, as in Kafka"
        )
    salt = _decoded(parts, "salt") or salt_of(secrets.randbits(130))
    iterations = _iterations(parts.get("iterations"))
    try:
        return credential_record(
            ScramUpsertion(
                user=user,
                mechanism=mechanism,
                iterations=iterations,
                salt=salt,
                salted_password=_salted_password(mechanism, parts, salt, iterations),
            )
        )
    except ApiError as error:
        raise CredentialError(error.message) from None


def _parts(text: str) -> dict[str, str]:
    parts = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in _KEYS:
            raise CredentialError(f"each part must be KEY=VALUE, with a key of: {', '.join(_KEYS)}")
        is_quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        parts[name] = value[1:-1] if is_quoted else value
    return parts


def _iterations(text: str | None) -> int:
    if text is None:
        return MIN_ITERATIONS
    try:
        return parse_integer(text, 32)
    except ValueError:
        raise CredentialError("iterations must be a whole number") from None


def _salted_password(
    mechanism: ScramMechanism, parts: Mapping[str, str], salt: bytes, iterations: int
) -> bytes:
    if "password" in parts:
        # A number that is out of range is refused later.
        iterations = min(max(iterations, MIN_ITERATIONS), MAX_ITERATIONS)
        return salted(mechanism, parts["password"], salt, iterations)
    if "saltedpassword" not in parts or "salt" not in parts:
        raise CredentialError("it needs a password, or a salt and a saltedpassword")
    return _decoded(parts, "saltedpassword")


def _decoded(parts: Mapping[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(parts.get(name, ""), validate=True)
    except (binascii.Error, ValueError):
        raise CredentialError(f"{name} must be base64") from None
