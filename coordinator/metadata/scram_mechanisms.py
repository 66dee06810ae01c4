"""The mechanisms of SCRAM, and the keys that are stored of a user's password.

Kafka: ScramMechanism (the two classes of this name), ScramFormatter, ScramMessages.SASLNAME.
"""

import hashlib
import hmac
from enum import IntEnum
from typing import NamedTuple

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384


class ScramMechanism(IntEnum):
    """The mechanisms. On the wire and in the metadata log: never renumber."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The name of the mechanism in SASL."""
        return f"SCRAM-SHA-{self.name[4:]}"

    @property
    def hash_name(self) -> str:
        """The name of the hash function in hashlib."""
        return f"sha{self.name[4:]}"

    def digest(self, data: bytes) -> bytes:
        """The hash of some bytes."""
        return hashlib.new(self.hash_name, data).digest()


# The mechanisms by their names in SASL.
SCRAM_MECHANISMS = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


def can_log_in(user: str) -> bool:
    """Whether a login may have this name. Kafka stores any name, and accepts ASCII at a login."""
    return user.isascii() and "\0" not in user


class ScramKeys(NamedTuple):
    """What is stored of a password."""

    stored_key: bytes
    server_key: bytes


def client_key_of(mechanism: ScramMechanism, salted_password: bytes) -> bytes:
    """The key by which a client proves that it knows its password. It is not stored."""
    return hmac.digest(salted_password, b"Client Key", mechanism.hash_name)


def keys_of(mechanism: ScramMechanism, salted_password: bytes) -> ScramKeys:
    """The keys of a salted password."""
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.hash_name)
    return ScramKeys(mechanism.digest(client_key_of(mechanism, salted_password)), server_key)


def salt_of(random_number: int) -> bytes:
    """A salt as Kafka makes it: 130 random bits in base 36, as text."""
    number, digits = random_number % 2**130, ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits.encode()


def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Salt and hash a password. It takes milliseconds."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
