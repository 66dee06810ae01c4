"""What the broker knows beyond the logs, as state machines that emit records."""

if __name__ != "odradek.coordinator":
    raise ImportError("import odradek.coordinator, not coordinator")
