"""Partition logs on disk, in Apache Kafka's own format. Synchronous; callers choose the thread.

log_manager    all logs of a node, over all its log directories: the broker's door
directories/   what it is made of: what lies in a directory, how logs are opened and leave
recovering/    from the files that the last life left to a log that can be served
log            one partition's log; segment is a piece of it, the indexes belong to that
cleaning/      compaction
moving/        logs on their way to another directory
log_reader     a look at a log's files without opening it, for tools
files          the only door to the operating system; filenames is what things are called there
"""

if __name__ != "odradek.storage":
    raise ImportError("import odradek.storage, not storage")
