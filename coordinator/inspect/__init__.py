"""What the records of internal topics say, as JSON values. For tools and the console, not to serve.

`internal_records` decodes records, also control records. `kafka_json` converts messages to JSON as
Kafka does.
"""
