"""The TLS settings of a client, in librdkafka's words, for Python's ssl module."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .failure import CommandError

_OFF = ("false", "0")


def client_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """The context for connections to brokers. Raises CommandError.

    Certificates and keys are PEM: files, or (ssl.ca.pem, ...) texts.
    """
    if "ssl.keystore.location" in settings:
        raise CommandError(
            "this command reads certificates as PEM, not from a key store: set"
            " ssl.certificate.location and ssl.key.location"
        )
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem")
        )
        # As librdkafka. The default of Python 3.13 refuses certificates without a key identifier,
        # which private authorities make.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        _load_own_certificate(context, settings)
    except (OSError, ssl.SSLError) as error:
        raise CommandError(f"the TLS settings cannot be used: {error}") from None
    if settings.get("ssl.endpoint.identification.algorithm", "https") in ("", "none"):
        context.check_hostname = False
    if settings.get("enable.ssl.certificate.verification", "true") in _OFF:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_own_certificate(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    password = settings.get("ssl.key.password", "")  # without one, OpenSSL would ask the terminal
    if "ssl.certificate.location" in settings:
        key = settings.get("ssl.key.location")
        context.load_cert_chain(settings["ssl.certificate.location"], key, password)
    elif "ssl.certificate.pem" in settings:
        # The ssl module reads files only. The directory is readable by this user alone.
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "certificate.pem")
            file.write_text(f"{settings['ssl.certificate.pem']}\n{settings.get('ssl.key.pem', '')}")
            context.load_cert_chain(file, password=password)
