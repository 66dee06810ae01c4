"""The columns that values become: their schemas, and what parses the values.

Reading order: value_columns, json_schema, json_splitter, registry_splitter, value_splitting,
topic_schemas.
"""
