"""Values in the wire format of a schema registry, as Arrow columns.

    formats          their names
    values           finds the schema of a topic's values, and decodes a column of them
    avro_format, protobuf_format, json_format     a schema as an Arrow type, and its deserializer

confluent-kafka's client asks the registry, and its deserializers (fastavro for Avro) decode each
value. What is here makes columns of their results, whose types depend on the schema only, and
separates the values that cannot be decoded.
"""
