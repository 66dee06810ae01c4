"""What the tests share: broker processes, Apache Kafka's tools, a raw client."""
