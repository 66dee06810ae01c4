"""Consumer groups go from Apache Kafka to odradek and back, in the log that the other wrote."""

from pathlib import Path

import pytest

from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.java_tools import why_no_java
from tests.support.kafka_groups import SETTINGS, describe, in_order, make_groups
from tests.support.lengths import by_length
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.mark.parametrize(
    ("first", "second"),
    by_length([("odradek", "kafka")], [("kafka", "odradek"), ("odradek", "kafka")]),
)
def test_groups_are_served_as_the_other_broker_served_them(
    tmp_path: Path, first: str, second: str
) -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    shared = SharedDirectory(tmp_path, **SETTINGS)
    with shared.served_by(first, killed=False) as broker:
        left = make_groups(broker)
    with shared.served_by(second, killed=False) as broker:
        # They are loaded after the start. Kafka may show a part of the log before all of it.
        wait_for(lambda: in_order(describe(broker)), in_order(left))
