"""Finds keys and certificates in PEM texts.

A value of server.properties may be one long line, with blanks where a file has line ends. Anything
may stand between the blocks. Kafka: DefaultSslEngineFactory.PemParser.
"""

import base64
import binascii
import re

# No quantifier gives back what it has matched, and no part goes past the next "-BEGIN". So the time
# is linear in the length of any text.
_BLOCK = re.compile(
    r"-BEGIN\s++(?P<kind>[A-Z0-9 ]*+)\s*+-++"
    r"(?:\s*+[^\r\n:-]++:(?:(?!-BEGIN)[^\r\n])*+[\r\n]++)*+"  # names and values
    r"(?:(?P<body>[a-zA-Z0-9/+=\s]*+)-++|(?<=-))"  # without a body the dashes are matched already
    r"END\s++(?P<end>[A-Z0-9 ]*+)\s*+-"
)


class PemError(Exception):
    """A PEM text lacks what is needed, or cannot be decoded."""


def certificates_in(text: str) -> list[bytes]:
    """All certificates, as DER. Raises PemError if there is none."""
    found = [_decoded(body) for kind, body in _blocks(text) if kind.endswith("CERTIFICATE")]
    if not found:
        raise PemError("there is no certificate in the PEM text")
    return found


def private_key_in(text: str) -> tuple[bytes, bool]:
    """The one private key as DER, and whether it is encrypted. Raises PemError."""
    keys = [(kind, body) for kind, body in _blocks(text) if kind.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise PemError(f"one private key is needed in the PEM text, and there are {len(keys)}")
    kind, body = keys[0]
    return _decoded(body), kind.startswith("ENCRYPTED")


def _blocks(text: str) -> list[tuple[str, str]]:
    return [
        (" ".join(match["kind"].split()), match["body"] or "")
        for match in _BLOCK.finditer(text)
        if match["kind"].rstrip() == match["end"].rstrip()
    ]


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error:
        raise PemError("the PEM text is not valid base64") from None
