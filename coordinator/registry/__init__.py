"""The schema registry: what Confluent's Schema Registry decides and stores, without HTTP.

The registry's state is what the records of the topic `_schemas` say. A request is decided on by a
method of Registry, which returns records and a reply; the records are appended and replayed, then
the reply is given.

Reading order: registry (the requests), registration (new schemas, look-ups), compatibility,
schema_work (what may be long), state (by replay), records (their stored form), shapes (the
types of what is read), schemas, settings, formats (Avro, JSON Schema, Protobuf); subjects,
requests, parsing, errors, json_text.
"""
