"""The options of writing: those of Spark's Kafka sink, and a few more.

topic                  where all rows go; without it, each to the topic of its column `topic`
kafka.*                for the client (client_config.py); kafka.bootstrap.servers is needed
delivery               auto: exactly-once where the broker has transactions; exactly-once;
                       at-least-once
transactionalIdPrefix  what transactional ids begin with, and the groups beside them: odradek
includeTimestamp       true: the column `timestamp` is the records'; else it is ignored, as by
                       Spark's sink
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .. import option_values as values
from ..client_config import PREFIX, ClientConfigError, client_config
from ..option_values import OptionError

_BOOTSTRAP = "kafka.bootstrap.servers"
# Options of reading, or of Spark itself, that have no meaning here.
_IGNORED = frozenset({"includeheaders", "checkpointlocation", "queryname"})
_KNOWN: Final = {
    name.lower(): name
    for name in ("topic", "delivery", "transactionalIdPrefix", "includeTimestamp")
}
_REFUSED = {
    "kafka.key.serializer": "keys are written as they are: bytes, or text as UTF-8",
    "kafka.value.serializer": "values are written as they are: bytes, or text as UTF-8",
    "kafka.transactional.id": "every task has its own; set 'transactionalIdPrefix'",
    "kafka.enable.idempotence": "a retry of the client's must not write a record twice",
}


class Delivery(StrEnum):
    """How often a row arrives that a task is run more than once for."""

    AUTO = "auto"
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What the options ask for; `client` is librdkafka's configuration."""

    client: Mapping[str, str]
    topic: str | None = None
    delivery: Delivery = Delivery.AUTO
    prefix: str = "odradek"
    with_timestamp: bool = False


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """What these options ask for. Raises OptionError."""
    _check_names(given)
    texts = {_KNOWN.get(name.lower(), name.lower()): text for name, text in given.items()}
    if not texts.get(_BOOTSTRAP):
        raise OptionError(f"Option '{_BOOTSTRAP}' must be specified: the broker to write to")
    try:
        client = client_config(texts)
    except ClientConfigError as error:
        raise OptionError(str(error)) from None
    delivery = values.one_of("delivery", texts.get("delivery", "auto"), tuple(Delivery))
    return WriteOptions(
        client=client,
        topic=texts.get("topic"),
        delivery=Delivery(delivery),
        prefix=texts.get("transactionalIdPrefix", "odradek"),
        with_timestamp=values.boolean("includeTimestamp", texts.get("includeTimestamp", "false")),
    )


def _check_names(given: Mapping[str, str]) -> None:
    for name in map(str.lower, given):
        if name in _REFUSED:
            raise OptionError(f"Option '{name}' is not supported: {_REFUSED[name]}")
        if name == "path":
            raise OptionError("Option 'path' is for reading: records are written to a broker")
        if not name.startswith(PREFIX) and name not in _KNOWN and name not in _IGNORED:
            raise OptionError(
                f"There is no option '{name}' for writing; there are {', '.join(_KNOWN.values())}"
                f" and the client's own, which begin with '{PREFIX}'"
            )
