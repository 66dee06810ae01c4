"""Settings of the Kafka client, as Spark's Kafka source and sink take them.

Options that begin with `kafka.` are settings of Kafka's Java client. They are translated to
librdkafka's (config/java_client.py), and those that are ignored are named once in a warning.
"""

import functools
import logging
from collections.abc import Mapping

from odradek.config.errors import ConfigError
from odradek.config.java_client import IGNORED, librdkafka_settings

from .option_values import CLIENT_PREFIX, OptionError

_logger = logging.getLogger(__name__)

# For a producer that sends much. Only the broker limits the size of a record.
PRODUCER_SETTINGS: Mapping[str, str | int] = {
    "linger.ms": 100,  # larger batches; a flush does not wait for it
    "reconnect.backoff.ms": 10,  # a producer lives for one task, and connects twice
    "log_level": 3,
    "message.max.bytes": 1_000_000_000,
    "queue.buffering.max.kbytes": 64 << 10,
    "queue.buffering.max.messages": 200_000,
}


class ClientConfigError(OptionError):
    """A setting that librdkafka cannot use; the message says what to use instead."""


def client_config(options: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings, from options whose names begin with `kafka.`, in any case.

    Raises ClientConfigError.
    """
    java = {
        name.lower().removeprefix(CLIENT_PREFIX): value
        for name, value in options.items()
        if name.lower().startswith(CLIENT_PREFIX)
    }
    try:
        settings = librdkafka_settings(java, CLIENT_PREFIX)
    except ConfigError as error:
        raise ClientConfigError(str(error)) from None
    ignored = sorted(java.keys() & IGNORED)
    if ignored:
        _warn_ignored(", ".join(CLIENT_PREFIX + name for name in ignored))
    return settings


@functools.cache
def _warn_ignored(names: str) -> None:
    """Name them once in each process."""
    _logger.warning("ignored, because only Kafka's Java client has these settings: %s", names)
