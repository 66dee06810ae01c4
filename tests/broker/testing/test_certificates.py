"""The certificates of the broker of users' tests."""

import ssl
from pathlib import Path

import pytest

from odradek.broker.testing.certificates import write_certificates
from tests.support.certificates import shake_hands, verify_as_python_3_13


def test_they_satisfy_the_verification_of_python_3_13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_as_python_3_13(monkeypatch)
    authority, broker = tmp_path / "ca.pem", tmp_path / "broker.pem"
    write_certificates(authority, broker)
    shake_hands(ssl.create_default_context(cafile=str(authority)), broker)
