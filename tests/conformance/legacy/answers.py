"""What an answer says, as plain values that two brokers can be compared by.

Records are taken apart: messages and wrappers of the old sets, batches and their records of today.
What may differ is left out here, and only here:

- what a compressor made: what is in it counts, and so the length of an answer does not;
- bytes behind the last whole message: Kafka's answer is as long as the batches were before they
  were converted. What is shorter now is filled up with the beginning of a message that never ends;
  what is longer is cut, and odradek, which does not cut, may go on from there: see `cut_alike`;
- words of an error message, and whether there are any where Kafka has none;
- times of the broker's clock, which the requests here never name: `now`;
- the order of topics and of partitions, where a request has several: Kafka keeps them in sets.
"""

import importlib
from typing import Any

import msgspec

from odradek.protocol.batch_header import check_crc, read_header
from odradek.protocol.record import read_records
from odradek.protocol.schema import Message
from tests.conformance.legacy.talk import CLOSED, STILL_OPEN, Line
from tests.conformance.transcript import WORDS
from tests.support.message_sets import START_MS, OldMessage, Wrapper, taken_apart

FIRST_OF_TODAY = 4  # versions of Fetch below it give message sets
A_YEAR_MS = 365 * 24 * 3600 * 1000
NOW = "now"
CUT = {"cut": True}
FILLING = b"\xff" * 8  # offset -1
BATCH_OVERHEAD = 12  # base offset and length
LISTS_OF_PARTS = frozenset({"responses", "topics", "partitions", "partition_responses"})


def seen(line: Line) -> Any:
    """The answer of a line as a word, or as a dict of its fields."""
    if line.answer in (CLOSED, STILL_OPEN):
        return line.answer
    return _plain(decoded(line), message_sets=line.version < FIRST_OF_TODAY)


def decoded(line: Line) -> Message:
    """The answer as a message."""
    return response_class(line).decode(bytes.fromhex(line.answer), line.version)


def response_class(line: Line) -> type[Message]:
    """The class of the answer to a line's request."""
    module = "".join(f"_{c.lower()}" if c.isupper() else c for c in line.api)[1:]
    found = importlib.import_module(f"odradek.protocol.messages.{module.removesuffix('_request')}")
    response: type[Message] = getattr(found, line.api.replace("Request", "Response"))
    return response


def _plain(value: Any, *, message_sets: bool) -> Any:
    if isinstance(value, msgspec.Struct):
        return {
            name: _field(name, getattr(value, name), message_sets=message_sets)
            for name in value.__struct_fields__
        }
    if isinstance(value, list):
        return [_plain(one, message_sets=message_sets) for one in value]
    return value


def _field(name: str, value: Any, *, message_sets: bool) -> Any:
    if name == "records" and value is not None:
        return old_records(bytes(value)) if message_sets else batches(bytes(value))
    if name == "error_message" and value:
        return WORDS
    if name == "log_append_time_ms":
        return _moment(value)
    plain = _plain(value, message_sets=message_sets)
    return sorted(plain, key=repr) if name in LISTS_OF_PARTS else plain


def old_records(data: bytes) -> list[Any]:
    """A message set: a dict for each message, and one for the piece of a message that was cut."""
    messages, tail = taken_apart(data)
    plain = [_old_record(one) for one in messages]
    return plain if not tail or tail.startswith(FILLING[: len(tail)]) else [*plain, CUT]


def cut_alike(theirs: Any, ours: Any) -> tuple[Any, Any]:
    """Both answers; where Kafka cut the records, ours end there too."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        pairs = {name: cut_alike(theirs[name], ours[name]) for name in theirs.keys() & ours.keys()}
        return (
            theirs | {name: pair[0] for name, pair in pairs.items()},
            ours | {name: pair[1] for name, pair in pairs.items()},
        )
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return theirs, ours
    if CUT in theirs and len(ours) >= len(theirs):
        whole = theirs[: theirs.index(CUT)]
        return whole, ours[: len(whole)]
    pairs_of_items = [cut_alike(*pair) for pair in zip(theirs, ours, strict=False)]
    count = len(pairs_of_items)
    return (
        [*(pair[0] for pair in pairs_of_items), *theirs[count:]],
        [*(pair[1] for pair in pairs_of_items), *ours[count:]],
    )


def _old_record(one: OldMessage | Wrapper) -> dict[str, Any]:
    fields = one._asdict() | {"timestamp_ms": _moment(one.timestamp_ms)}
    if isinstance(one, Wrapper):
        fields["inside"] = [_old_record(each) for each in one.inside]
    return fields


def batches(data: bytes) -> list[Any]:
    """Batches of magic 2: a dict of the header's fields for each, with the records."""
    found: list[Any] = []
    while len(data) >= BATCH_OVERHEAD:
        header = read_header(data)
        if header.size_bytes > len(data):
            break
        batch, data = data[: header.size_bytes], data[header.size_bytes :]
        check_crc(batch, header)
        fields = header._asdict()
        for name in ("crc", "batch_length"):
            fields.pop(name)
        for name in ("base_timestamp", "max_timestamp"):
            fields[name] = _moment(fields[name])
        fields["records"] = [
            (_moment(one.timestamp_ms), one.key, one.value, one.headers)
            for one in read_records(batch, header=header)
        ]
        found.append(fields)
    return found


def _moment(time_ms: int) -> int | str:
    """The time, unless it is the broker's: the requests are dated 2023, or much later."""
    return NOW if START_MS + A_YEAR_MS < time_ms < START_MS + 99 * A_YEAR_MS else time_ms
