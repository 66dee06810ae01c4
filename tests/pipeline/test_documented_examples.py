"""The Spark examples of the documentation read what a broker has written."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.clients.client import Sent
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.docs.markdown import Block, examples
from tests.support.broker_process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = [block for block in examples() if "register(spark)" in block.text]


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.file.name)
def test_an_example_reads_a_topic(
    spark: "SparkSession", broker: BrokerProcess, topic: str, block: Block
) -> None:
    ConfluentKafka().produce(broker.bootstrap, topic, [Sent(b"one coffee")])
    names: dict[str, Any] = {"spark": spark}
    program = block.text.replace('"orders"', f'"{topic}"').replace('"data"', f'"{broker.data}"')
    exec(compile(program, block.file.name, "exec"), names)
    assert [bytes(row.value) for row in names["orders"].collect()] == [b"one coffee"]
