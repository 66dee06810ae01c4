"""Imports all that the first schemas need: 70 ms, which are too long on the event loop.

The modules of the formats import libraries at their first use, because a console reads schemas
where these are not installed, too.
"""

from importlib import import_module

from odradek.config.re2_options import re2_library

_FORMATS = "odradek.coordinator.registry.formats"

for _name in (
    f"{_FORMATS}.avro_compatibility",
    f"{_FORMATS}.json_compatibility",
    f"{_FORMATS}.protobuf_compatibility",
    "google.protobuf.descriptor_pb2",
    "google.protobuf.text_encoding",
    "jsonschema_specifications",
    "referencing.jsonschema",
):
    import_module(_name)
re2_library()
