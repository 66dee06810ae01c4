"""The wire: bytes to messages and back. No I/O, no event loop, no clock."""

if __name__ != "odradek.protocol":
    raise ImportError("import odradek.protocol, not protocol")
