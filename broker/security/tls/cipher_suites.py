"""Translates Java's names of cipher suites, which server.properties has, to OpenSSL's.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256  ->  ECDHE-RSA-AES128-GCM-SHA256

The names of TLS 1.3 are the same on both sides, but Python's ssl module cannot choose among them:
all three are offered, the strongest first, and a connection that settled on one that is not
allowed is closed after its handshake.
"""

import re
import ssl
from functools import cache
from typing import NamedTuple

from odradek.config.errors import ConfigError

KEY = "ssl.cipher.suites"
TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_TLS_1_2 = re.compile(
    r"(?:TLS|SSL)_(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>CBC|GCM)|CHACHA20_POLY1305)_(?P<digest>SHA\d*)"
)
_NAME = re.compile(r"(TLS|SSL)_[A-Z0-9_]+")


class CipherSuites(NamedTuple):
    """The suites that a listener allows. If nothing is configured, all are empty: OpenSSL chooses.

    `tls_1_2` has OpenSSL's names. `unknown` are suites that this OpenSSL does not have.
    """

    tls_1_3: frozenset[str]
    tls_1_2: tuple[str, ...]
    unknown: tuple[str, ...]


def parse_cipher_suites(names: tuple[str, ...]) -> CipherSuites:
    """Translate Java's names. Raises ConfigError if none of them can be served."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{KEY}: {name} is not the name of a cipher suite")
    tls_1_3 = frozenset(names).intersection(TLS_1_3)
    translated = {name: _openssl_name(name) for name in names if name not in TLS_1_3}
    unknown = tuple(name for name, found in translated.items() if found is None)
    tls_1_2 = tuple(found for found in translated.values() if found is not None)
    if names and not tls_1_3 and not tls_1_2:
        raise ConfigError(f"{KEY}: none of {', '.join(names)} can be served")
    # OpenSSL offers all three and prefers the first: a client that has it would settle on it, and
    # its connection would be closed although it also has an allowed one.
    if tls_1_3 and TLS_1_3[0] not in tls_1_3:
        raise ConfigError(
            f"{KEY}: of TLS 1.3's suites, {TLS_1_3[0]} cannot be left out, unless all are"
        )
    return CipherSuites(tls_1_3, tls_1_2, unknown)


def _openssl_name(name: str) -> str | None:
    match = _TLS_1_2.fullmatch(name)
    if match is None:
        return None
    exchange = match["exchange"].replace("_", "-")
    prefix = "" if exchange == "RSA" else f"{exchange}-"
    if match["bits"] is None:
        translated = f"{prefix}CHACHA20-POLY1305"
    else:
        mode = "GCM-" if match["mode"] == "GCM" else ""
        translated = f"{prefix}AES{match['bits']}-{mode}{match['digest']}"
    return translated if translated in _of_openssl() else None


@cache
def _of_openssl() -> frozenset[str]:
    """The names of all suites that this OpenSSL has, also of weak ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return frozenset(suite["name"] for suite in context.get_ciphers())
