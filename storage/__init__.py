"""Partition logs on disk, in Apache Kafka's own format. Synchronous; callers choose the thread."""

if __name__ != "odradek.storage":
    raise ImportError("import odradek.storage, not storage")
