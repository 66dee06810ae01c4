"""Commands that talk to a broker, odradek or Apache Kafka, as a client."""
