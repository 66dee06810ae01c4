"""The `odradek` command and its subcommands."""

if __name__ != "odradek.tools":
    raise ImportError("import odradek.tools, not tools")
