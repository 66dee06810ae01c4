"""The Python clients, each behind the same few calls, so that one test asks all of them."""

from tests.conformance.clients.aiokafka_client import Aiokafka
from tests.conformance.clients.client import Client
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.conformance.clients.kafka_python_client import KafkaPython

CLIENTS: dict[str, Client] = {
    client.name: client for client in (KafkaPython(), Aiokafka(), ConfluentKafka())
}
