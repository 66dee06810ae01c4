"""server.properties: the syntax, and every key typed, with its default."""

if __name__ != "odradek.config":
    raise ImportError("import odradek.config, not config")
