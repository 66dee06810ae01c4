"""What the commands verify of a broker's certificate."""

import ssl
from pathlib import Path

import pytest

from odradek.tools.client.tls import client_context
from tests.support.certificates import TlsFiles, shake_hands, verify_as_python_3_13


def test_a_certificate_of_the_authority_is_trusted_also_without_a_key_identifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_as_python_3_13(monkeypatch)
    files, others = TlsFiles(tmp_path / "a"), TlsFiles(tmp_path / "b")
    shake_hands(client_context({"ssl.ca.location": str(files.ca)}), files.server_pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context({"ssl.ca.location": str(others.ca)}), files.server_pem)
