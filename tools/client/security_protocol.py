"""What security.protocol says: whether a client encrypts, and whether it logs in."""

from __future__ import annotations

from collections.abc import Mapping


def uses_tls(settings: Mapping[str, str]) -> bool:
    return _security_protocol(settings).endswith("SSL")


def uses_sasl(settings: Mapping[str, str]) -> bool:
    return _security_protocol(settings).startswith("SASL")


def _security_protocol(settings: Mapping[str, str]) -> str:
    return settings.get("security.protocol", "PLAINTEXT").upper()
