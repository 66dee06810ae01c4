"""The options of writing: those of Spark's Kafka sink, and a few more.

Options that begin with `kafka.` are settings of the client (client_config.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from odradek.pipeline import option_values as values
from odradek.pipeline.client_config import client_config
from odradek.pipeline.option_values import OptionError, canonical_options

_BOOTSTRAP = "kafka.bootstrap.servers"
# Options of reading, or of Spark itself, that have no effect on writing.
_IGNORED = frozenset({"includeheaders", "checkpointlocation", "queryname"})
# The options, each with a line of help.
OPTIONS: Final[Mapping[str, str]] = {
    "topic": "The topic of all rows. Without it, the column topic names each row's topic.",
    "delivery": "exactly-once (default), which needs transactions; or at-least-once.",
    "changedRows": "If a task of a stream has written its batch, and runs again with fewer rows: "
    "fail (default), or keep-written: what it wrote stays, and nothing is added. Only for "
    "odradek's source, when it has lost records in between (compacted topics, retention), and "
    "queries without shuffle: a source that divides the batch into other tasks now, as files may "
    "be, would write rows twice.",
    "transactionalIdPrefix": "The prefix of transactional ids and their groups. Default: odradek.",
    "txnAppId": "The name of a batch query that may run again, as in foreachBatch. The same name, "
    "txnVersion and rows are written once. Each query and each topic needs a name of its own, "
    "and none may be another with a hyphen and a number added: not orders and orders-1.",
    "txnVersion": "The number of the batch, which only grows: in foreachBatch, the id of the "
    "batch.",
    "repeatTimeout": "A batch runs again, and an earlier run has written some of its tasks. The "
    "other tasks wait until the rows of those were compared. This is the longest wait for the next "
    "comparison. Default: 60s.",
    "repeatableTasks": "true: the tasks of a batch that runs again do not wait (repeatTimeout), "
    "because the source divides a batch into the same tasks whenever it runs, on any number of "
    "cores. Default: false.",
    "sendColumns": "false: the client takes all rows one by one, which is slower. Default: true, "
    "with versions of confluent-kafka that are tested; the client takes columns where it can.",
    "includeTimestamp": "true: the column timestamp becomes the records' timestamp. Otherwise "
    "(default) it is ignored, as by Spark's sink.",
}
REFUSED = {
    "kafka.key.serializer": "keys are written as they are: bytes, or text as UTF-8",
    "kafka.value.serializer": "values are written as they are: bytes, or text as UTF-8",
    "kafka.transactional.id": "each task has its own; set 'transactionalIdPrefix'",
    "kafka.enable.idempotence": "without it, a retry by the client could write a record twice",
}


class Delivery(StrEnum):
    """How often a row is written if its task runs more than once."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class NamedBatch(NamedTuple):
    """A batch query that writes the same if it runs again with the same name and version."""

    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The parsed options; `client` is librdkafka's configuration."""

    client: Mapping[str, str]
    topic: str | None = None
    delivery: Delivery = Delivery.EXACTLY_ONCE
    prefix: str = "odradek"
    with_timestamp: bool = False
    keep_written: bool = False
    named_batch: NamedBatch | None = None
    repeat_timeout_s: float = 60.0
    repeatable_tasks: bool = False
    send_columns: bool = True


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options. Raises OptionError."""
    if "path" in map(str.lower, given):
        raise OptionError("Option 'path' is only for reading: records are written to a broker")
    texts = canonical_options(given, OPTIONS, REFUSED, ignored=_IGNORED, purpose=" for writing")
    if not texts.get(_BOOTSTRAP):
        raise OptionError(f"Option '{_BOOTSTRAP}' is required: the broker to write to")
    word = texts.get("delivery", Delivery.EXACTLY_ONCE)
    delivery = Delivery(values.one_of("delivery", word, tuple(Delivery)))
    changed = texts.get("changedRows", "fail")
    return WriteOptions(
        client=client_config(texts),
        topic=texts.get("topic"),
        delivery=delivery,
        prefix=texts.get("transactionalIdPrefix", "odradek"),
        keep_written=values.one_of("changedRows", changed, ("fail", "keep-written"))
        == "keep-written",
        with_timestamp=values.boolean("includeTimestamp", texts.get("includeTimestamp", "false")),
        named_batch=_named_batch(texts, delivery),
        repeat_timeout_s=values.duration_ms("repeatTimeout", texts.get("repeatTimeout", "60s"))
        / 1000,
        send_columns=values.boolean("sendColumns", texts.get("sendColumns", "true")),
        repeatable_tasks=values.boolean("repeatableTasks", texts.get("repeatableTasks", "false")),
    )


def _named_batch(texts: Mapping[str, str], delivery: Delivery) -> NamedBatch | None:
    name, version = (texts.get(option, "").strip() for option in ("txnAppId", "txnVersion"))
    if not name and not version:
        return None
    if not name or not version:
        raise OptionError("txnAppId and txnVersion need each other: set both, or none")
    if delivery is Delivery.AT_LEAST_ONCE:
        raise OptionError("txnAppId has no effect with delivery=at-least-once")
    number = values.integer("txnVersion", version)
    if number < 0:
        raise OptionError(f"txnVersion must be 0 or more, not {version!r}")
    return NamedBatch(name, number)
