"""The command line."""

if __name__ != "odradek.tools":
    raise ImportError("import odradek.tools, not tools")
