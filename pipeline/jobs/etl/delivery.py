"""What was promised for the records of a run.

With `delivery=auto` the sink's tasks find out whether the broker has transactions. What they have
found is seen by what they leave: with each transaction a task commits an offset in a group of its
own, `<prefix>-<query>-<task>`.
"""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from odradek.pipeline.sink.task_writing import names_of
from odradek.pipeline.sink.write_options import Delivery, WriteOptions

_TIMEOUT_S = 30.0


def delivery_seen(sink: WriteOptions, query: str, written: int) -> Delivery:
    """Of the query with that id; AUTO where it cannot be told."""
    if sink.delivery is not Delivery.AUTO or not written:
        return sink.delivery
    admin = AdminClient({"log_level": 3, **sink.client})
    try:
        listed = admin.list_consumer_groups(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S)
    except (KafkaException, TimeoutError):
        return Delivery.AUTO
    own = names_of(sink, query)
    found = any(group.group_id.startswith(own) for group in listed.valid)
    if not found and listed.errors:
        return Delivery.AUTO
    return Delivery.EXACTLY_ONCE if found else Delivery.AT_LEAST_ONCE
