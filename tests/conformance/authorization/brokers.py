"""Both brokers with an authorizer. Until there are entries for a type, it is open to everyone."""

from odradek.config.keys_authorizer import STANDARD_AUTHORIZER
from tests.support.broker_process import ApacheKafkaProcess, free_ports

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:broker",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.two.phase.commit.enable": "true",
    # The members of consumer groups stay as long as the test runs.
    "group.consumer.max.session.timeout.ms": "3600000",
    "group.consumer.session.timeout.ms": "3600000",
}
_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="broker" password="broker" user_broker="broker";'
)


class AuthorizingKafkaProcess(ApacheKafkaProcess):
    """Apache Kafka whose broker logs in to its controller and to itself.

    If it were anonymous like the clients, it would need entries itself.
    """

    def _listeners(self) -> dict[str, str]:
        [internal] = free_ports(1)
        plain = super()._listeners()
        return {
            **plain,
            "listeners": f"{plain['listeners']},INTERNAL://127.0.0.1:{internal}",
            "advertised.listeners": (
                f"{plain['advertised.listeners']},INTERNAL://127.0.0.1:{internal}"
            ),
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
            ),
            "inter.broker.listener.name": "INTERNAL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.internal.plain.sasl.jaas.config": _LOGIN,
            "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
            "unstable.api.versions.enable": "true",  # InitProducerId v6, of two-phase commit
        }
