"""The address of a broker in responses that name a new leader (KIP-951)."""

from odradek.protocol.schema import Int32, String, Struct


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None
