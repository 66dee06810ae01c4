"""What the options of writing mean, and which are refused."""

import pytest

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.write_options import Delivery, write_options

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}


def test_options_are_understood_in_any_case() -> None:
    found = write_options(
        {
            "KAFKA.Bootstrap.Servers": "localhost:9092",
            "kafka.linger.ms": "5",
            "Topic": "orders",
            "DELIVERY": "Exactly-Once",
            "transactionalidprefix": "shop",
            "includeTimestamp": "TRUE",
        }
    )
    assert found.client == {"bootstrap.servers": "localhost:9092", "linger.ms": "5"}
    assert (found.topic, found.delivery, found.prefix) == ("orders", "exactly-once", "shop")
    assert found.with_timestamp


def test_without_options_rows_are_written_exactly_once() -> None:
    found = write_options(BROKER)
    assert (found.topic, found.delivery, found.prefix) == (None, Delivery.EXACTLY_ONCE, "odradek")
    assert not found.with_timestamp


def test_rows_that_have_changed_are_an_error_unless_what_is_written_is_kept() -> None:
    assert not write_options(BROKER).keep_written
    assert write_options({**BROKER, "changedRows": "keep-written"}).keep_written
    with pytest.raises(OptionError, match="changedRows"):
        write_options({**BROKER, "changedRows": "ignore"})


def test_options_of_spark_itself_are_ignored() -> None:
    said = {"checkpointLocation": "/somewhere", "queryName": "q", "includeHeaders": "true"}
    assert write_options({**BROKER, **said}) == write_options(BROKER)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"delivery": "auto"}, "delivery must be one of exactly-once, at-least-once"),
        ({"kafka.transactional.id": "x"}, "transactionalIdPrefix"),
        ({"kafka.value.serializer": "x"}, "bytes, or text"),
        ({"kafka.enable.idempotence": "false"}, "could write a record twice"),
        ({"topics": "orders"}, "Unknown option 'topics' for writing. Options are topic, "),
        ({"path": "/data"}, "for reading"),
        ({"includeTimestamp": "1"}, "true or false"),
        ({"txnAppId": "a"}, "txnAppId and txnVersion need each other"),
        ({"txnVersion": "0"}, "txnAppId and txnVersion need each other"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "txnVersion must be 0 or more"),
        ({"txnAppId": "a", "txnVersion": "x"}, "txnVersion must be a whole number"),
        (
            {"txnAppId": "a", "txnVersion": "1", "delivery": "at-least-once"},
            "txnAppId has no effect with delivery=at-least-once",
        ),
        ({"repeatTimeout": "soon"}, "repeatTimeout must be a duration"),
        ({"kafka.ssl.truststore.location": "/x.jks"}, "JKS"),
    ],
)
def test_invalid_write_options_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        write_options({**BROKER, **given})


def test_a_batch_query_that_may_run_again_has_a_name_and_a_number() -> None:
    found = write_options({**BROKER, "txnappid": "copy-of-orders", "TxnVersion": "7"})
    assert found.named_batch == ("copy-of-orders", 7)
    assert write_options(BROKER).named_batch is None


def test_how_a_batch_runs_again() -> None:
    found = write_options({**BROKER, "repeatTimeout": "5m", "repeatableTasks": "true"})
    assert (found.repeat_timeout_s, found.repeatable_tasks) == (300, True)
    found = write_options(BROKER)
    assert (found.repeat_timeout_s, found.repeatable_tasks) == (60, False)
