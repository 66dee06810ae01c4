"""The client libraries that live through scripts of failures."""

from collections.abc import Mapping

from tests.conformance.cluster.client import Library
from tests.conformance.cluster.program_clients import FRANZ_GO, JAVA, KAFKA_JS, SARAMA
from tests.conformance.cluster.python_clients import Aiokafka, KafkaPython, Librdkafka

LIBRARIES: Mapping[str, Library] = {
    "java": JAVA,
    "librdkafka": Librdkafka(),
    "aiokafka": Aiokafka(),
    "kafka-python": KafkaPython(),
    "franz-go": FRANZ_GO,
    "sarama": SARAMA,
    "kafkajs": KAFKA_JS,
}
