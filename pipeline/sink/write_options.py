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

from odradek.pipeline import option_values as values
from odradek.pipeline.client_config import client_config
from odradek.pipeline.option_names import texts_by_name
from odradek.pipeline.option_values import OptionError

_BOOTSTRAP = "kafka.bootstrap.servers"
# Options of reading, or of Spark itself, that have no meaning here.
_IGNORED = frozenset({"includeheaders", "checkpointlocation", "queryname"})
_NAMES: Final = ("topic", "delivery", "transactionalIdPrefix", "includeTimestamp")
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
    if "path" in map(str.lower, given):
        raise OptionError("Option 'path' is for reading: records are written to a broker")
    texts = texts_by_name(given, _NAMES, _REFUSED, passed_over=_IGNORED, purpose=" for writing")
    if not texts.get(_BOOTSTRAP):
        raise OptionError(f"Option '{_BOOTSTRAP}' must be specified: the broker to write to")
    delivery = values.one_of("delivery", texts.get("delivery", "auto"), tuple(Delivery))
    return WriteOptions(
        client=client_config(texts),
        topic=texts.get("topic"),
        delivery=Delivery(delivery),
        prefix=texts.get("transactionalIdPrefix", "odradek"),
        with_timestamp=values.boolean("includeTimestamp", texts.get("includeTimestamp", "false")),
    )
