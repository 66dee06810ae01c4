"""The keys of a token issuer: a JSON Web Key Set (RFC 7517) in a file or at a URL.

A file is looked at every second, and read when it has changed. A URL is fetched at the start, then
by a thread: every `refresh_ms`, and at once when a token names a key that is not in the set, but at
most once a minute for each name. A fetch that fails is repeated with growing delays; the keys stay
as they are.

There is no counterpart to Kafka's system property org.apache.kafka.sasl.oauthbearer.allowed.urls:
who can write the configuration can name any URL.

Kafka: JwksFileVerificationKeyResolver, RefreshingHttpsJwks, VerificationKeyResolverFactory.
"""

import json
import logging
import ssl
import threading
import time
import urllib.request
from collections import OrderedDict
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.serialization import Encoding

from odradek.broker.security.tls.stores import read_trust_store
from odradek.config.errors import ConfigError, invalid_value
from odradek.config.listener_settings import ListenerSettings

from .token_settings import IssuerKeys, Keys, KeySource

logger = logging.getLogger("odradek.login")

URL_KEY = "sasl.oauthbearer.jwks.endpoint.url"
TIMEOUT_S = 10.0
MAX_BYTES = 1 << 20
MISSING_NAMES = 16
MISSING_NAME_LENGTH = 1000
MISSING_EVERY_MS = 60_000

_FETCH_ERRORS = (OSError, ValueError, HTTPException)


def open_keys(
    source: KeySource, timer_ms: Callable[[], int], keys: Keys = (), *, wait: bool
) -> IssuerKeys:
    """The keys of a source. Raises ConfigError.

    With `wait`, a URL is fetched now, else by the first `refresh_if_due`: until then it has `keys`.
    """
    parts = urlsplit(source.url)
    match parts.scheme.lower():
        case "file":
            return KeysInFile(Path(unquote(parts.path)))
        case "http" | "https":
            return KeysAtUrl(source, timer_ms, keys, wait=wait)
    raise invalid_value(URL_KEY, source.url, "must begin with file:, http: or https:")


class KeysInFile:
    """Keys that are in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._modified_ns = self._time_of_change()
        self._unread = ""  # why the file could not be read
        try:
            self.keys = parse_keys(path.read_bytes())
        except (OSError, ValueError) as error:
            raise invalid_value(URL_KEY, str(path), f"no JWKS: {error}") from None

    def note_missing(self, key_id: str) -> None:
        """Do nothing: the file is looked at every second."""

    def refresh_if_due(self) -> None:
        """Read the file, if it has changed. The keys stay if it has become unreadable."""
        modified_ns = self._time_of_change()
        if modified_ns == self._modified_ns:
            self._unread = ""  # it is back as it was
            return
        try:
            data = self._path.read_bytes()
        except OSError as error:  # it is tried again, and reported once
            if str(error) != self._unread:
                logger.error("the keys in %s stay as they are: %s", self._path, error)
            self._unread = str(error)
            return
        self._modified_ns, self._unread = modified_ns, ""
        try:
            self.keys = parse_keys(data)
        except ValueError as error:
            logger.error("the keys in %s stay as they are: %s", self._path, error)

    def _time_of_change(self) -> int | None:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return None


class KeysAtUrl:
    """Keys that are fetched."""

    def __init__(
        self, source: KeySource, timer_ms: Callable[[], int], keys: Keys = (), *, wait: bool
    ) -> None:
        self.keys = keys
        self._source = source
        self._timer_ms = timer_ms
        self._context = None
        if source.url.lower().startswith("https:"):
            self._context = _context(source)
        self._missing: OrderedDict[str, int] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._due_ms = timer_ms()
        if wait:
            self._due_ms += source.refresh_ms
            try:
                self.keys = self._fetch()
            except _FETCH_ERRORS as error:
                raise ConfigError(f"{URL_KEY}: no keys from {source.url}: {error}") from None

    def note_missing(self, key_id: str) -> None:
        """Fetch the keys, unless that was done for this name within the last minute."""
        now_ms = self._timer_ms()
        if len(key_id) > MISSING_NAME_LENGTH or self._missing.get(key_id, now_ms) > now_ms:
            return
        self._missing[key_id] = now_ms + MISSING_EVERY_MS
        self._missing.move_to_end(key_id)
        if len(self._missing) > MISSING_NAMES:
            self._missing.popitem(last=False)
        self._refresh()

    def refresh_if_due(self) -> None:
        """Fetch the keys, if they were not yet fetched, or not for `refresh_ms`."""
        if self._timer_ms() >= self._due_ms:
            self._refresh()

    def _refresh(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self._due_ms = self._timer_ms() + self._source.refresh_ms
        # The thread may wait for a server that does not answer; the broker's end must not.
        self._thread = threading.Thread(target=self._fetch_patiently, name="jwks", daemon=True)
        self._thread.start()

    def _fetch_patiently(self) -> None:
        delay_ms, waited_ms = max(self._source.retry_ms, 1), 0  # any number may be configured
        while True:
            try:
                self.keys = self._fetch()
                return
            except _FETCH_ERRORS as error:
                if waited_ms >= self._source.retry_max_ms:
                    logger.warning("no keys from %s: %s", self._source.url, error)
                    return
            time.sleep(delay_ms / 1000)
            waited_ms += delay_ms
            delay_ms = min(2 * delay_ms, self._source.retry_max_ms)

    def _fetch(self) -> Keys:
        url = self._source.url
        with urllib.request.urlopen(url, timeout=TIMEOUT_S, context=self._context) as answer:
            return parse_keys(answer.read(MAX_BYTES))


def _context(source: KeySource) -> ssl.SSLContext:
    """How the server of the keys is verified. Raises ConfigError."""
    trusted = read_trust_store(ListenerSettings(dict(source.trust), URL_KEY))
    cadata = None
    if trusted is not None:
        cadata = b"".join(each.public_bytes(Encoding.DER) for each in trusted)
    context = ssl.create_default_context(cadata=cadata)
    # As in Java. The default of Python 3.13 refuses certificates without a key identifier, which
    # private authorities make.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def parse_keys(data: bytes) -> Keys:
    """The keys of a JWKS document. Raises ValueError."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("too deep") from None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError("it is no JSON object with a list of keys")
    return tuple(keys)
