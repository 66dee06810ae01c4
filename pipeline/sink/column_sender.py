"""Gives columns of Arrow to librdkafka in one call for thousands of rows.

confluent-kafka takes a Python object for each row, which costs about 1 µs. librdkafka itself takes
an array of structs (`rd_kafka_produce_batch` of rdkafka.h). numpy fills it with addresses in the
buffers of Arrow, and librdkafka copies the rows.

The function has neither timestamps nor headers. confluent-kafka reports no delivery of such rows,
not even one that failed. So only transactions may use it: they cannot be committed then.

It is called by ctypes in the library that confluent-kafka has loaded. The producer's handle, an
`rd_kafka_t *`, is the first field of confluent-kafka's Producer (`Handle` of confluent_kafka.h). A
version that moves it would end the process. So only versions are used with which
tests/pipeline/sink/test_column_sender.py has passed; with others, rows are sent one by one. The
option `sendColumns=false` does that, too.
"""

import ctypes
import functools
from collections.abc import Callable
from importlib.metadata import version
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, Producer, cimpl

from .rows import ANY_PARTITION, OutgoingBatch, WriteError

TESTED_VERSIONS: Final = frozenset({"2.8.0", "2.14.2", "2.15.0", "2.16.0", "2.16.1"})
_COPY_ROWS: Final = 0x2  # RD_KAFKA_MSG_F_COPY
# rd_kafka_message_t on machines with addresses of 64 bits. `err` is the answer.
_MESSAGE: Final = np.dtype(
    {
        "names": ["err", "value", "value_size", "key", "key_size"],
        "formats": [np.int32, np.uint64, np.uint64, np.uint64, np.uint64],
        "offsets": [0, 24, 32, 40, 48],
        "itemsize": 72,
    }
)
_Messages = npt.NDArray[np.void]


def send_columns(
    producer: Producer, batch: OutgoingBatch, wait: Callable[[], None]
) -> KafkaError | None:
    """Queue the rows of a batch, of which `has_only_columns` is true.

    Returns the error of the first row that librdkafka refuses, or None. `wait` is called when
    librdkafka's queue is full, and returns when there may be room. Raises WriteError if a row does
    not fit into the empty queue or if the topic's name is not valid, and what `wait` raises.
    """
    topic, values, keys = batch.topic, batch.value_column, batch.key_column
    assert topic is not None
    messages = np.zeros(len(values), _MESSAGE)
    if len(values):
        _fill(messages, "value", values)
        if keys is not None:
            _fill(messages, "key", keys)
    while len(messages):
        was_empty = not len(producer)
        errors = _produce(producer, topic, messages)
        first = int((errors != 0).argmax())  # of the rows with an error; 0 if there is none
        if errors[first] == 0:
            break
        if errors[first] != KafkaError._QUEUE_FULL:
            return KafkaError(int(errors[first]))
        if was_empty and first == 0:
            raise WriteError(f"a row for {topic} is too large to send")
        messages = messages[first:]  # librdkafka has refused all rows after it, too
        wait()
    return None


def _produce(producer: Producer, topic: str, messages: _Messages) -> npt.NDArray[np.int32]:
    """Return the rows' errors, 0 for none."""
    library = _library()
    handle = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__)
    of_topic = library.rd_kafka_topic_new(handle, topic.encode(), None)
    if of_topic is None:
        raise WriteError(f"{topic} cannot be the name of a topic")
    try:
        library.rd_kafka_produce_batch(
            of_topic, ANY_PARTITION, _COPY_ROWS, messages.ctypes.data, len(messages)
        )
    finally:
        library.rd_kafka_topic_destroy(of_topic)
    return messages["err"]


@functools.cache
def can_send_columns() -> bool:
    """Whether this is a tested confluent-kafka, and a machine as described above."""
    if version("confluent-kafka") not in TESTED_VERSIONS:
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        _library()
    except (AttributeError, OSError):
        return False
    return True


@functools.cache
def _library() -> ctypes.CDLL:
    """Return the librdkafka of confluent-kafka's module. Raises OSError, AttributeError."""
    library = ctypes.CDLL(cimpl.__file__)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    library.rd_kafka_topic_new.restype = pointer
    library.rd_kafka_topic_new.argtypes = (pointer, text, pointer)
    library.rd_kafka_topic_destroy.argtypes = (pointer,)
    library.rd_kafka_topic_destroy.restype = None
    library.rd_kafka_produce_batch.argtypes = (pointer, ctypes.c_int32, number, pointer, number)
    return library


def _fill(messages: _Messages, part: str, column: pa.Array) -> None:
    """Set the addresses and sizes of a part of the rows. A null has address 0."""
    _, offsets, data = column.buffers()
    wide = pa.types.is_large_binary(column.type)
    edges = np.frombuffer(offsets, np.int64 if wide else np.int32)
    edges = edges[column.offset : column.offset + len(column) + 1].astype(np.uint64)
    # An empty value is no null: any address but 0 will do.
    first = data.address if data is not None and data.address else messages.ctypes.data
    messages[part] = first + edges[:-1]
    messages[f"{part}_size"] = np.diff(edges)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        messages[part][nulls] = 0
        messages[f"{part}_size"][nulls] = 0
