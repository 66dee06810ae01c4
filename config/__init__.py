"""The configuration: the syntax of server.properties, and every key with its type and default."""

if __name__ != "odradek.config":
    raise ImportError("import odradek.config, not config")
