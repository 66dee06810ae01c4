"""What the groups of commands share that speak Kafka's protocol without librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from odradek.protocol.errors import ErrorCode

from .client_config import client_settings
from .failure import ADVICE, CommandError
from .wire import WireCluster


class ClusterCommands:
    """Commands on connections to a cluster, which are closed at the end of a `with`."""

    def __init__(self, bootstrap: str | None, file: Path | None) -> None:
        """Connect. Raises CommandError."""
        self._cluster = WireCluster(client_settings(bootstrap, file))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()


def check_answer(what: str, error_code: int, message: str | None = None) -> None:
    """Raise CommandError, with advice where there is some, if a response has an error."""
    if not error_code:
        return
    try:
        name = ErrorCode(error_code).name
    except ValueError:
        name = f"error {error_code}"
    line = f"{what}: {message} ({name})" if message else f"{what}: {name}"
    advice = ADVICE.get(name)
    raise CommandError(f"{line.replace(chr(10), ' ')}; {advice}" if advice else line)
