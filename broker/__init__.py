"""Sockets, dispatch, and one handler per API: the rim where async lives."""

if __name__ != "odradek.broker":
    raise ImportError("import odradek.broker, not broker")
