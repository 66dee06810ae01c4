"""Writes Java key stores (JKS), so that reading them is tested without Java."""

import hashlib
import os
import struct

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.certificates import Signed

MAGIC, VERSION, KEY, CERTIFICATE = b"\xfe\xed\xfe\xed", 2, 1, 2
SUN_KEY_PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")


def java_key_store(
    password: str,
    *,
    keys: dict[str, list[Signed]] | None = None,
    trusted: dict[str, Signed] | None = None,
    key_password: str | None = None,
) -> bytes:
    """A store with these entries by alias; a key's list begins with its own certificate."""
    entries = []
    for alias, chain in (keys or {}).items():
        protected = _protect(chain[0], key_password or password)
        head = struct.pack(">I", KEY) + _text(alias) + bytes(8)
        certificates = b"".join(_certificate(each) for each in chain)
        entries.append(head + _sized(protected) + struct.pack(">I", len(chain)) + certificates)
    for alias, signed in (trusted or {}).items():
        head = struct.pack(">I", CERTIFICATE) + _text(alias) + bytes(8)
        entries.append(head + _certificate(signed))
    data = MAGIC + struct.pack(">II", VERSION, len(entries)) + b"".join(entries)
    digest = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + data).digest()
    return data + digest


def _protect(signed: Signed, password: str) -> bytes:
    key = signed.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    secret, salt = password.encode("utf-16-be"), os.urandom(20)
    stream, digest = b"", salt
    while len(stream) < len(key):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    body = bytes(a ^ b for a, b in zip(key, stream, strict=False))
    check = hashlib.sha1(secret + key).digest()
    return _der(0x30, SUN_KEY_PROTECTOR + _der(0x04, salt + body + check))


def _der(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x82]) + struct.pack(">H", len(content)) + content


def _certificate(signed: Signed) -> bytes:
    return _text("X.509") + _sized(signed.certificate.public_bytes(Encoding.DER))


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _sized(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
