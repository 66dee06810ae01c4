"""Prints distinguished names as Java does: X500Principal.getName(), which is RFC 2253.

The last part of the name comes first. An attribute that RFC 2253 does not name is printed by the
number of its type, with its value in hexadecimal. So is a value that is not text, after the name of
its type. Java decodes the bytes of every kind of text as UTF-8. A principal is compared with ACLs
as text, so each detail counts.

OpenJDK: sun.security.x509.AVA.toRFC2253String, X500Name.
"""

from .der import SEQUENCE, SET, element, elements, oid_text

_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# UTF8, Printable, T61, IA5, General, Universal and BMP strings.
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
_ESCAPED = frozenset(',=+<>#;"\\')
_VERSION = 0xA0


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises ValueError if it cannot be decoded."""
    # The first element of a certificate contains: version (optional), serial number, signature,
    # issuer, validity, subject.
    has_version = element(certificate, 0, 0).tag == _VERSION
    return name_text(element(certificate, 0, 5 if has_version else 4).encoded)


def name_text(name: bytes) -> str:
    """A distinguished name in DER as text. Raises ValueError if it cannot be decoded."""
    outer = element(name)
    if outer.tag != SEQUENCE:
        raise ValueError("a name is no sequence")
    parts = []
    for part in elements(outer.content):
        if part.tag != SET:
            raise ValueError("a part of a name is no set")
        parts.append("+".join(_attribute(each.content) for each in elements(part.content)))
    return ",".join(reversed(parts))


def _attribute(content: bytes) -> str:
    kind, value = elements(content)
    number = oid_text(kind.content)
    if number not in _NAMES or value.tag not in _TEXTS:
        return f"{_NAMES.get(number, number)}=#{value.encoded.hex()}"
    return f"{_NAMES[number]}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    """Escape special characters, and spaces and carriage returns at both ends."""
    escaped = "".join(_escape(character) for character in text)
    inner = escaped.strip(" \r")
    if len(inner) == len(escaped):
        return escaped
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    trail = lead + len(inner)
    return "".join(
        character if lead <= index < trail else "\\" + character
        for index, character in enumerate(escaped)
    )


def _escape(character: str) -> str:
    if character == "\0":
        return "\\00"
    return "\\" + character if character in _ESCAPED else character
