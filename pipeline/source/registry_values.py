"""The column `value` as a struct, decoded with the schemas of a registry (`valueFormat`)."""

from collections.abc import Iterator

import pyarrow as pa

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.registry.values import RegistryError, ValueSchema, find_schema
from odradek.storage.topic_partition import TopicPartition

from .options import ReadOptions


class BadValueError(ValueError):
    """A value that cannot be decoded; the message says which."""


def registry_schema(options: ReadOptions) -> ValueSchema:
    """Ask the registry for the latest schema of the values. Raises OptionError."""
    topics = options.topics.names
    assert options.value_format != "binary"
    subject = options.value_subject or (f"{topics[0]}-value" if len(topics) == 1 else "")
    if not subject:
        raise OptionError(
            "valueFormat: several topics may be read: set valueSubject, e.g. orders-value"
        )
    try:
        return find_schema(options.value_format, subject, options.registry)
    except RegistryError as error:
        raise OptionError(f"valueFormat={options.value_format}: {error}") from error


def with_values(
    batches: Iterator[pa.RecordBatch],
    partition: TopicPartition,
    schema: ValueSchema,
    *,
    fail_on_bad_value: bool,
) -> Iterator[pa.RecordBatch]:
    """Decode the column `value` of batches, which must have the column `offset` for errors.

    Raises BadValueError, RegistryError.
    """
    decoder = schema.decoder()
    for batch in batches:
        decoded = decoder.decode(batch["value"])
        if fail_on_bad_value and decoded.errors.null_count < batch.num_rows:
            row = decoded.errors.is_valid().index(True).as_py()
            raise BadValueError(
                f"{partition} offset {batch['offset'][row]}: the value cannot be decoded: "
                f"{decoded.errors[row]} (badValues=null would continue)"
            )
        place = batch.schema.get_field_index("value")
        yield batch.set_column(place, pa.field("value", schema.type), decoded.values)
