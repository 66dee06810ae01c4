"""The options of `format("odradek")`. Names, defaults and checks are those of Spark's Kafka source.

Names are case-insensitive. Unlike Spark's source, this one refuses unknown names: a misspelt
`endingOffset` would silently read everything. Options that begin with `kafka.` are settings of the
client, if a broker is read (client_config.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from odradek.pipeline import option_values as values
from odradek.pipeline.client_config import client_config
from odradek.pipeline.option_values import OptionError, canonical_options
from odradek.pipeline.registry.formats import REGISTRY_FORMATS, RegistryFormat

from .positions import (
    EARLIEST,
    LATEST,
    AtTime,
    ByOffset,
    ByTime,
    Everywhere,
    Position,
    parse_assigned,
    parse_offsets,
)
from .topics import Topics, matching, subscribed

ValueFormat = Literal["binary"] | RegistryFormat
_TOPIC_OPTIONS = ("assign", "subscribe", "subscribePattern")
_STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
# Options of Spark's source that have no effect here.
_IGNORED = ("groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs")
_SCALAR: Mapping[str, tuple[str, Callable[[str, str], int]]] = {
    "failOnDataLoss": ("fail_on_data_loss", values.boolean),
    "includeHeaders": ("include_headers", values.boolean),
    "verifyCrc": ("verify_crc", values.boolean),
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", values.positive),
    "minOffsetsPerTrigger": ("min_offsets_per_trigger", values.positive),
    "maxTriggerDelay": ("max_trigger_delay_ms", values.duration_ms),
    "minPartitions": ("min_partitions", values.positive),
    "maxRecordsPerPartition": ("max_records_per_partition", values.positive),
    "maxSplitBytes": ("max_split_bytes", values.size_bytes),
    "kafkaConsumer.pollTimeoutMs": ("poll_timeout_ms", values.positive),
}
# The options, each with a line of help. Those of Spark's Kafka source mean what they mean there.
OPTIONS: Final[Mapping[str, str]] = {
    "assign": 'The partitions to read: {"orders": [0, 1]}.',
    "subscribe": "The topics to read, separated by commas.",
    "subscribePattern": "The topics to read, as a regular expression.",
    "startingTimestamp": "Where to start in every partition: milliseconds since 1970.",
    "startingOffsetsByTimestamp": 'Where to start, by time: {"orders": {"0": 1700000000000}}.',
    "startingOffsets": 'earliest, latest, or offsets: {"orders": {"0": 23, "1": -2}}. -2 is '
    "earliest, -1 latest. Default: earliest in a batch query, latest in a stream.",
    "endingTimestamp": "Where a batch query ends: milliseconds since 1970.",
    "endingOffsetsByTimestamp": "Where a batch query ends, by time.",
    "endingOffsets": "Where a batch query ends. Default: latest.",
    "startingOffsetsByTimestampStrategy": "What to do where no record is as young as the starting "
    "time: error (default) or latest.",
    "failOnDataLoss": "Whether the query fails if records were deleted before they could be read. "
    "Default: true.",
    "includeHeaders": "Whether rows have the column headers. Default: false.",
    "isolationLevel": "As kafka.isolation.level: read_uncommitted (default) or read_committed.",
    "maxOffsetsPerTrigger": "The most offsets of a batch of a stream.",
    "minOffsetsPerTrigger": "A batch of a stream waits until there are this many offsets.",
    "maxTriggerDelay": "How long it waits for them. Default: 15m.",
    "minPartitions": "The least number of Spark partitions.",
    "maxRecordsPerPartition": "The most records per Spark partition. Default: none in a batch "
    "query, 1,000,000 in a stream, which is divided by offsets only.",
    "kafkaConsumer.pollTimeoutMs": "How long a task waits for the broker. Default: 120000.",
    "path": "Log directories, separated by commas.",
    "mode": "files, broker, or auto (default): files if path is readable here.",
    "view": "records (default), or batches: a row for each batch, from its header; only from "
    "files.",
    "verifyCrc": "Whether checksums are verified. Default: true.",
    "maxSplitBytes": "Bytes of log per task of a batch query, approximately. Default: 64m.",
    "valueFormat": "binary (default), or avro, protobuf, json-schema: the column value is a "
    "struct, decoded with the schemas of a registry. Needs odradek[registry].",
    "valueSubject": "The subject whose latest schema, when the query starts, names the fields. "
    "Default: the topic's name and -value.",
    "badValues": "What a value becomes that cannot be decoded: fail (default) ends the query, null "
    "makes it null.",
    "schema.registry.url": "The registry, for valueFormat. Other settings of confluent-kafka's "
    "client have the prefix schema.registry., too: basic.auth.user.info, ssl.ca.location, …",
    **dict.fromkeys(_IGNORED, "Accepted, without effect."),
}
# In a stream. Each further task costs some 50 ms.
_RECORDS_PER_TASK = 1_000_000
REFUSED = {
    "kafka.auto.offset.reset": "set the source option 'startingOffsets' to 'earliest' or 'latest'",
    "kafka.key.deserializer": "keys come as bytes; cast them in the query",
    "kafka.value.deserializer": "values come as bytes; cast them in the query",
    "kafka.enable.auto.commit": "offsets are kept in the checkpoint and never committed to Kafka",
}
_BOOTSTRAP = "kafka.bootstrap.servers"
_REGISTRY = "schema.registry."
_VALUE_OPTIONS = ("valueSubject", "badValues")
_ISOLATION = "kafka.isolation.level"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The parsed options."""

    topics: Topics
    starting: Position
    ending: Position
    latest_if_no_match: bool = False
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    read_committed: bool = False
    directories: tuple[Path, ...] = ()
    mode: str = "auto"
    batch_view: bool = False
    verify_crc: bool = True
    max_split_bytes: int = 64 << 20
    poll_timeout_ms: int = 120_000
    client: Mapping[str, str] = field(default_factory=dict)
    value_format: ValueFormat = "binary"
    value_subject: str = ""
    null_for_bad_value: bool = False
    registry: Mapping[str, str] = field(default_factory=dict)


def read_options(given: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
    """Parse the options. `streaming` is None if that is not known yet. Raises OptionError."""
    if "bootstrap.servers" in map(str.lower, given):
        raise OptionError(f"Option 'bootstrap.servers' must be written '{_BOOTSTRAP}'")
    registry = {
        name.lower().removeprefix(_REGISTRY): text
        for name, text in given.items()
        if name.lower().startswith(_REGISTRY)
    }
    rest = {name: text for name, text in given.items() if not name.lower().startswith(_REGISTRY)}
    texts = canonical_options(rest, OPTIONS, REFUSED)
    mode, directories = _mode_and_directories(texts)
    options = ReadOptions(
        topics=_topics(texts),
        starting=_position(texts, _STARTING, default=LATEST if streaming else EARLIEST),
        ending=_position(texts, _ENDING, default=LATEST),
        directories=directories,
        mode=mode,
        client=client_config(texts),
        read_committed=_is_read_committed(texts),
        batch_view=values.one_of("view", texts.get("view", "records"), ("records", "batches"))
        == "batches",
        latest_if_no_match=values.one_of(
            "startingOffsetsByTimestampStrategy",
            texts.get("startingOffsetsByTimestampStrategy", "error"),
            ("error", "latest"),
        )
        == "latest",
        **_scalar_options(texts),
        **_value_options(texts, registry),
    )
    if streaming:
        _check_stream(texts, options)
        if options.max_records_per_partition is None:
            options = replace(options, max_records_per_partition=_RECORDS_PER_TASK)
    elif streaming is not None:
        _check_batch(options)
    if options.batch_view and options.mode == "broker":
        raise OptionError("view=batches reads files: set 'path', and not mode=broker")
    return options


def _topics(texts: Mapping[str, str]) -> Topics:
    names = [name for name in _TOPIC_OPTIONS if name in texts]
    if not names:
        raise OptionError(
            f"One of the following options must be specified: {', '.join(_TOPIC_OPTIONS)}"
        )
    if len(names) > 1:
        raise OptionError(
            f"Only one of the following options can be specified: "
            f"{', '.join(_TOPIC_OPTIONS)}; given: {' and '.join(names)}"
        )
    name, text = names[0], texts[names[0]]
    if name == "subscribe":
        return subscribed(text)
    if name == "subscribePattern":
        return matching(text)
    assigned = parse_assigned(name, text)
    if not assigned:
        raise OptionError(
            f"No topicpartitions to assign as specified value for option 'assign' is '{text}'"
        )
    return Topics(partitions=assigned)


def _position(texts: Mapping[str, str], names: tuple[str, str, str], *, default: int) -> Position:
    """Parse the most precise of the three options, as Spark's source does."""
    at_time, by_time, by_offset = names
    if at_time in texts:
        return AtTime(_not_negative(at_time, values.integer(at_time, texts[at_time])))
    if by_time in texts:
        times = parse_offsets(by_time, texts[by_time])
        for timestamp_ms in times.values():
            _not_negative(by_time, timestamp_ms)
        return ByTime(times)
    text = texts.get(by_offset, "").strip()
    if not text:
        return Everywhere(default)
    if text.lower() in ("earliest", "latest"):
        return Everywhere(EARLIEST if text.lower() == "earliest" else LATEST)
    offsets = parse_offsets(by_offset, text)
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise OptionError(f"{by_offset}: {partition}: {offset} is less than -2 (earliest)")
    return ByOffset(offsets)


def _not_negative(name: str, timestamp_ms: int) -> int:
    if timestamp_ms < 0:
        raise OptionError(f"{name}: a timestamp must not be negative: {timestamp_ms}")
    return timestamp_ms


def _mode_and_directories(texts: Mapping[str, str]) -> tuple[str, tuple[Path, ...]]:
    mode = values.one_of("mode", texts.get("mode", "auto"), ("files", "broker", "auto"))
    parts = (part.strip().removeprefix("file://") for part in texts.get("path", "").split(","))
    # Absolute, because workers may run in another directory than the driver.
    directories = tuple(Path(part).absolute() for part in parts if part)
    if mode == "files" and not directories:
        raise OptionError("mode=files requires the option 'path': the broker's log directories")
    if (mode == "broker" or not directories) and not texts.get(_BOOTSTRAP):
        raise OptionError(f"Option '{_BOOTSTRAP}' must be specified unless 'path' is read")
    return mode, directories


def _is_read_committed(texts: Mapping[str, str]) -> bool:
    levels = [texts[name] for name in (_ISOLATION, "isolationLevel") if name in texts]
    both = ("read_uncommitted", "read_committed")
    chosen = {values.one_of(_ISOLATION, level, both) for level in levels}
    if len(chosen) > 1:
        raise OptionError(f"{_ISOLATION} and isolationLevel contradict each other")
    return chosen == {"read_committed"}


def _scalar_options(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of ReadOptions that one option sets, for the options that are given."""
    return {
        field: parse(name, texts[name]) for name, (field, parse) in _SCALAR.items() if name in texts
    }


def _value_options(texts: Mapping[str, str], registry: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of ReadOptions about the decoding of values."""
    kind = values.one_of(
        "valueFormat", texts.get("valueFormat", "binary"), ("binary", *REGISTRY_FORMATS)
    )
    if kind == "binary":
        without = [name for name in _VALUE_OPTIONS if name in texts] + [
            _REGISTRY + name for name in registry
        ]
        if without:
            raise OptionError(f"{without[0]} has no effect without valueFormat")
        return {}
    if not registry.get("url"):
        raise OptionError(f"valueFormat={kind} requires the option '{_REGISTRY}url'")
    if texts.get("view", "").strip().lower() == "batches":
        raise OptionError("view=batches has no values: leave out valueFormat")
    bad = values.one_of("badValues", texts.get("badValues", "fail"), ("fail", "null"))
    return {
        "value_format": kind,
        "value_subject": texts.get("valueSubject", "").strip(),
        "null_for_bad_value": bad == "null",
        "registry": registry,
    }


def _check_stream(texts: Mapping[str, str], options: ReadOptions) -> None:
    for name in _ENDING:
        if name in texts:
            raise OptionError(f"{name} is not valid in streaming queries")
    at_most, at_least = options.max_offsets_per_trigger, options.min_offsets_per_trigger
    if at_most is not None and at_least is not None and at_least > at_most:
        raise OptionError(
            f"maxOffsetsPerTrigger ({at_most}) must not be less than "
            f"minOffsetsPerTrigger ({at_least})"
        )


def _check_batch(options: ReadOptions) -> None:
    _check_not("starting", options.starting, LATEST)
    _check_not("ending", options.ending, EARLIEST)


def _check_not(edge: str, position: Position, forbidden: int) -> None:
    word = "latest" if forbidden == LATEST else "earliest"
    if position == Everywhere(forbidden):
        raise OptionError(f"{edge} offset can't be {word} for batch queries")
    if isinstance(position, ByOffset):
        for partition, offset in position.offsets.items():
            if offset == forbidden:
                raise OptionError(
                    f"{edge}Offsets for {partition} can't be {word} for batch queries"
                )
