"""Finds out which guarantee the records of a run had.

With `delivery=auto`, each task of the sink finds out whether the broker has transactions. If it
has, the task commits an offset in each transaction, to a group named `<prefix>-<query>-<task>`. So
the existence of such a group shows that transactions were used.
"""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from odradek.pipeline.sink.task_writing import task_name_prefix
from odradek.pipeline.sink.write_options import Delivery, WriteOptions

_TIMEOUT_S = 30.0


def delivery_seen(sink: WriteOptions, query: str, written: int) -> Delivery:
    """Return the guarantee of the query with that id; AUTO if it cannot be determined."""
    if sink.delivery is not Delivery.AUTO or not written:
        return sink.delivery
    admin = AdminClient({"log_level": 3, **sink.client})
    try:
        listed = admin.list_consumer_groups(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S)
    except (KafkaException, TimeoutError):
        return Delivery.AUTO
    prefix = task_name_prefix(sink, query)
    found = any(group.group_id.startswith(prefix) for group in listed.valid)
    if not found and listed.errors:
        return Delivery.AUTO
    return Delivery.EXACTLY_ONCE if found else Delivery.AT_LEAST_ONCE
